package sessiontest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// SignedForms is the number of forms of Sign.
const SignedForms = 4

// Sign returns the message with signed or encrypted reasoning: that of Anthropic, of
// Responses, of chat-completions (reasoning_details), or redacted. n must be different for
// each message.
func Sign(m chat.Message, form, n int) chat.Message {
	id := fmt.Sprintf("signed-%d-", n)
	part := func(raw string) {
		var with chat.Message
		if err := json.Unmarshal([]byte(`{"role":"assistant","content":[`+raw+`]}`), &with); err != nil {
			panic(err)
		}
		parts := with.Content.Parts
		if m.Content.Text != "" {
			parts = append(parts, chat.Part{Type: "text", Text: m.Content.Text})
		}
		m.Content = chat.Content{Parts: append(parts, m.Content.Parts...)}
	}
	switch form {
	case 0:
		part(fmt.Sprintf(`{"type":"thinking","thinking":"step %d","signature":%q}`, n, id))
	case 1:
		part(fmt.Sprintf(`{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":%q}`, n, id))
	case 2:
		details := fmt.Appendf(nil, `[{"type":"reasoning.encrypted","data":%q}]`, id)
		m.Extra = map[string]json.RawMessage{"reasoning_details": details}
	default:
		part(fmt.Sprintf(`{"type":"redacted_thinking","data":%q}`, id))
	}
	return m
}

// Prefixes is a provider that binds reasoning to everything before it: it remembers on which
// messages each block of Sign was written. It judges by the texts of messages alone.
type Prefixes map[string][sha256.Size]byte

var signedID = regexp.MustCompile(`signed-\d+-`)

// Written records that messages were appended to a view.
func (p Prefixes) Written(view, messages []chat.Message) {
	all := append(append([]chat.Message(nil), view...), messages...)
	for i, block := range p.blocks(all) {
		for id, hash := range block {
			if i >= len(view) {
				p[id] = hash
			}
		}
	}
}

// Valid returns the blocks in a view, and an error if one of them was written on another
// prefix.
func (p Prefixes) Valid(view []chat.Message) (blocks map[string]bool, err error) {
	blocks = map[string]bool{}
	for i, block := range p.blocks(view) {
		for id, hash := range block {
			blocks[id] = true
			if p[id] != hash {
				err = fmt.Errorf("message %d of the view holds %s, which was written on another prefix", i, id)
			}
		}
	}
	return blocks, err
}

// blocks returns for each message the blocks it holds, each with the hash of the messages before
// it.
func (Prefixes) blocks(view []chat.Message) []map[string][sha256.Size]byte {
	out := make([]map[string][sha256.Size]byte, len(view))
	h := sha256.New()
	for i, m := range view {
		m.ID, m.SourceID, m.CreatedAt = "", "", time.Time{}
		raw := m.AppendJSON(nil)
		out[i] = map[string][sha256.Size]byte{}
		for _, id := range signedID.FindAllString(string(raw), -1) {
			out[i][id] = [sha256.Size]byte(h.Sum(nil))
		}
		h.Write(raw)
		h.Write([]byte{'\n'})
	}
	return out
}
