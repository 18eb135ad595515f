package summary_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

// secret has the form of a provider's key.
var secret = "sk-" + "proj-" + strings.Repeat("aB3x", 9)

// conversation returns turns in which the user asks about files.
func conversation(turns int) []*chat.Message {
	var out []*chat.Message
	for i := range turns {
		id, path := fmt.Sprintf("call_%d", i), fmt.Sprintf("src/module_%d/handler.go", i)
		out = append(out,
			&chat.Message{Role: chat.RoleUser, Content: chat.TextContent(fmt.Sprintf("Please find out why ticket TK%dX4 fails and fix it in %s.", 1000+i, path))},
			&chat.Message{
				Role: chat.RoleAssistant, Content: chat.TextContent("I look at the handler first."),
				ToolCalls: []chat.ToolCall{{ID: id, Type: "function", Name: "read_file", Arguments: fmt.Sprintf(`{"path":%q}`, path)}},
			},
			&chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: chat.TextContent(strings.Repeat(fmt.Sprintf("func handle%d(r request) error { return r.check() }\n", i), 60))},
			&chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent(fmt.Sprintf("The handler of %s forgot to close the connection; that is fixed and the tests pass.", path))})
	}
	return out
}

// model returns a client whose only server plays steps.
func model(t *testing.T, change func(*llm.Config), steps ...llmtest.Step) (*llm.Client, *llmtest.Server) {
	t.Helper()
	server := llmtest.New(steps...)
	url, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	c := llm.Default()
	c.Models = []llm.Profile{{Name: "m", BaseURL: url, Window: 32_000, Price: llm.Price{Input: 1, Output: 2}}}
	c.Retry.Base, c.Retry.Max = time.Millisecond, 2*time.Millisecond
	if slices.ContainsFunc(steps, func(s llmtest.Step) bool { return s.Behaviour == llmtest.Hang }) {
		c.Deadline.Min, c.Deadline.Max = 300*time.Millisecond, 300*time.Millisecond
	}
	c.Cooldown.Transient, c.Cooldown.NoProvider = -1, -1
	if change != nil {
		change(&c)
	}
	client, err := llm.New(c, llm.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client, server
}

func play(behaviours ...llmtest.Behaviour) []llmtest.Step {
	var out []llmtest.Step
	for _, b := range behaviours {
		out = append(out, llmtest.Step{Behaviour: b})
	}
	return out
}

// Each behaviour of a model gives a defined summary, report and number of paid answers.
func TestWhatModelsDo(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		steps []llmtest.Step
		code  string // of the failure; empty: a summary
		calls int    // requests
		paid  int
	}{
		"a summary":                         {play(llmtest.Normal), "", 1, 1},
		"429, then a summary":               {play(llmtest.RateLimited, llmtest.Normal), "", 2, 1},
		"429 with Retry-After":              {[]llmtest.Step{{Behaviour: llmtest.RateLimitedAfter, RetryAfter: "0"}}, "", 2, 1},
		"429 with a long Retry-After":       {[]llmtest.Step{{Behaviour: llmtest.RateLimitedAfter, RetryAfter: "3600"}}, "rate_limited", 1, 0},
		"500, then a summary":               {play(llmtest.ServerError, llmtest.Normal), "", 2, 1},
		"500 for ever":                      {[]llmtest.Step{{Behaviour: llmtest.ServerError, Times: 99}}, "overloaded", 3, 0},
		"502 with a page of HTML":           {play(llmtest.BadGateway), "", 2, 1},
		"slow":                              {[]llmtest.Step{{Behaviour: llmtest.Slow, Delay: 50 * time.Millisecond}}, "", 1, 1},
		"hanging":                           {play(llmtest.Hang), "timeout", 1, 0},
		"a cut stream":                      {play(llmtest.Cut), "", 2, 1},
		"empty content":                     {play(llmtest.Empty), "", 2, 2},
		"empty content for ever":            {[]llmtest.Step{{Behaviour: llmtest.Empty, Times: 99}}, "malformed_answer", 2, 2},
		"no choices":                        {play(llmtest.NoChoices), "", 2, 2},
		"cut off, and again":                {play(llmtest.Length, llmtest.Length), "cut_off", 2, 2},
		"cut off, then completed":           {play(llmtest.Length), "", 2, 2},
		"a refusal, and again":              {play(llmtest.Refusal, llmtest.Refusal), "refusal", 2, 2},
		"filtered":                          {play(llmtest.Filter), "content_filter", 1, 1},
		"no JSON":                           {play(llmtest.InvalidJSON), "", 2, 1},
		"an error in place of an answer":    {play(llmtest.ErrorBody), "", 2, 1},
		"another language":                  {play(llmtest.WrongLanguage, llmtest.WrongLanguage), "wrong_script", 2, 2},
		"an invented quotation":             {play(llmtest.InventedQuote), "", 1, 1},
		"no quota":                          {play(llmtest.InsufficientQuota), "quota_exhausted", 1, 0},
		"a wrong key":                       {play(llmtest.AuthError), "auth", 1, 0},
		"instructions in the answer":        {play(llmtest.Inject), "", 1, 1},
		"a secret in the answer":            {[]llmtest.Step{{Behaviour: llmtest.EchoSecret, Text: "The key is " + secret}}, "", 1, 1},
		"an answer without sections, twice": {[]llmtest.Step{{Behaviour: llmtest.Normal, Text: "They talked about a handler and fixed what was wrong with it, in the end.", Times: 2}}, "missing_sections", 2, 2},
		"an error text as the answer":       {[]llmtest.Step{{Behaviour: llmtest.Normal, Text: "Error: the service is unavailable at the moment.", Times: 2}}, "error_text", 2, 2},
		"a tool call as the answer":         {[]llmtest.Step{{Behaviour: llmtest.Normal, Text: "<tool_call>{\"name\":\"read_file\",\"arguments\":{}}</tool_call>", Times: 2}}, "tool_syntax", 2, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, server := model(t, nil, tt.steps...)
			ms := conversation(20)
			ms[2].Content = chat.TextContent("export OPENAI_API_KEY=" + secret + "\n" + ms[2].Content.Text)
			w := summary.New(summary.Options{Settings: policy.DefaultSummary(), Model: client, Window: 128_000})
			text, err := w.Write(t.Context(), plan.Task{Messages: ms})
			var failure *plan.Failure
			switch {
			case tt.code == "" && err != nil:
				t.Fatalf("no summary: %v", err)
			case tt.code != "" && (!errors.As(err, &failure) || failure.Code != tt.code || text != ""):
				t.Fatalf("got %q, %v, want the code %s", text, err, tt.code)
			}
			if n := server.Calls(); n != tt.calls || server.Paid() != tt.paid {
				t.Errorf("%d requests of which %d were paid, want %d and %d", n, server.Paid(), tt.calls, tt.paid)
			}
			r := w.Provenance()
			if cost := int64(0); tt.paid > 0 {
				for _, c := range r.Calls {
					cost += c.CostMicros
				}
				if cost == 0 {
					t.Error("what was paid is not in the report")
				}
			}
			for _, q := range server.Requests() {
				if strings.Contains(q.System+q.User, secret) {
					t.Error("a secret was sent")
				}
			}
			if strings.Contains(text+fmt.Sprint(err)+fmt.Sprintf("%+v", r), secret) {
				t.Error("a secret came back")
			}
			if n := r.RedactedAnswer.Total(); (n > 0) != (name == "a secret in the answer") {
				t.Errorf("%d secrets were taken out of the answer", n)
			}
			if tt.code == "" {
				sound(t, text, ms, r)
			}
		})
	}
}

// sound checks the properties of every stored summary.
func sound(t *testing.T, text string, ms []*chat.Message, r *summary.Provenance) {
	t.Helper()
	prose, references := extract.Split(text)
	for _, s := range summary.DefaultSections() {
		if !strings.Contains(prose, "## "+s.Title) && s.Title != summary.Wishes { // the model names no messages
			t.Errorf("no section %s", s.Title)
		}
	}
	if !strings.HasPrefix(prose, "(Notes of a model, not verified: ") || len(text) > 2*len(prose) {
		t.Errorf("%d bytes of %d are the model's:\n%s", len(prose), len(text), text)
	}
	last := ""
	for _, m := range ms {
		if m.Role == chat.RoleUser {
			last = m.Content.Text
		}
	}
	if !strings.Contains(prose, "> "+last) {
		t.Error("the active task is not what the user said last")
	}
	if !strings.Contains(references, "src/module_19/handler.go") {
		t.Errorf("references %q", references)
	}
	if r.WrittenBy != summary.ByModel || r.Tokens >= r.CoveredTokens || r.References == 0 {
		t.Errorf("%+v", r)
	}
}

func TestWithoutAModelSummariesAreExtracts(t *testing.T) {
	t.Parallel()
	w := summary.New(summary.Options{Settings: policy.DefaultSummary(), Window: 128_000})
	ms := conversation(40)
	text, err := w.Write(t.Context(), plan.Task{Messages: ms, Budget: 800})
	if err != nil {
		t.Fatal(err)
	}
	if r := w.Provenance(); r.WrittenBy != summary.ByExtract || len(r.Calls) > 0 || len(text) > 4*800+4 {
		t.Errorf("%d bytes, %+v", len(text), r)
	}
	if !strings.Contains(text, "src/module_39/handler.go") || !strings.Contains(text, "without a model") {
		t.Errorf("%s", text)
	}
}

// The settings decide what a tool is for before the shape of its calls does.
func TestConfiguredToolsAreLogged(t *testing.T) {
	t.Parallel()
	ms := append(conversation(10), []*chat.Message{
		{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{{ID: "z", Type: "function", Name: "zap_circuit", Arguments: `{"fuse":"F7"}`}}},
		{Role: chat.RoleTool, ToolCallID: "z", Content: chat.TextContent("ok")},
		{Role: chat.RoleAssistant, Content: chat.TextContent("The circuit is dead.")},
	}...)
	for _, looks := range [][]string{nil, {"zap_*"}} {
		settings := policy.DefaultSummary()
		settings.Tools.Looks = looks
		text, err := summary.New(summary.Options{Settings: settings}).Write(t.Context(), plan.Task{Messages: ms, Budget: 800})
		if logged := strings.Contains(text+"\n", "- zap_circuit: fuse F7 → ok\n"); err != nil || logged != (looks == nil) {
			t.Errorf("%q: logged %t, %v\n%s", looks, logged, err, text)
		}
	}
}

func TestWhatTakesThePlaceOfTheLastSummary(t *testing.T) {
	t.Parallel()
	for onFailure, want := range map[string]string{
		policy.OnFailureKeep: "", policy.OnFailureTruncate: "", policy.OnFailureExtractive: summary.ByExtract, policy.OnFailureMarker: summary.ByMarker,
	} {
		for _, last := range []bool{true, false} {
			t.Run(fmt.Sprint(onFailure, last), func(t *testing.T) {
				t.Parallel()
				client, _ := model(t, nil, llmtest.Step{Behaviour: llmtest.AuthError, Times: 9})
				s := policy.DefaultSummary()
				s.OnFailure = onFailure
				w := summary.New(summary.Options{Settings: s, Model: client, Last: last})
				text, err := w.Write(t.Context(), plan.Task{Messages: conversation(40)})
				r := w.Provenance()
				if !last || want == "" {
					if err == nil || text != "" || r.WrittenBy != "" {
						t.Errorf("%q, %v, %+v", text, err, r)
					}
				} else if err != nil || r.WrittenBy != want || text == "" {
					t.Errorf("%q, %v, %+v", text, err, r)
				}
				if r.Failure != "auth" {
					t.Errorf("%+v", r)
				}
			})
		}
	}
}

// A conversation that is too long for the model's window is read in parts, each of which
// brings the notes up to date; nothing is asked that would not fit.
func TestLongConversationsAreReadInParts(t *testing.T) {
	t.Parallel()
	client, server := model(t, func(c *llm.Config) { c.Models[0].Window = 12_000 })
	s := policy.DefaultSummary()
	s.PreTrim = nil
	s.MaxParts = 50
	w := summary.New(summary.Options{Settings: s, Model: client, Window: 128_000})
	text, err := w.Write(t.Context(), plan.Task{Messages: conversation(60), Budget: 1000})
	if err != nil {
		t.Fatal(err)
	}
	r := w.Provenance()
	if r.Parts < 3 || server.Calls() != r.Parts || text == "" {
		t.Errorf("%d requests, %+v", server.Calls(), r)
	}
	for i, q := range server.Requests() {
		if n := (len(q.System) + len(q.User)) / 4; n+q.MaxTokens > 12_000 {
			t.Errorf("part %d has about %d tokens and asks for %d in a window of 12,000", i, n, q.MaxTokens)
		}
		if updates := strings.Contains(q.User, "notes written so far"); updates != (i > 0) {
			t.Errorf("part %d: %v", i, updates)
		}
	}

	s.MaxParts = 2
	before := server.Calls()
	w = summary.New(summary.Options{Settings: s, Model: client, Window: 128_000})
	if _, err := w.Write(t.Context(), plan.Task{Messages: conversation(60), Budget: 1000}); err != nil {
		t.Fatal(err)
	}
	r = w.Provenance()
	if n := server.Calls() - before; n > 2 || len(r.Trimmed) == 0 || r.Trimmed[0].Messages == 0 {
		t.Errorf("%d requests, %+v", n, r)
	}
	if q := server.Requests()[before]; !strings.Contains(q.User, "messages left out") {
		t.Error("the prompt does not say that messages were left out")
	}
}

func TestAPromptThatIsTooLongIsHalved(t *testing.T) {
	t.Parallel()
	client, server := model(t, nil, llmtest.Step{Behaviour: llmtest.ContextTooLong, Times: 2})
	s := policy.DefaultSummary()
	s.PreTrim = nil
	w := summary.New(summary.Options{Settings: s, Model: client, Window: 128_000})
	if _, err := w.Write(t.Context(), plan.Task{Messages: conversation(40)}); err != nil {
		t.Fatal(err)
	}
	if r := w.Provenance(); r.Halved != 2 || r.Parts < 4 {
		t.Errorf("%+v", r)
	}
	sizes := []int{}
	for _, q := range server.Requests() {
		sizes = append(sizes, len(q.User))
	}
	if !slices.IsSortedFunc(sizes[:3], func(a, b int) int { return b - a }) || sizes[2] > sizes[0]*2/3 {
		t.Errorf("sizes %v", sizes)
	}

	client, server = model(t, nil, llmtest.Step{Behaviour: llmtest.ContextTooLongText, Times: 99})
	w = summary.New(summary.Options{Settings: s, Model: client, Window: 128_000})
	_, err := w.Write(t.Context(), plan.Task{Messages: conversation(40)})
	var failure *plan.Failure
	if !errors.As(err, &failure) || failure.Code != "context_too_long" || server.Calls() > 8 {
		t.Errorf("%v after %d requests", err, server.Calls())
	}
}

func TestNothingMoreIsBoughtThanMayBe(t *testing.T) {
	t.Parallel()
	client, server := model(t, func(c *llm.Config) { c.Models[0].Window = 12_000 })
	s := policy.DefaultSummary()
	s.PreTrim, s.MaxParts, s.MaxCost = nil, 50, 0.000001
	w := summary.New(summary.Options{Settings: s, Model: client})
	_, err := w.Write(t.Context(), plan.Task{Messages: conversation(60), Budget: 1000})
	var failure *plan.Failure
	if !errors.As(err, &failure) || failure.Code != "over_budget" || server.Calls() != 1 {
		t.Errorf("%v after %d requests", err, server.Calls())
	}
}

func TestSystemMessagesAreNeverSummarized(t *testing.T) {
	t.Parallel()
	w := summary.New(summary.Options{Settings: policy.DefaultSummary()})
	for _, role := range []chat.Role{chat.RoleSystem, chat.RoleDeveloper} {
		ms := append(conversation(3), &chat.Message{Role: role, Content: chat.TextContent("Be brief.")})
		if text, err := w.Write(t.Context(), plan.Task{Messages: ms}); !errors.Is(err, summary.ErrProtected) || text != "" {
			t.Errorf("%s: %q, %v", role, text, err)
		}
	}
}

// A summary updates the one before it, by any author: its references
// stay, and the model is shown its prose and not its references.
func TestAnEarlierSummaryIsBroughtUpToDate(t *testing.T) {
	t.Parallel()
	client, server := model(t, nil)
	var text string
	for i := range 3 {
		w := summary.New(summary.Options{Settings: policy.DefaultSummary(), Model: client, Window: 128_000})
		ms := conversation(20)
		if i > 0 {
			ms = append([]*chat.Message{{Role: chat.RoleUser, Content: chat.TextContent(frame.Wrap(text, frame.Options{}))}}, ms...)
		}
		var err error
		if text, err = w.Write(t.Context(), plan.Task{Messages: ms}); err != nil {
			t.Fatal(err)
		}
		if r := w.Provenance(); r.Updates != (i > 0) || strings.Count(text, "## References") != 1 {
			t.Errorf("round %d: %+v\n%s", i, r, text)
		}
	}
	all := server.Requests()
	q := all[len(all)-1] // a round may take several
	if !strings.Contains(q.User, "notes written so far") || strings.Contains(q.User, "## References") {
		t.Errorf("%s", q.User[:3000])
	}
}

// The end of ctx is no failure of the summary: the caller retries.
func TestAnInterruptedSummaryIsNoFailure(t *testing.T) {
	t.Parallel()
	client, _ := model(t, func(c *llm.Config) { c.Deadline.Min, c.Deadline.Max = time.Minute, time.Minute }, llmtest.Step{Behaviour: llmtest.Hang})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	s := policy.DefaultSummary()
	s.OnFailure = policy.OnFailureExtractive
	w := summary.New(summary.Options{Settings: s, Model: client, Last: true})
	if text, err := w.Write(ctx, plan.Task{Messages: conversation(20)}); text != "" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%q, %v", text, err)
	}
}
