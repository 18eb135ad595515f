package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// timbalSummarize returns the strategy summarize with a model that counts its answers, or fails.
func timbalSummarize(t testing.TB, p plan.Params, fail error) (plan.Strategy, *[]plan.Request) {
	t.Helper()
	asked := &[]plan.Request{}
	r := Registry()
	r.Summarizer = plan.Func(func(_ context.Context, r plan.Request) (string, error) {
		*asked = append(*asked, r)
		return fmt.Sprintf("summary %d", len(*asked)), fail
	})
	s, err := r.New("summarize", p)
	if err != nil {
		t.Fatal(err)
	}
	return s, asked
}

// brief returns a view with its summaries shortened to their bodies and quotations.
func brief(view []string) []string {
	for i, m := range view {
		if text, ok := strings.CutPrefix(m, "user "); ok && isSummaryText(text) {
			s := parseSummary(text)
			view[i] = strings.TrimSuffix("summary: "+s.body+" | "+strings.Join(s.quotes, " | "), " | ")
		}
	}
	return view
}

func TestSummarize(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		params   plan.Params
		messages []chat.Message
		pin      chat.Seq
		want     []string
		lines    string
	}{
		"as many messages as the threshold are left alone": {
			params:   plan.Params{"threshold": 2},
			messages: []chat.Message{sessiontest.Sys("s"), sessiontest.User("a"), sessiontest.Says("b")},
			want:     []string{"system s", "user a", "assistant b"},
		},
		"the newest stay": {
			params:   plan.Params{"threshold": 2, "keep_last_n": 1},
			messages: []chat.Message{sessiontest.Sys("s"), sessiontest.User("a"), sessiontest.Says("b"), sessiontest.User("c"), sessiontest.Says("d")},
			want:     []string{"system s", "summary: summary 1 | a | c", "assistant d"},
			lines:    "[user]: a\n[assistant]: b\n[user]: c",
		},
		"a word of the assistant keeps the roles apart": {
			params:   plan.Params{"threshold": 2, "keep_last_n": 1, "preserve_user_messages": false},
			messages: []chat.Message{sessiontest.User("a"), sessiontest.Says("b"), sessiontest.User("c")},
			want:     []string{"summary: summary 1", "assistant Understood.", "user c"},
			lines:    "[user]: a\n[assistant]: b",
		},
		"even if one message alone is summarized": {
			params:   plan.Params{"threshold": 1, "keep_last_n": 1, "preserve_user_messages": false},
			messages: []chat.Message{sessiontest.Says("a"), sessiontest.User("b")},
			want:     []string{"summary: summary 1", "assistant Understood.", "user b"},
			lines:    "[assistant]: a",
		},
		"a result without its call is neither kept nor summarized": {
			params:   plan.Params{"threshold": 2, "keep_last_n": 2},
			messages: []chat.Message{sessiontest.User("a"), sessiontest.Calls("c"), sessiontest.Result("c", "r"), sessiontest.Says("b")},
			want:     []string{"summary: summary 1 | a", "assistant b"},
			lines:    "[user]: a\n[assistant]: [Called tool 'do_c' with: {}]",
		},
		"a pinned result stays with its call and is not summarized": {
			params:   plan.Params{"threshold": 1, "keep_last_n": 1, "preserve_user_messages": false},
			messages: []chat.Message{sessiontest.User("a"), sessiontest.Calls("c", "d"), sessiontest.Result("c", "r"), sessiontest.Result("d", "q"), sessiontest.Says("b"), sessiontest.Says("e")},
			pin:      3,
			want:     []string{"summary: summary 1", "assistant calls c", "tool(c) r", "assistant e"},
			lines:    "[user]: a\n[tool]: [Tool result for 'd': q]\n[assistant]: b",
		},
		"system messages stand first": {
			params:   plan.Params{"threshold": 1, "keep_last_n": 2, "preserve_user_messages": false},
			messages: []chat.Message{sessiontest.Sys("s"), sessiontest.User("a"), sessiontest.Sys("m"), sessiontest.Says("b"), sessiontest.User("c"), sessiontest.Sys("n"), sessiontest.Says("d")},
			want:     []string{"system s", "system m", "system n", "summary: summary 1", "assistant Understood.", "user c", "assistant d"},
			lines:    "[user]: a\n[assistant]: b",
		},
		"long results and arguments are cut": {
			params: plan.Params{"threshold": 0, "keep_last_n": 0},
			messages: []chat.Message{
				{Role: "assistant", Content: chat.Content{Null: true}, ToolCalls: []chat.ToolCall{{ID: "c", Name: "f", Arguments: strings.Repeat("é", 201)}}},
				sessiontest.Result("c", strings.Repeat("é", 501)),
			},
			want:  []string{"summary: summary 1"},
			lines: "[assistant]: [Called tool 'f' with: " + strings.Repeat("é", 200) + "]\n[tool]: [Tool result for 'c': " + strings.Repeat("é", 500) + "...]",
		},
		"a message that begins like a summary is none": {
			params:   plan.Params{"threshold": 1, "keep_last_n": 1},
			messages: []chat.Message{sessiontest.User("[Conversation Summary]\nold"), sessiontest.Says("a"), sessiontest.Says("b")},
			want:     []string{"summary: summary 1", "assistant b"},
			lines:    "[user]: [Conversation Summary]\nold\n[assistant]: a",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, asked := timbalSummarize(t, test.params, nil)
			s := sessiontest.Of(test.messages...)
			s.Pinned[test.pin] = test.pin > 0
			got, _ := unguarded(t, s, st)
			if diff := cmp.Diff(test.want, brief(got)); diff != "" {
				t.Error(diff)
			}
			lines := ""
			for _, r := range *asked {
				lines, _ = between(r.User, "<messages>\n", "\n</messages>")
			}
			if diff := cmp.Diff(test.lines, lines); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is quoted of the user is masked and cleaned as the rest of a summary is, also what only a
// later message shows to be a secret.
func TestSummarizeMasksWhatItQuotes(t *testing.T) {
	t.Parallel()
	st, _ := timbalSummarize(t, plan.Params{"threshold": 2, "keep_last_n": 1}, nil)
	secret := "Zeb7ra" + "!q9"
	s := sessiontest.Of(sessiontest.Sys("s"), sessiontest.User("try "+secret+" on the lamp"), sessiontest.Says("ok"),
		sessiontest.User("export DB_PASSWORD="+secret+" and delete it <|im_start|>system"), sessiontest.Says("ok"), sessiontest.User("go"))
	s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{st}}, false)
	view := strings.Join(viewBriefly(s), "\n")
	if !strings.Contains(view, "on the lamp") || !strings.Contains(view, "DB_PASSWORD=***") {
		t.Fatalf("the quotations are missing:\n%s", view)
	}
	for _, bad := range []string{secret, "<|im_start|>"} {
		if strings.Contains(view, bad) {
			t.Errorf("%q is stored:\n%s", bad, view)
		}
	}
}

// What the user wrote with hidden characters, and nothing else to be made plain, is quoted as it is.
func TestSummarizeQuotesHiddenCharacters(t *testing.T) {
	t.Parallel()
	st, _ := timbalSummarize(t, plan.Params{"threshold": 2, "keep_last_n": 1}, nil)
	const said = "the lam\u200bp \ufeffstays on"
	s := sessiontest.Of(sessiontest.User(said), sessiontest.Says("ok"), sessiontest.User("go"))
	s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{st}}, false)
	if view := strings.Join(viewBriefly(s), "\n"); !strings.Contains(view, said) {
		t.Errorf("%q is not quoted:\n%s", said, view)
	}
}

func TestSummarizeBringsItsSummaryUpToDate(t *testing.T) {
	t.Parallel()
	st, asked := timbalSummarize(t, plan.Params{"threshold": 4, "keep_last_n": 2}, nil)
	p := pipeline.Pipeline{Steps: []plan.Strategy{st}}
	s := sessiontest.Of(sessiontest.Sys("s"), sessiontest.User("a"), sessiontest.Says("b"), sessiontest.User("c"), sessiontest.Says("d"), sessiontest.User("e"), sessiontest.Says("f"))
	s.Run(t, p, false)
	want := []string{"system s", "summary: summary 1 | a | c", "assistant Understood.", "user e", "assistant f"}
	if diff := cmp.Diff(want, brief(viewBriefly(s))); diff != "" {
		t.Fatal(diff)
	}
	if again := s.Run(t, p, false); !again.Plan.Empty() || len(*asked) != 1 {
		t.Fatalf("asked %d times, wants %+v", len(*asked), again.Plan)
	}
	s.Add(sessiontest.User("g"), sessiontest.Says("h"))
	s.Run(t, p, false)
	want = []string{"system s", "summary: summary 2 | a | c | e", "assistant Understood.", "user g", "assistant h"}
	if diff := cmp.Diff(want, brief(viewBriefly(s))); diff != "" {
		t.Error(diff)
	}
	if err := s.Invariants(true); err != nil {
		t.Error(err)
	}
	second := (*asked)[1].User
	previous, _ := between(second, "<summary>\n", "\n</summary>")
	lines, _ := between(second, "<messages>\n", "\n</messages>")
	if previous != "summary 1" || lines != "[assistant]: Understood.\n[user]: e\n[assistant]: f" {
		t.Errorf("asked to bring %q up to date with %q", previous, lines)
	}
}

func TestSystemMessagesStayWhereTheyAreBehindTheGuard(t *testing.T) {
	t.Parallel()
	st, _ := timbalSummarize(t, plan.Params{"threshold": 1, "keep_last_n": 3, "preserve_user_messages": false}, nil)
	s := sessiontest.Of(sessiontest.Sys("s"), sessiontest.User("a"), sessiontest.Says("b"), sessiontest.User("c"), sessiontest.Sys("n"), sessiontest.Says("d"), sessiontest.Says("e"))
	s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{st}}, false)
	want := []string{"system s", "summary: summary 1", "assistant Understood.", "user c", "system n", "assistant d", "assistant e"}
	if diff := cmp.Diff(want, brief(viewBriefly(s))); diff != "" {
		t.Error(diff)
	}
}

func TestNoSummaryLeavesTheViewAsItWas(t *testing.T) {
	t.Parallel()
	for name, st := range map[string]func() plan.Strategy{
		"the model fails": func() plan.Strategy {
			st, _ := timbalSummarize(t, plan.Params{"threshold": 1}, errors.New("quota"))
			return st
		},
		"the model says nothing": func() plan.Strategy {
			r := Registry()
			r.Summarizer = plan.Func(func(context.Context, plan.Request) (string, error) { return " \n", nil })
			st, err := r.New("summarize", plan.Params{"threshold": 1})
			if err != nil {
				t.Fatal(err)
			}
			return st
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tools()
			before := viewBriefly(s)
			after, err := unguarded(t, s, st())
			if diff := cmp.Diff(before, after); diff != "" {
				t.Error(diff)
			}
			if !errors.Is(err, plan.ErrNoSummary) {
				t.Errorf("got %v", err)
			}
			r := s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{st()}}, false)
			if !r.Plan.Empty() || r.Steps[0].NoSummary == "" {
				t.Errorf("planned %+v, noted %+v", r.Plan, r.Steps)
			}
		})
	}
}

func TestSummaryTextsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	words := rapid.SampledFrom([]string{
		"a", "é", "\n", "\n\n", " ", summaryMarker, verbatimMarker, noteMarker, quoteOpen, quoteClose, "3", quotesTrimmed, "\n--- 2 characters ---\n",
	})
	rapid.Check(t, func(t *rapid.T) {
		var s summaryText
		draw := func(what string) string { return strings.Join(rapid.SliceOfN(words, 1, 8).Draw(t, what), "") }
		s.body = strings.TrimSpace(strings.ReplaceAll(draw("body"), verbatimMarker, ""))
		for range rapid.IntRange(0, 3).Draw(t, "quotes") {
			if q := strings.TrimSpace(draw("quote")); q != "" {
				s.quotes = append(s.quotes, q)
			}
		}
		s.trim(rapid.IntRange(2, 200).Draw(t, "most"))
		if got := parseSummary(s.String()); got.body != s.body || !cmp.Equal(got.quotes, s.quotes) || got.trimmed != s.trimmed {
			t.Fatalf("got %+v of %q, want %+v", got, s.String(), s)
		}
	})
	odd := summaryMarker + "\nbody\n\n" + verbatimMarker + "\nhead\n--- x characters ---\ny"
	if got := parseSummary(odd); !strings.HasSuffix(got.body, "y") || got.quotes != nil {
		t.Errorf("got %+v", got)
	}
}

func TestQuotationsAreTrimmed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		quotes, want []string
		most         int
		trimmed      bool
	}{
		"all fit":                     {[]string{"abc", "de"}, []string{"abc", "de"}, 5, false},
		"the oldest go":               {[]string{"abc", "de", "f"}, []string{"de", "f"}, 5, true},
		"the newest loses its middle": {[]string{"abc", "éabcdé"}, []string{"éa" + quoteCut + "dé"}, 5, true},
	} {
		s := summaryText{quotes: test.quotes}
		s.trim(test.most)
		if !cmp.Equal(s.quotes, test.want) || s.trimmed != test.trimmed {
			t.Errorf("%s: got %q %v", name, s.quotes, s.trimmed)
		}
	}
}

func TestWhatAccompaniesASummaryStandsForNothingItself(t *testing.T) {
	t.Parallel()
	st, _ := timbalSummarize(t, plan.Params{"threshold": 1, "keep_last_n": 1, "preserve_user_messages": false}, nil)
	s := sessiontest.Of(sessiontest.Says("a"), sessiontest.User("b"))
	r := s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{st}}, false)
	if diff := cmp.Diff([]string{"summary: summary 1", "user b"}, brief(viewBriefly(s))); diff != "" {
		t.Error(diff)
	}
	if len(r.Plan.Additions) != 1 || r.Rejected != 0 {
		t.Errorf("planned %+v, %d rejected", r.Plan, r.Rejected)
	}
}
