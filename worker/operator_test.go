package worker

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/summary"
)

// An operator's summary takes the place of the model's, with links to messages of the session; a
// run that cannot use it changes nothing and asks no model.
func TestOperatorsSummary(t *testing.T) {
	t.Parallel()
	f, server := modelled(t, database(t), modelPolicy())
	own := func(text string, steps ...store.Step) store.RunRow {
		return f.run(f.operator("s", store.Options{From: "view", Pipeline: steps, Summary: &store.WrittenSummary{Text: text, Author: "Mara", Note: "after a call"}}))
	}
	before := f.view("s")
	if row := own("Part 1 is fixed.", store.Step{Strategy: "truncation"}); row.Outcome == OutcomeApplied || !strings.Contains(row.Error, "no step of the pipeline summarizes") {
		t.Errorf("without a summary: %s %s", row.Outcome, row.Error)
	}
	if row := own("<tool_call>{}</tool_call>"); row.Outcome != OutcomeNoSummary || row.ErrorCode != "tool_syntax" {
		t.Errorf("a call: %s %s", row.Outcome, row.ErrorCode)
	}
	if f.view("s") != before {
		t.Errorf("the view is %s", f.view("s"))
	}
	row := own("Part 1 is fixed [m41]; the others are looked at in turn.")
	all := f.summaries("s")
	if row.Outcome != OutcomeApplied || len(all) != 1 || server.Calls() > 0 {
		t.Fatalf("%s %s after %d calls", row.Outcome, row.Steps, server.Calls())
	}
	said := all[0].Content.String()
	if !strings.Contains(said, "(Notes of an operator.") || !strings.Contains(said, "Part 1 is fixed [m41 user]; the others") {
		t.Errorf("%s", said)
	}
	if links := summary.Links(said); len(links) == 0 || links[len(links)-1].Seqs[0] != chat.Seq(41) {
		t.Errorf("%v", links)
	}
	if steps := string(row.Steps); !strings.Contains(steps, `"written_by": "operator"`) || !strings.Contains(steps, `"operator": "Mara"`) || !strings.Contains(steps, `"note": "after a call"`) || strings.Contains(steps, "in turn") {
		t.Errorf("%s", steps)
	}
}
