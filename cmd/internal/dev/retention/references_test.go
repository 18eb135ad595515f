package retention_test

import (
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
)

// Of the identifiers in a block of references, those used after the cut are counted, with
// or without delimiters around the summary; a block that stood there before is none.
func TestReferencesOfASummary(t *testing.T) {
	t.Parallel()
	block := "## References\norder: #ABC12345\nnumber: 99887766\nfile: house.md, parser.go"
	ms := talk()
	ms[2] = say(chat.RoleAssistant, ms[2].Content.String()+"; ticket 55667788 `never used`\n"+block)
	c := retention.NewCaseOf(ms[:5], ms[5:])
	summary := "We spoke of an order.\n\n" + block + "\nnamed: \"never used\", 55667788, unknown1.go"
	wrapped := frame.Wrap(summary, frame.Options{})
	for name, tc := range map[string]struct {
		kept             chat.Message
		precision, share retention.Count
	}{
		"a summary":                 {say(chat.RoleAssistant, summary), retention.Count{Kept: 4, Of: 6}, retention.Count{Kept: 116, Of: 139}},
		"one with delimiters":       {say(chat.RoleUser, wrapped), retention.Count{Kept: 4, Of: 6}, retention.Count{Kept: 116, Of: len([]rune(wrapped))}},
		"one without references":    {say(chat.RoleAssistant, "We spoke of #ABC12345."), retention.Count{}, retention.Count{}},
		"a message from before":     {ms[2], retention.Count{}, retention.Count{}},
		"a reference nobody needs":  {say(chat.RoleAssistant, "## References\nnumber: 55667788"), retention.Count{Of: 1}, retention.Count{Kept: 30, Of: 30}},
		"one without known entries": {say(chat.RoleAssistant, "## References\nnumber: 12121212"), retention.Count{}, retention.Count{Kept: 30, Of: 30}},
	} {
		d := c.Detail([]chat.Message{tc.kept})
		if d.Counts[retention.ReferencePrecision] != tc.precision || d.Counts[retention.ReferenceShare] != tc.share {
			t.Errorf("%s: %+v of the references, %+v of the text", name, d.Counts[retention.ReferencePrecision], d.Counts[retention.ReferenceShare])
		}
	}
}

// Identifiers count as rare up to two sessions, or 5 % of them.
func TestRareIdentifiers(t *testing.T) {
	t.Parallel()
	c := retention.NewCorpus()
	for i := range 100 {
		text := "everywhere.go"
		if i < 6 {
			text += " six.go"
		}
		if i < 5 {
			text += " five.go five.go"
		}
		c.Add([]chat.Message{say(chat.RoleUser, text), say(chat.RoleAssistant, text)})
	}
	needs, _ := (&retention.Case{Needs: []retention.Need{{ID: "everywhere.go"}, {ID: "six.go"}, {ID: "five.go"}, {ID: "none.go"}}}).IDs()
	if n := c.Rare(needs, []byte{0b0111}); n != (retention.Count{Kept: 1, Of: 2}) {
		t.Errorf("%+v", n)
	}
}
