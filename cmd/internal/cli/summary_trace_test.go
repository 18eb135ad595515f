package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/store"
)

// themes returns a session about two things, turn by turn, in which a secret was said once.
func themes(id string, turns int) string {
	type message = map[string]any
	ms := []message{{"role": "system", "content": "You help."}}
	for i := range turns {
		for _, theme := range []string{"billing", "search"} {
			call := fmt.Sprint(theme, i)
			ms = append(ms,
				message{"role": "user", "content": fmt.Sprintf("Look after the %s in internal/%s/step%d.go, please.", theme, theme, i)},
				message{"role": "assistant", "content": nil, "tool_calls": []message{
					{"id": call, "type": "function", "function": message{"name": "read", "arguments": fmt.Sprintf(`{"file_path":"internal/%s/step%d.go"}`, theme, i)}},
				}},
				message{"role": "tool", "tool_call_id": call, "content": strings.Repeat("func check() error { return nil }\n", 10)},
				message{"role": "assistant", "content": fmt.Sprintf("The %s now works, as run %d shows.", theme, 90000+i)})
		}
	}
	ms[2]["content"] = "I use gh" + "p_" + strings.Repeat("aB3x", 9) + " for it."
	b, err := json.Marshal(message{"session_id": id, "model": "gpt-4", "messages": ms})
	if err != nil {
		panic(err) // strings alone
	}
	return string(b) + "\n"
}

// A summary leads to the messages that it covers and back, also through the summary before
// it, and shows its focus.
func TestASummaryIsTraceable(t *testing.T) {
	t.Parallel()
	db := database(t)
	invoke(t, db, "import", file(t, "s.jsonl", themes("chat", 12))).want(t, 0)
	startWorker(t, db, nil)
	compact := func(args ...string) reports.Run {
		r := decode[reports.Run](t, invoke(t, db, append([]string{"compact", "chat", "--from=view", "--json"}, args...)...).want(t, 0))
		if r.Status != "applied" {
			t.Fatalf("%+v", r)
		}
		return r
	}
	messages := func(args ...string) []store.MessageRow {
		return decode[struct{ Messages []store.MessageRow }](t, invoke(t, db, append(args, "--json")...).want(t, 0)).Messages
	}
	compact("--strategy=summarize:threshold=8,keep_last_n=40,max_summary_tokens=400,preserve_user_messages=false")
	second := compact("--focus=billing", "--strategy=summarize:threshold=8,keep_last_n=4,max_summary_tokens=400,preserve_user_messages=false")

	all := messages("view", "chat", "--all")
	summaries, covered := map[string]store.MessageRow{}, map[string]int{}
	for _, m := range all {
		if m.Kind == "summary" {
			summaries[m.ID] = m
		}
	}
	last := ""
	for _, m := range all {
		covered[m.SummarizedBy]++
		if m.SummarizedBy == "" {
			continue
		}
		if _, ok := summaries[m.SummarizedBy]; !ok || m.Included || m.ExcludedBy == 0 {
			t.Errorf("message %s names the summary %s", m.ID, m.SummarizedBy)
		}
	}
	for id, m := range summaries {
		if m.SummaryOf == "" || covered[id] == 0 {
			t.Errorf("summary %s covers %q, and %d messages name it", id, m.SummaryOf, covered[id])
		}
		if m.Included && m.Role == "user" {
			last = id
		}
	}
	if last == "" || len(summaries) < 2 {
		t.Fatalf("summaries %v", summaries)
	}
	text := invoke(t, db, "view", "chat", "--all").want(t, 0, "You help.", "internal/billing/step0.go", "[Conversation Summary]").stdout
	if n := strings.Count(text, "[out: summarize, run "); n < 40 {
		t.Errorf("%d messages say that a summary took their place:\n%s", n, text)
	}

	// There …
	shown := decode[reports.Summary](t, invoke(t, db, "summary", "show", last, "--json").want(t, 0))
	if shown.Run.ID != second.ID || shown.SummaryOf != summaries[last].SummaryOf || !shown.InView || shown.CoveredTokens == 0 || shown.References == "" {
		t.Errorf("summary of %s by run %d, want %s and %d: %+v", shown.SummaryOf, shown.Run.ID, summaries[last].SummaryOf, second.ID, shown)
	}
	if r := shown.Report; r == nil || r.WrittenBy != "extractive" || !r.Updates || len(shown.Calls) != 0 {
		t.Errorf("%+v", shown.Report)
	}
	if billing, search := strings.Count(shown.Prose, "billing"), strings.Count(shown.Prose, "search"); billing <= 2*search {
		t.Errorf("billing is there %d times, search %d times:\n%s", billing, search, shown.Prose)
	}
	invoke(t, db, "summary", "show", last).want(t, 0, "no model: an extract", "covers", "messages 58-92", "in the view", "## References")
	// … and back, down to the messages.
	below := map[string]bool{}
	for id, m := range summaries {
		if m.Included { // the summary, and the word between it and the user
			for _, m := range messages("summary", "expand", id) {
				below[m.ID] = true
			}
		}
	}
	said := ""
	for _, m := range all {
		switch {
		case m.Kind != "source":
		case m.SummarizedBy == "":
			said = m.ID
		case !below[m.ID]:
			t.Errorf("message %s does not belong to its summary", m.ID)
		}
	}
	invoke(t, db, "summary", "expand", last).want(t, 0, "internal/search/step1.go")
	// Redactions are counted in the summary that made them: the first.
	for id := range summaries {
		if id == last || summaries[id].Role != "user" {
			continue
		}
		first := invoke(t, db, "summary", "show", id).want(t, 0, "no longer in the view", "redacted").stdout
		if strings.Contains(first, "aB3xaB3x") {
			t.Errorf("%s", first)
		}
	}
	for _, args := range [][]string{{"summary", "show", "summary-99-9"}, {"summary", "expand", "nothing"}, {"summary", "show", said}} {
		invoke(t, db, args...).want(t, exitNotFound)
	}
	invoke(t, db, "doctor").want(t, 0, "all checks passed")
}
