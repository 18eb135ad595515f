package summary

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

func called(id string) *chat.Message {
	return &chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}, ToolCalls: []chat.ToolCall{{ID: id, Name: "run"}}}
}

func returned(id, text string) *chat.Message {
	return &chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: chat.TextContent(text)}
}

func texts(ms []*chat.Message) []string {
	var out []string
	for _, m := range ms {
		out = append(out, m.Content.String())
	}
	return out
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("line " + strconv.Itoa(i+1) + "\n")
	}
	return b.String()
}

func trimmed(steps []policy.PreTrim, ms []*chat.Message, limit chat.Tokens) ([]*chat.Message, []Trim) {
	return trimMessages(steps, ms, 0, limit, time.Date(2026, time.January, 2, 3, 4, 5, 0, time.FixedZone("x", 3600)))
}

func TestTailLines(t *testing.T) {
	t.Parallel()
	ms := []*chat.Message{said(chat.RoleUser, numbered(50)), called("1"), returned("1", numbered(50)), returned("2", numbered(30)), returned("3", "a\nb"), returned("4", strings.Repeat("ü\n", 35))}
	got, cut := trimmed([]policy.PreTrim{{Step: policy.TailLines}}, ms, 0)
	tail := strings.SplitAfterN(numbered(50), "\n", 21)[20]
	want := []string{numbered(50), "", "[… 20 lines left out …]\n" + tail, numbered(30), "a\nb", strings.Repeat("ü\n", 35)}
	if diff := cmp.Diff(want, texts(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if cut[0].Outputs != 1 || cut[0].Messages != 0 || cut[0].Tokens <= 0 {
		t.Errorf("%+v", cut)
	}
	if ms[2].Content.Text != numbered(50) {
		t.Error("the message that was given has changed")
	}
	got, _ = trimmed([]policy.PreTrim{{Step: policy.TailLines, Lines: 1}}, ms[2:], 0)
	if want := []string{"[… 49 lines left out …]\nline 50\n", "[… 29 lines left out …]\nline 30\n", "a\nb", "[… 34 lines left out …]\nü\n"}; !slices.Equal(texts(got), want) {
		t.Errorf("%q", texts(got))
	}
}

func TestCapToolContent(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("abcd", 300) // 400 tokens
	ms := []*chat.Message{returned("1", big), said(chat.RoleUser, big), returned("2", big), returned("3", big)}
	got, cut := trimmed([]policy.PreTrim{{Step: policy.CapToolContent, Tokens: 800}}, ms, 0)
	last := tokensOf(big) // of the one after it
	for _, i := range []int{3, 2, 0} {
		note, end, _ := strings.Cut(got[i].Content.Text, "\n")
		if note != "[… "+chat.Thousands(1200-len(end))+" characters left out …]" || !strings.HasSuffix(big, end) || tokensOf(end) >= last {
			t.Errorf("%d: %q", i, got[i].Content.Text)
		}
		last = tokensOf(end)
	}
	if cut[0].Outputs != 3 || got[1] != ms[1] {
		t.Errorf("%+v", cut)
	}
	if got, cut := trimmed([]policy.PreTrim{{Step: policy.CapToolContent}}, ms, 0); !slices.Equal(got, ms) || cut[0] != (Trim{Step: policy.CapToolContent}) {
		t.Errorf("below the default something was cut: %+v", cut)
	}
}

// TestShortOutputsSurviveTheCap: what a command answered in a line is shown, long outputs are cut.
func TestShortOutputsSurviveTheCap(t *testing.T) {
	t.Parallel()
	var ms []*chat.Message
	for i := range 20 {
		id := strconv.Itoa(i)
		ms = append(ms, called(id), returned(id, "The file web/page_"+id+".go was written, and 12 lines of it are new."), called("r"+id), returned("r"+id, numbered(300)))
	}
	got, cuts := trimmed([]policy.PreTrim{{Step: policy.CapToolContent, Tokens: 4000}}, ms, 0)
	size := chat.Tokens(0)
	for i, m := range got {
		if m.Role == chat.RoleTool {
			size += tokensOf(m.Content.String())
		}
		if i%4 == 1 && m != ms[i] {
			t.Errorf("message %d: %q", i, m.Content.String())
		}
	}
	if size > 4000 || cuts[0].Outputs < 15 {
		t.Errorf("%d tokens, %+v", size, cuts)
	}
}

// TestFailingLinesSurviveEveryCut: the lines of an output that report failures stay where they
// are, with a statement of what is left out around them.
func TestFailingLinesSurviveEveryCut(t *testing.T) {
	t.Parallel()
	output := numbered(40) + "--- FAIL: TestLogin (0.01s)\n" + numbered(40) + "panic: runtime error: index out of range\n" + numbered(400) + "exit status 2\n" + numbered(60)
	for name, shorten := range map[string]func() string{
		policy.TailLines:         func() string { return trimOne(policy.PreTrim{Step: policy.TailLines}, output) },
		policy.CapToolContent:    func() string { return trimOne(policy.PreTrim{Step: policy.CapToolContent, Tokens: 800}, output) },
		policy.ClearOlderOutputs: func() string { return trimOne(policy.PreTrim{Step: policy.ClearOlderOutputs, Keep: 1}, output) },
		"shorten":                func() string { return shortened([]*chat.Message{returned("1", output)}, 400).messages[0].Content.Text },
	} {
		got := shorten()
		at := 0
		for _, line := range []string{"--- FAIL: TestLogin (0.01s)", "panic: runtime error: index out of range", "exit status 2"} {
			n := strings.Index(got[at:], line)
			if n < 0 {
				t.Fatalf("%s: no %q, or not in its place, in %q", name, line, got)
			}
			at += n
		}
		if len(got) > len(output)/2 || !strings.Contains(got, "left out …]") && !strings.Contains(got, Cleared) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// trimOne returns what a step leaves of an output that another follows.
func trimOne(step policy.PreTrim, output string) string {
	got, _ := trimmed([]policy.PreTrim{step}, []*chat.Message{returned("1", output), returned("2", "ok")}, 0)
	return got[0].Content.Text
}

// TestAnOutputThatIsLeftOutWholeSaysSo: where not even a note fits, the prompt has one.
func TestAnOutputThatIsLeftOutWholeSaysSo(t *testing.T) {
	t.Parallel()
	got, _ := trimmed([]policy.PreTrim{{Step: policy.CapToolContent, Tokens: 1}}, []*chat.Message{called("1"), returned("1", numbered(50))}, 0)
	if _, user := (Prompt{}).Render("", got); !strings.Contains(user, "result of call 1\n"+notShown) {
		t.Errorf("%s", user)
	}
	if _, user := (Prompt{}).Render("", []*chat.Message{called("1"), returned("1", "")}); strings.Contains(user, notShown) {
		t.Error("an empty output is said to be left out")
	}
}

func TestClearOlderOutputs(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("abcd", 300)
	ms := []*chat.Message{returned("1", big), returned("2", "ok"), returned("3", big), said(chat.RoleAssistant, big), returned("4", big)}
	steps := []policy.PreTrim{{Step: policy.ClearOlderOutputs, Keep: 1}}
	got, cut := trimmed(steps, ms, 0)
	note := "[Old tool result content cleared] at 2026-01-02T02:04:05Z\n[… 1,200 characters left out …]"
	if want := []string{note, "ok", note, big, big}; !slices.Equal(texts(got), want) || cut[0].Outputs != 2 {
		t.Errorf("%q, %+v", texts(got), cut)
	}
	if again, cut := trimMessages(steps, got, 0, 0, time.Now()); !slices.Equal(texts(again), texts(got)) || cut[0] != (Trim{Step: policy.ClearOlderOutputs}) {
		t.Errorf("cleared again: %q, %+v", texts(again), cut)
	}
}

func TestDrop(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("abcd", 100)
	ms := []*chat.Message{
		said(chat.RoleUser, "first"), called("1"), returned("1", big), said(chat.RoleUser, "second"), said(chat.RoleAssistant, big), called("2"), returned("2", big),
	}
	all := chat.Tokens(0)
	for _, m := range ms {
		all += chat.Tokens(messageTokens(m))
	}
	tests := map[string]struct {
		step policy.PreTrim
		want []int
	}{
		"nothing has to go":           {policy.PreTrim{Step: policy.DropAgentItems, Tokens: all}, []int{0, 1, 2, 3, 4, 5, 6}},
		"no limit":                    {policy.PreTrim{Step: policy.DropOldest}, []int{0, 1, 2, 3, 4, 5, 6}},
		"the newest of the agent":     {policy.PreTrim{Step: policy.DropAgentItems, Tokens: all - 1}, []int{0, 1, 2, 3, 4}},
		"all of the agent":            {policy.PreTrim{Step: policy.DropAgentItems, Tokens: 1}, []int{0, 3}},
		"the oldest":                  {policy.PreTrim{Step: policy.DropOldest, Tokens: all - 1}, []int{1, 2, 3, 4, 5, 6}},
		"a group goes whole":          {policy.PreTrim{Step: policy.DropOldest, Tokens: all - 20}, []int{3, 4, 5, 6}},
		"the last user message stays": {policy.PreTrim{Step: policy.DropOldest, Tokens: 1}, []int{3, 5, 6}},
	}
	for name, tt := range tests {
		got, cut := trimmed([]policy.PreTrim{tt.step}, ms, 0)
		var want []*chat.Message
		saved := all
		for _, i := range tt.want {
			want = append(want, ms[i])
			saved -= chat.Tokens(messageTokens(ms[i]))
		}
		if !slices.Equal(got, want) || cut[0] != (Trim{Step: tt.step.Step, Messages: len(ms) - len(want), Tokens: saved}) {
			t.Errorf("%s: %d messages, %+v", name, len(got), cut)
		}
	}
	if got, _ := trimmed([]policy.PreTrim{{Step: policy.DropAgentItems}, {Step: policy.DropOldest}}, ms, 60); len(got) != 2 {
		t.Errorf("%q", texts(got))
	}
}

// TestTrimKeepsItsPromises checks the contract of every step with random messages.
func TestTrimKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var ms []*chat.Message
		for i, n := 0, rapid.IntRange(0, 20).Draw(t, "messages"); i < n; i++ {
			id := strconv.Itoa(i)
			text := strings.Repeat(rapid.SampledFrom([]string{"word ", "line\n", "ünïcödé\n", ""}).Draw(t, "text"), rapid.IntRange(0, 200).Draw(t, "times"))
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				ms = append(ms, said(chat.RoleUser, text))
			case 1:
				ms = append(ms, said(chat.RoleAssistant, text))
			default:
				ms = append(ms, called(id), returned(id, text))
			}
		}
		before := slices.Clone(texts(ms))
		step := policy.PreTrim{Step: rapid.SampledFrom(policy.PreTrimSteps()).Draw(t, "step")}
		limit := chat.Tokens(rapid.IntRange(1, 500).Draw(t, "limit"))
		switch step.Step {
		case policy.TailLines:
			step.Lines = int(limit)
		case policy.ClearOlderOutputs:
			step.Keep = int(limit % 7)
		default:
			step.Tokens = limit
		}
		if err := validate(step); err != nil {
			t.Fatal(err)
		}
		got, cuts := trimmed([]policy.PreTrim{step}, ms, 0)
		cut := cuts[0]
		if !slices.Equal(before, texts(ms)) {
			t.Fatal("the messages that were given have changed")
		}
		total := func(ms []*chat.Message) (n chat.Tokens) {
			for _, m := range ms {
				n += chat.Tokens(messageTokens(m))
			}
			return n
		}
		if total(ms)-total(got) != cut.Tokens || cut.Tokens < 0 || len(ms)-len(got) != cut.Messages {
			t.Fatalf("%d to %d tokens, %d to %d messages: %+v", total(ms), total(got), len(ms), len(got), cut)
		}
		users, outputs, open := 0, chat.Tokens(0), map[string]bool{}
		for _, m := range got {
			switch m.Role {
			case chat.RoleUser:
				users++
			case chat.RoleTool:
				outputs += tokensOf(m.Content.String())
				if !open[m.ToolCallID] {
					t.Fatal("a result without its call")
				}
				delete(open, m.ToolCallID)
			default:
			}
			for _, c := range m.ToolCalls {
				open[c.ID] = true
			}
		}
		if len(open) > 0 {
			t.Fatal("a call without its result")
		}
		if step.Step == policy.CapToolContent && outputs > limit {
			t.Fatalf("%d tokens of outputs, %d allowed", outputs, limit)
		}
		if step.Step != policy.DropOldest {
			for _, m := range ms {
				if m.Role == chat.RoleUser {
					users--
				}
			}
			if users != 0 {
				t.Fatal("a user message is gone")
			}
		}
	})
}

// validate validates a policy with one step.
func validate(step policy.PreTrim) error {
	p := policy.Default()
	p.Summary.PreTrim = []policy.PreTrim{step}
	return p.Validate()
}

func TestPreTrimValidate(t *testing.T) {
	t.Parallel()
	for _, name := range policy.PreTrimSteps() {
		if err := validate(policy.PreTrim{Step: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(policy.PreTrimSteps()) != len(preTrims) {
		t.Error("a step has no name")
	}
	err := validate(policy.PreTrim{Step: "shrink", Lines: -1, Keep: -2})
	for _, part := range append(policy.PreTrimSteps(), `"shrink"`, "lines: -1", "keep: -2") {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("no %q in %v", part, err)
		}
	}
}

func BenchmarkPreTrimGrowth(b *testing.B) {
	for _, name := range policy.PreTrimSteps() {
		b.Run(name, func(b *testing.B) {
			growth.Report(b, 2_000, 8, func(turns int) func() {
				var ms []*chat.Message
				for i := range turns {
					id := strconv.Itoa(i)
					ms = append(ms, said(chat.RoleUser, "x"), called(id), returned(id, numbered(60)))
				}
				return func() { trimmed([]policy.PreTrim{{Step: name}}, ms, 100_000) }
			})
		})
	}
}
