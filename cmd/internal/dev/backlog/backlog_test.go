package backlog

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sessionstore/compactor/strategies/chat"
)

// cost is characters / 4 and 4 per message.
func cost(messages []chat.Message) (tokens, bytes int) {
	for _, m := range messages {
		n := utf8.RuneCountInString(m.Content.Text) + utf8.RuneCountInString(m.Reasoning)
		bytes += len(m.Content.Text) + len(m.Reasoning)
		for _, c := range m.ToolCalls {
			n += len(c.Name) + len(c.Arguments)
			bytes += len(c.Name) + len(c.Arguments)
		}
		tokens += n/4 + 4
	}
	return tokens, bytes
}

func TestASeedGivesTheSameBacklog(t *testing.T) {
	t.Parallel()
	a := slices.Collect(Generate(Options{Seed: 7, Sessions: 12}))
	b := slices.Collect(Generate(Options{Seed: 7, Sessions: 20}))
	if diff := cmp.Diff(a, b[:12]); diff != "" {
		t.Error(diff)
	}
	c := slices.Collect(Generate(Options{Seed: 8, Sessions: 12}))
	if cmp.Equal(a, c) {
		t.Error("another seed gives the same backlog")
	}
	for s := range Generate(Options{}) {
		if s.ID == "" {
			t.Error("no id")
		}
		break // stopping early is allowed
	}
}

func TestDistribution(t *testing.T) {
	t.Parallel()
	var tokens, bytes, messages, over, coding, defects, reasoning, parallel int
	ids := map[string]bool{}
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var lengths []int
	for s := range Generate(Options{End: end}) {
		n, o := cost(s.Messages)
		tokens, bytes, messages = tokens+n, bytes+o, messages+len(s.Messages)
		lengths = append(lengths, n)
		if n*4 > window(s.Model)*3 {
			over++
		}
		if s.Labels["app"] == "coding" {
			coding++
		}
		if s.Labels["defect"] != "" {
			defects++
		}
		if slices.ContainsFunc(s.Messages, func(m chat.Message) bool { return m.Reasoning != "" }) {
			reasoning++
		}
		if slices.ContainsFunc(s.Messages, func(m chat.Message) bool { return len(m.ToolCalls) > 1 }) {
			parallel++
		}
		if ids[s.ID] {
			t.Errorf("session id %s comes twice", s.ID)
		}
		ids[s.ID] = true
		if last := s.Messages[len(s.Messages)-1].CreatedAt; last.After(end) || last.Before(end.Add(-spread)) {
			t.Errorf("%s ends at %s", s.ID, last)
		}
	}
	slices.Sort(lengths)
	t.Logf("%d sessions, %d messages, %d tokens (median %d, most %d), %d bytes, %d over, %d coding, %d with reasoning, %d with parallel calls, %d defects",
		len(ids), messages, tokens, lengths[len(lengths)/2], lengths[len(lengths)-1], bytes, over, coding, reasoning, parallel, defects)
	between := func(what string, n, lo, hi int) {
		if n < lo || n > hi {
			t.Errorf("%s: %d, want %d to %d", what, n, lo, hi)
		}
	}
	between("sessions", len(ids), 400, 400)
	between("tokens", tokens, 3_000_000, 6_000_000)
	between("bytes", bytes, 12_000_000, 24_000_000)
	between("sessions over 0.75 of their window", over, 60, 140)
	between("coding sessions", coding, 140, 200)
	between("sessions with reasoning", reasoning, 30, 75)
	between("sessions with parallel calls", parallel, 150, 400)
	between("sessions with a defect", defects, 3, 16)
	between("the longest over the median", lengths[len(lengths)-1]/lengths[len(lengths)/2], 10, 60)
}

func TestHistoriesAreWellFormed(t *testing.T) {
	t.Parallel()
	for s := range Generate(Options{Seed: 3}) {
		ids := map[string]bool{}
		open := map[string]bool{}
		faults := 0
		var last time.Time
		for i, m := range s.Messages {
			if err := m.Validate(); err != nil {
				t.Errorf("%s: message %d: %v", s.ID, i, err)
			}
			if ids[m.ID] || m.ID == "" {
				t.Errorf("%s: message id %q", s.ID, m.ID)
			}
			ids[m.ID] = true
			if !m.CreatedAt.After(last) || m.CreatedAt.Location() != time.UTC {
				t.Errorf("%s: message %d at %s after %s", s.ID, i, m.CreatedAt, last)
			}
			last = m.CreatedAt
			if m.Role != chat.RoleTool && len(open) > 0 {
				faults++
				clear(open)
			}
			for _, c := range m.ToolCalls {
				open[c.ID] = true
				if !json.Valid([]byte(c.Arguments)) {
					t.Errorf("%s: arguments %s", s.ID, c.Arguments)
				}
			}
			if m.Role == chat.RoleTool {
				if !open[m.ToolCallID] {
					faults++
				}
				delete(open, m.ToolCallID)
			}
			if text := m.Content.Text; !utf8.ValidString(text) || strings.ContainsAny(text, "~\x00") || (text == "") != m.Content.Null {
				t.Errorf("%s: message %d: %q", s.ID, i, text)
			}
			if m.Role == chat.RoleTool && strings.HasPrefix(m.Content.Text, "{") && !json.Valid([]byte(m.Content.Text)) {
				t.Errorf("%s: result %s", s.ID, m.Content.Text)
			}
		}
		if want := min(1, len(s.Labels["defect"])); faults != want || len(open) > 0 {
			t.Errorf("%s: %d faults, %d open calls, defect %q", s.ID, faults, len(open), s.Labels["defect"])
		}
		if s.Messages[0].Role != chat.RoleSystem || s.Messages[1].Role != chat.RoleUser {
			t.Errorf("%s starts with %s, %s", s.ID, s.Messages[0].Role, s.Messages[1].Role)
		}
	}
}

func TestMessagesSurviveJSON(t *testing.T) {
	t.Parallel()
	for s := range Generate(Options{Seed: 5, Sessions: 40}) {
		for i := range s.Messages {
			b, err := json.Marshal(&s.Messages[i])
			if err != nil {
				t.Fatal(err)
			}
			var back chat.Message
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatalf("%v in %s", err, b)
			}
			raw := cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreFields(chat.ToolCall{}, "Raw"), cmpopts.IgnoreFields(chat.Part{}, "Raw")}
			if diff := cmp.Diff(s.Messages[i], back, raw); diff != "" {
				t.Fatal(diff)
			}
		}
	}
}

func TestContinueGoesOn(t *testing.T) {
	t.Parallel()
	for s := range Generate(Options{Seed: 1, Sessions: 20}) {
		before := len(s.Messages)
		more := Continue(s, 9, 2_000)
		if n, _ := cost(more); n < 2_000 {
			t.Errorf("%s: %d tokens more", s.ID, n)
		}
		if len(s.Messages) != before || more[0].Role != chat.RoleUser || more[0].ID == s.Messages[before-1].ID {
			t.Errorf("%s goes on with %s %s", s.ID, more[0].Role, more[0].ID)
		}
		if !more[0].CreatedAt.After(s.Messages[before-1].CreatedAt) {
			t.Errorf("%s goes on at %s", s.ID, more[0].CreatedAt)
		}
		if diff := cmp.Diff(more, Continue(s, 9, 2_000)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestEveryTemplateCanBeFilled(t *testing.T) {
	t.Parallel()
	for app, topics := range map[string][]string{"support": {"airline", "shop"}, "coding": {"go", "python"}} {
		for _, topic := range topics {
			w := newWriter(1, 2, app+"/"+topic)
			w.window = 8_192
			for name, list := range w.words {
				for _, template := range list {
					if text := w.fill(template); strings.Contains(text, "~") || text == "" && template != "" {
						t.Errorf("%s: %q gives %q", name, template, text)
					}
				}
			}
		}
	}
}

func BenchmarkGenerate(b *testing.B) {
	for b.Loop() {
		for range Generate(Options{}) {
		}
	}
}
