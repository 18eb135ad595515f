package builtin

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// newStripMedia returns a strategy that replaces images and other media outside the newest
// turns by short texts.
func newStripMedia(a *plan.Args) (plan.Strategy, error) {
	keep := a.Int(plan.Int{
		Name: "keep_last_turns", Default: 1, Min: 0,
		Doc: "in how many of the newest turns media stay; those of the last user message always stay",
	})
	candidates := func(t *plan.Transcript) []int {
		var out []int
		canRewrite := rewritable(t)
		for i := range t.Entries[:newest(t, keep, userTurn)] {
			if e := &t.Entries[i]; e.Has(chat.HasMedia) && e.Role != chat.RoleSystem && canRewrite(i) {
				out = append(out, i)
			}
		}
		return out
	}
	return &rewriter{"strip_media", candidates, withoutMedia}, nil
}

// withoutMedia returns the message with notes in place of media.
func withoutMedia(_ *plan.Transcript, _ *plan.Entry, m *chat.Message) (chat.Message, chat.Tokens, bool) {
	short := *m
	short.Content.Parts = make([]chat.Part, len(m.Content.Parts))
	for k, p := range m.Content.Parts {
		if p.IsMedia() {
			p = mediaNote(p)
		}
		short.Content.Parts[k] = p
	}
	return short, 0, true
}

// mediaNote returns a text part that describes the omitted media, in the dialect of the
// part.
func mediaNote(p chat.Part) chat.Part {
	kind, media := "text", p.Type
	if rest, ok := strings.CutPrefix(media, "input_"); ok {
		kind, media = "input_text", rest
		if media == "audio" { // input_audio is a name of chat completions, whose texts are of type text
			kind = "text"
		}
	}
	return chat.Part{Type: kind, Text: "[" + strings.TrimSuffix(media, "_url") + " left out]"}
}
