package retention_test

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

func say(role chat.Role, text string) chat.Message {
	return chat.Message{Role: role, Content: chat.TextContent(text)}
}

// talk uses three identifiers behind its middle: an order that the user names
// again, a file that the assistant remembers, and a number that a tool hands back.
func talk() []chat.Message {
	return []chat.Message{
		say(chat.RoleSystem, "the house file is house.md"),
		say(chat.RoleUser, "my order is #ABC12345"),
		say(chat.RoleAssistant, "the parser stands in parser.go, the house rules in house.md"),
		say(chat.RoleTool, "ticket number 99887766"),
		say(chat.RoleTool, "padding padding padding padding padding padding padding padding"),
		say(chat.RoleUser, "what of #ABC12345?"),
		say(chat.RoleTool, "ticket 99887766"),
		say(chat.RoleAssistant, "#ABC12345 is in parser.go and house.md, ticket 99887766, and new_file.go"),
	}
}

func TestScore(t *testing.T) {
	t.Parallel()
	ms := talk()
	c := retention.NewCaseOf(ms[:5], ms[5:])
	var needs []string
	for _, n := range c.Needs {
		needs = append(needs, n.ID)
	}
	slices.Sort(needs)
	if diff := cmp.Diff([]string{"#ABC12345", "99887766", "parser.go"}, needs); diff != "" || c.Strict != 1 {
		t.Fatalf("needs, %d strict: %s", c.Strict, diff)
	}
	for name, tc := range map[string]struct {
		kept []chat.Message
		want retention.Score
	}{
		"everything":                   {ms[:5], retention.Score{Tokens: retention.Total(ms[:5]), Loose: 3, Keyed: 3, Strict: 1}},
		"nothing":                      {nil, retention.Score{}},
		"a bare list":                  {[]chat.Message{say(chat.RoleUser, "#ABC12345 99887766 parser.go")}, retention.Score{Tokens: 7, Loose: 3, Strict: 1}},
		"a list on one line, labelled": {[]chat.Message{say(chat.RoleUser, "order: #ABC12345 number: 99887766 parser.go")}, retention.Score{Tokens: 10.75, Loose: 3, Keyed: 2, Strict: 1}},
		"a label on the line before":   {[]chat.Message{say(chat.RoleUser, "order\n#ABC12345")}, retention.Score{Tokens: 3.75, Loose: 1}},
		"a label too far before":       {[]chat.Message{say(chat.RoleUser, "order"+strings.Repeat(" ", 60)+"#ABC12345")}, retention.Score{Tokens: 18.5, Loose: 1}},
		"part of another word":         {[]chat.Message{say(chat.RoleUser, "number x998877660")}, retention.Score{Tokens: 4.25, Loose: 1, Keyed: 1}},
		"in what the system says":      {[]chat.Message{say(chat.RoleSystem, "stands in parser.go")}, retention.Score{Loose: 1, Keyed: 1, Strict: 1}},
		"only the second place keyed":  {[]chat.Message{say(chat.RoleUser, "stands in parser.go"), say(chat.RoleUser, "parser.go")}, retention.Score{Tokens: 7, Loose: 1, Keyed: 1, Strict: 1}},
	} {
		if diff := cmp.Diff(tc.want, c.Score(tc.kept)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

func TestThereIsNoCaseWhereNothingCanBeMeasured(t *testing.T) {
	t.Parallel()
	ms := talk()
	for name, c := range map[string]*retention.Case{
		"nothing behind the cut":          retention.NewCaseOf(ms, nil),
		"nothing before it":               retention.NewCaseOf(nil, ms),
		"only the system before it":       retention.NewCaseOf(ms[:1], ms[1:]),
		"nothing that is used behind it":  retention.NewCaseOf(ms[4:5], ms[5:]),
		"a whole session, cut at its end": retention.NewCase(ms, 1),
		"no messages":                     retention.NewCase(nil, 0.5),
	} {
		if c != nil {
			t.Errorf("%s: %d needs", name, len(c.Needs))
		}
	}
}

func TestBaselinesStayWithinTheirBudgetAndChangeNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var ms []chat.Message
		for range rapid.IntRange(0, 20).Draw(t, "messages") {
			role := rapid.SampledFrom([]chat.Role{chat.RoleUser, chat.RoleAssistant, chat.RoleTool, chat.RoleSystem}).Draw(t, "role")
			ms = append(ms, say(role, rapid.StringOfN(rapid.RuneFrom([]rune("ab1/. \né")), 0, 300, -1).Draw(t, "text")))
		}
		var before bytes.Buffer
		_ = chat.WriteSession(&before, chat.Session{Messages: ms})
		budget := rapid.Float64Range(0, 1).Draw(t, "budget") * retention.Total(ms)
		for _, b := range append(retention.Baselines(), retention.Random("a session")) {
			kept := b.Keep(ms, budget, retention.Sizer{})
			if got := retention.Total(kept); got > budget {
				t.Errorf("%s keeps %v of %v", b.Name, got, budget)
			}
			var after bytes.Buffer
			if _ = chat.WriteSession(&after, chat.Session{Messages: ms}); before.String() != after.String() {
				t.Errorf("%s changes what it is given", b.Name)
			}
		}
	})
}

// Half of the budget is for the user's messages, the newest first; the newest messages of
// anybody get the rest. A random choice depends on the session's name alone.
func TestBaselinesOfMessages(t *testing.T) {
	t.Parallel()
	ms := []chat.Message{
		say(chat.RoleSystem, "the system"), say(chat.RoleUser, "old "), say(chat.RoleUser, "a request that is too long for it"), say(chat.RoleAssistant, "done"),
		say(chat.RoleUser, "new "), say(chat.RoleAssistant, "done"), say(chat.RoleAssistant, "last"),
	}
	texts := func(kept []chat.Message) string {
		var out []string
		for _, m := range kept {
			out = append(out, strings.TrimSpace(m.Content.String()))
		}
		return strings.Join(out, "|")
	}
	i := slices.IndexFunc(retention.Baselines(), func(b retention.Baseline) bool { return b.Name == "user+tail" })
	for budget, want := range map[float64]string{
		0: "the system", 2: "the system|new|last", 3: "the system|new|done|last", 4: "the system|old|new|done|last", 5: "the system|old|done|new|done|last",
	} {
		if got := texts(retention.Baselines()[i].Keep(ms, budget, retention.Sizer{})); got != want {
			t.Errorf("%v tokens: %q, want %q", budget, got, want)
		}
	}
	choices := map[string]bool{}
	for name := range 20 {
		one := texts(retention.Random(strconv.Itoa(name)).Keep(ms, 3, retention.Sizer{}))
		choices[one] = true
		if again := texts(retention.Random(strconv.Itoa(name)).Keep(ms, 3, retention.Sizer{})); again != one || strings.Count(one, "|") != 3 {
			t.Errorf("session %d: %q, then %q", name, one, again)
		}
	}
	if len(choices) < 5 {
		t.Errorf("only %d choices", len(choices))
	}
}

// repeated returns a session whose text names few identifiers n times each.
func repeated(n int) []chat.Message {
	return []chat.Message{
		say(chat.RoleUser, strings.Repeat("aaaaaaa1 aaaaaa1 /aa/aa/aa/aa 1111 11111 111111\n", n)),
		say(chat.RoleAssistant, "aaaaaaa1 /aa/aa/aa/aa 1111 11111 111111 `aaa`"),
	}
}

func TestScoringOfIdentifiersRepeatedOften(t *testing.T) {
	t.Parallel()
	ms := repeated(1000)
	c := retention.NewCaseOf(ms[:1], ms[1:])
	if got := c.Score(ms[:1]); got.Loose != len(c.Needs) {
		t.Errorf("%+v of %d", got, len(c.Needs))
	}
}

// BenchmarkScoreGrowth scores such a session: the occurrences of an identifier are
// searched for once.
func BenchmarkScoreGrowth(b *testing.B) {
	growth.Report(b, 1000, 32, func(n int) func() {
		ms := repeated(n)
		return func() { retention.NewCaseOf(ms[:1], ms[1:]).Score(ms[:1]) }
	})
}
