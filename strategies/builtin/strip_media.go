package builtin

import (
	"context"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// stripMedia replaces images and other media outside the newest turns with short texts.
type stripMedia struct{ keep int64 }

func newStripMedia(a *plan.Args) (plan.Strategy, error) {
	return &stripMedia{keep: a.Int(plan.Int{
		Name: "keep_last_turns", Default: 1, Min: 0,
		Doc: "in how many of the newest turns media stay; the last user message keeps its own whatever this is",
	})}, nil
}

// Name implements Strategy.
func (*stripMedia) Name() string { return "strip_media" }

// Reads implements Reader.
func (s *stripMedia) Reads(t *plan.Transcript) []chat.Seq {
	var out []chat.Seq
	for _, i := range s.candidates(t) {
		out = append(out, t.Entries[i].Seq)
	}
	return out
}

func (s *stripMedia) candidates(t *plan.Transcript) []int {
	var out []int
	may := rewritable(t)
	for i := range t.Entries[:turnStart(t, s.keep)] {
		e := &t.Entries[i]
		if e.Has(chat.HasMedia) && e.Role != chat.RoleSystem && may(i) {
			out = append(out, i)
		}
	}
	return out
}

// Plan implements Strategy.
func (s *stripMedia) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	var plan chat.Plan
	for _, i := range s.candidates(t) {
		m, err := t.Read(i)
		if err != nil {
			return chat.Plan{}, err
		}
		bare := *m
		bare.Content.Parts = make([]chat.Part, len(m.Content.Parts))
		for k, p := range m.Content.Parts {
			if p.IsMedia() {
				p = mediaNote(p)
			}
			bare.Content.Parts[k] = p
		}
		plan.Additions = append(plan.Additions, replacement(&t.Entries[i], bare, s.Name()))
	}
	return plan, nil
}

// mediaNote returns a text part that describes the omitted media, in the dialect of the
// part.
func mediaNote(p chat.Part) chat.Part {
	kind, what := "text", p.Type
	if rest, ok := strings.CutPrefix(what, "input_"); ok {
		kind, what = "input_text", rest
		if what == "audio" { // chat-completions call it that, with parts of type text
			kind = "text"
		}
	}
	return chat.Part{Type: kind, Text: "[" + strings.TrimSuffix(what, "_url") + " left out]"}
}
