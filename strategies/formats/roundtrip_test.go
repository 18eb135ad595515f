package formats_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

// features describes the parts that a generated session may have.
type features struct {
	system, ids, times, names, model, extra          bool
	reasoning, signed, redacted, items, media, parts bool
	developer, custom, broken, flags, errors, runs   bool
	empty, ordered                                   bool
}

var words = rapid.StringMatching(`[a-zé<>&"\\ \n]{0,12}[a-z]`)

func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

type generator struct {
	*rapid.T
	features
	s     chat.Session
	calls int
}

// session draws a session whose calls are answered, in turns.
func session(t *rapid.T, f features) chat.Session {
	g := &generator{T: t, features: f}
	g.s.ID = rapid.StringMatching(`[a-z0-9-]{1,8}`).Draw(t, "id")
	if f.model {
		g.s.Model = "gpt-4o"
	}
	if f.system {
		g.add(chat.Message{Role: chat.RoleSystem, Content: chat.TextContent(words.Draw(t, "system"))})
	}
	for range rapid.IntRange(1, 4).Draw(t, "turns") {
		g.user()
		for range rapid.IntRange(0, 2).Draw(t, "steps") {
			g.calling()
		}
		if f.runs && rapid.Bool().Draw(t, "silent") {
			continue
		}
		g.add(chat.Message{Role: chat.RoleAssistant, Content: g.content(chat.RoleAssistant)})
	}
	return g.s
}

func (g *generator) add(m chat.Message) {
	n := len(g.s.Messages) + 1
	if g.ids && g.chance("has id") {
		m.ID = fmt.Sprintf("m%d", n)
	}
	if g.times && g.chance("has time") {
		m.CreatedAt = time.Unix(1_700_000_000+int64(n), int64(n)*1e6).UTC()
	}
	if g.names && g.chance("has name") {
		m.Name = "bob"
	}
	if g.extra && g.chance("has extra") {
		m.Extra = map[string]json.RawMessage{"hue": raw(n)}
	}
	if g.reasoning && m.Role == chat.RoleAssistant && g.chance("reasons") {
		m.Reasoning, m.ReasoningKey = "because", "reasoning_content"
	}
	g.s.Messages = append(g.s.Messages, m)
}

func (g *generator) chance(label string) bool { return rapid.Bool().Draw(g.T, label) }

func (g *generator) user() {
	for range rapid.IntRange(1, 2).Draw(g.T, "users") {
		role := chat.RoleUser
		if g.developer && g.chance("developer") {
			role = chat.RoleDeveloper
		}
		m := chat.Message{Role: role, Content: g.content(role)}
		if g.flags && role == chat.RoleUser && g.chance("summary") {
			m.Content = chat.TextContent("summary")
			m.Extra = map[string]json.RawMessage{"is_compact_summary": raw(true)}
		}
		g.add(m)
		if !g.runs {
			return
		}
	}
}

func (g *generator) content(role chat.Role) chat.Content {
	if g.empty && g.chance("empty") {
		return chat.TextContent("")
	}
	text := words.Draw(g.T, "text")
	var parts []any
	if role == chat.RoleAssistant {
		if g.items && g.chance("item") {
			parts = append(parts, map[string]any{"type": "reasoning", "id": "rs_1", "summary": []any{}, "encrypted_content": "x"})
		}
		if g.signed && g.chance("signed") {
			parts = append(parts, map[string]any{"type": "thinking", "thinking": "hm", "signature": "sig"})
		}
		if g.redacted && g.chance("redacted") {
			parts = append(parts, map[string]any{"type": "redacted_thinking", "data": "xx"})
		}
	}
	if g.media && role == chat.RoleUser && g.chance("image") {
		parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64,AAAA"}})
	}
	if g.parts && g.chance("two texts") {
		parts = append(parts, map[string]any{"type": "text", "text": "first"})
	}
	if len(parts) == 0 {
		return chat.TextContent(text)
	}
	parts = append(parts, map[string]any{"type": "text", "text": text})
	var m chat.Message
	if err := json.Unmarshal(raw(map[string]any{"role": role, "content": parts}), &m); err != nil {
		g.Fatal(err)
	}
	return m.Content
}

// calling adds a call message and its results.
func (g *generator) calling() {
	m := chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}}
	if g.chance("says something") {
		m.Content = g.content(chat.RoleAssistant)
	}
	n := rapid.IntRange(1, 3).Draw(g.T, "calls")
	for range n {
		g.calls++
		c := chat.ToolCall{ID: fmt.Sprintf("call_%d", g.calls), Type: "function", Name: "look", Arguments: `{"a": "` + string(rune('a'+g.calls%26)) + `"}`}
		if g.broken && g.chance("broken") {
			c.Arguments = `{"a":`
		}
		if g.custom && g.chance("custom") {
			c.Type, c.Arguments = "custom", "free text"
		}
		m.ToolCalls = append(m.ToolCalls, c)
	}
	g.add(m)
	order := m.CallIDs()
	if g.ordered {
		order = rapid.Permutation(order).Draw(g.T, "order")
	}
	if g.runs && g.chance("a result is missing") {
		order = order[1:]
	}
	for _, id := range order {
		r := chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: chat.TextContent(words.Draw(g.T, "result"))}
		if g.errors && g.chance("error") {
			r.Extra = map[string]json.RawMessage{"is_error": raw(true)}
		}
		g.add(r)
	}
}

// within holds the features of each format.
var within = map[string]features{
	"chat": {
		system: true, ids: true, times: true, names: true, model: true, extra: true, reasoning: true, signed: true, redacted: true,
		items: true, media: true, parts: true, developer: true, custom: true, broken: true, flags: true, errors: true, runs: true, empty: true, ordered: true,
	},
	"anthropic": {system: true, model: true, signed: true, redacted: true, media: true, parts: true, errors: true, ordered: true},
	"responses": {
		system: true, model: true, items: true, media: true, parts: true, developer: true, custom: true, broken: true, ordered: true,
	},
	"sharegpt":    {system: true, model: true, broken: true, runs: true, empty: true, ordered: true},
	"claude-code": {ids: true, times: true, signed: true, redacted: true, media: true, parts: true, flags: true, errors: true, runs: true, empty: true, ordered: true},
	"codex": {
		system: true, times: true, model: true, items: true, media: true, parts: true, developer: true, custom: true, broken: true, flags: true, ordered: true,
	},
	"pi": {ids: true, times: true, model: true, signed: true, media: true, parts: true, flags: true, errors: true, runs: true, empty: true, ordered: true},
}

// TestFormatsKeepTheirFeatures checks that a session with only features of a format is read as
// it was written.
func TestFormatsKeepTheirFeatures(t *testing.T) {
	t.Parallel()
	for _, f := range formats.All() {
		if !f.Written() {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				s := session(rt, within[f.Name])
				out, losses := write(t, s, f.Name)
				if len(losses) > 0 {
					rt.Fatalf("lost %v of\n%v", losses, outline(s))
				}
				back := one(t, out, f.Name)
				if diff := cmp.Diff(canon(t, s), canon(t, back.Session)); diff != "" {
					rt.Fatalf("round trip (-want +got):\n%s\n%s", diff, out)
				}
				for _, m := range back.Messages {
					for key := range formats.WithoutKeys(m, formats.Losses{}).Extra {
						if f.Name != "chat" && !slices.Contains(chat.ReasoningKeys, key) {
							rt.Fatalf("the reader of %s sets the key %s, which WithoutKeys does not know", f.Name, key)
						}
					}
				}
				if f.Name != "anthropic" { // which plain texts alone do not show
					if got := formats.Detect([]byte(out)); got != f.Name {
						rt.Fatalf("detected %s in\n%s", got, out)
					}
				}
			})
		})
	}
}

// TestLossesAreTheDifferences checks for any session and format that losses are reported
// exactly if the session is read differently from how it was written, and that it does not
// change any more after that.
func TestLossesAreTheDifferences(t *testing.T) {
	t.Parallel()
	for _, f := range formats.All() {
		if !f.Written() {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				on := func(name string) bool { return rapid.IntRange(0, 5).Draw(rt, name) == 0 }
				s := session(rt, features{
					system: on("system"), ids: on("ids"), times: on("times"), names: on("names"), model: on("model"), extra: on("extra"),
					reasoning: on("reasoning"), signed: on("signed"), redacted: on("redacted"), items: on("items"), media: on("media"),
					parts: on("parts"), developer: on("developer"), custom: on("custom"), broken: on("broken"), flags: on("flags"),
					errors: on("errors"), runs: on("runs"), empty: on("empty"), ordered: on("ordered"),
				})
				out, losses := write(t, s, f.Name)
				all := read(t, out, f.Name)
				if len(all) == 0 {
					if out != "" || len(losses) == 0 {
						rt.Fatalf("no session in %q, lost %v", out, losses)
					}
					return
				}
				back := all[0].Session
				diff := cmp.Diff(canon(t, s), canon(t, back))
				if (diff == "") != (len(losses) == 0) {
					rt.Fatalf("lost %v, but (-want +got):\n%s\n%s", slices.Sorted(maps.Keys(losses)), diff, out)
				}
				again, _ := write(t, back, f.Name)
				if diff := cmp.Diff(canon(t, back), canon(t, one(t, again, f.Name).Session)); diff != "" {
					rt.Fatalf("a second time (-want +got):\n%s\n%s", diff, again)
				}
				counted(rt, f.Name, s, back, losses)
			})
		})
	}
}

// counted holds the counts of losses that are fields against the fields.
func counted(t *rapid.T, format string, before, after chat.Session, losses formats.Losses) {
	for kind, has := range map[string]func(chat.Message) bool{
		"created_at": func(m chat.Message) bool { return !m.CreatedAt.IsZero() },
		"name":       func(m chat.Message) bool { return m.Name != "" },
		"id":         func(m chat.Message) bool { return m.ID != "" },
	} {
		n := 0
		for _, m := range before.Messages {
			if has(m) && (losses["system message"] == 0 || m.Role != chat.RoleSystem && m.Role != chat.RoleDeveloper) {
				n++
			}
		}
		for _, m := range after.Messages {
			if has(m) {
				n--
			}
		}
		if n != losses[kind] && losses["joined"]+losses["empty message"] == 0 {
			t.Fatalf("%s: %d differ in %s, %d reported", format, n, kind, losses[kind])
		}
	}
}
