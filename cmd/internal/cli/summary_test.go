package cli

import (
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/reports"
)

func TestAReportIsThatOfTheStepThatWroteTheSummary(t *testing.T) {
	t.Parallel()
	const steps = `[{"strategy": "tool_result"},
		{"strategy": "handoff", "no_summary": "timeout", "summary": {"failure": "timeout", "messages": 1}},
		{"strategy": "summarization", "summary": {"written_by": "model", "messages": 2}},
		{"strategy": "summarize", "summary": {"written_by": "extractive", "messages": 3}},
		{"strategy": "summarize", "no_summary": "auth", "summary": {"failure": "auth", "messages": 4}}]`
	for reason, want := range map[string]int{"summarize": 3, "summarized": 2, "handoff": 1} {
		r, err := reports.ReportOf([]byte(steps), reason)
		if err != nil || r == nil || r.Messages != want {
			t.Errorf("%s: %+v, %v, want that of %d messages", reason, r, err, want)
		}
	}
	// A summary without a writer reports why the strategy's own text is used.
	if r, err := reports.ReportOf([]byte(`[{"strategy": "handoff", "summary": {"failure": "timeout"}}]`), "handoff"); err != nil || r == nil || r.Failure != "timeout" || r.WrittenBy != "" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := reports.ReportOf([]byte(`null`), "x"); err != nil || r != nil {
		t.Errorf("%+v, %v", r, err)
	}
}
