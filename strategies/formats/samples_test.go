package formats_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// TestSamples reads files of the programs: every line is a message or counted,
// the view can be made valid, and writing and reading changes nothing.
func TestSamples(t *testing.T) {
	t.Parallel()
	for _, path := range rawFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text := string(raw)
			format := formats.Detect(raw)
			if want, _, _ := strings.Cut(strings.ReplaceAll(filepath.Base(path), "claude_code", "claude-code"), "_"); format != want {
				t.Fatalf("detected %s, want %s", format, want)
			}
			s := one(t, text, format)
			lines := strings.Count(strings.TrimRight(text, "\n"), "\n") + 1
			if got := len(s.Messages) + sum(s.Report.Other); got != lines || s.Report.Values != lines || s.Report.Messages != len(s.Messages) {
				t.Errorf("%d messages and %v are %d, of %d lines", len(s.Messages), s.Report, got, lines)
			}
			if s.ID == "" || s.Model == "" {
				t.Errorf("id %q, model %q", s.ID, s.Model)
			}
			for i, m := range s.Messages {
				if m.CreatedAt.IsZero() {
					t.Errorf("message %d has no time", i)
				}
			}
			repaired := sessiontest.Of(s.Messages...)
			repaired.Run(t, pipeline.Pipeline{}, false)
			if faults := chat.Check(repaired.View()); len(faults) > 0 {
				t.Errorf("faults %v", faults)
			}
			t.Logf("%d messages, %v, dropped %v, faults %v", len(s.Messages), s.Report.Other, s.Report.Dropped, chat.Check(chat.Describe(s.Messages)))

			out, losses := write(t, s.Session, format)
			if len(losses) > 0 {
				t.Errorf("lost %v", losses)
			}
			if again := one(t, out, formats.Auto); !cmp.Equal(canon(t, s.Session), canon(t, again.Session)) {
				t.Errorf("round trip (-first +second):\n%s", cmp.Diff(canon(t, s.Session), canon(t, again.Session)))
			}
			for _, other := range formats.WrittenNames() {
				out, losses := write(t, s.Session, other)
				back := one(t, out, other)
				same := cmp.Equal(canon(t, s.Session), canon(t, back.Session))
				if same != (len(losses) == 0) {
					t.Errorf("%s: same %v, lost %v", other, same, losses)
				}
				again, more := write(t, back.Session, other)
				third := one(t, again, other)
				if diff := cmp.Diff(canon(t, back.Session), canon(t, third.Session)); diff != "" {
					t.Errorf("%s is not stable, lost %v:\n%s", other, more, diff)
				}
			}
		})
	}
}
