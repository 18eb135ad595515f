package extract

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract/internal/reference"
	"github.com/sessionstore/compactor/strategies/redact"
)

// words are the parts of random texts: identifiers, keywords, scripts, and delimiters of
// summaries.
var words = []string{
	"fix", "the", "test", "never", "because", "why?", "ok.", "pkg/queue/retry.go", "`TestBackoff`", "id: 20418", "W12345X", "é", "日本語。", "必须", "؟",
	"\n", "\n\n", "\r", "\u2028", "\x00", "\t", "\n## References\n", "\n## Active Task\n", "## Goal", "> quoted", "Asked: that", "Before: > that", "\nAsked: this", "- item", "label: value",
	"error:", "exit code 1", "```", "- [ ] todo", "https://example.com/a?b=c", "'a, b'", "\"c; d\"", "a@example.com", " …", "Made from 7 messages without a model.",
	"API_KEY=abcdefghijklmnopqrstuvwxyz0123", "password: hunter2hunter2", "token: `TestLexer`", "[END]", "</summary>", "\xff", "\ufffd",
}

func drawText(t *rapid.T, name string) string {
	return strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(words), rapid.StringN(0, 8, -1)), 0, 25).Draw(t, name), " ")
}

// drawMessage returns a random message, mostly with a time: of one of a few days, in any order.
func drawMessage(t *rapid.T) *chat.Message {
	m := drawUndated(t)
	if day := rapid.IntRange(0, 4).Draw(t, "day"); day > 0 {
		m.CreatedAt = time.Date(2026, 2, day, 23, 59, 0, 0, time.UTC)
	}
	return m
}

func drawUndated(t *rapid.T) *chat.Message {
	id := rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "id")
	switch rapid.IntRange(0, 5).Draw(t, "role") {
	case 0, 1:
		return user(drawText(t, "ask"))
	case 2:
		if rapid.Bool().Draw(t, "listing") {
			return result(id, drawListing(t))
		}
		return result(id, drawText(t, "result"))
	case 3:
		return assistant(drawText(t, "reply"))
	case 4:
		return says(chat.Role(rapid.SampledFrom([]string{"system", "developer", "other"}).Draw(t, "other")), drawText(t, "text"))
	}
	m := calls(drawText(t, "reply"), id, rapid.SampledFrom([]string{"bash", "edit_file", "x\n## Goal", "> x", "Asked"}).Draw(t, "tool"),
		rapid.SampledFrom([]string{"command", "file_path", "content"}).Draw(t, "key"), drawText(t, "value"))
	if rapid.Bool().Draw(t, "odd") {
		m.ToolCalls[0].Arguments = drawText(t, "arguments")
	}
	return m
}

// drawListing returns a random list of objects with objects and lists in them.
func drawListing(t *rapid.T) string {
	object := func() map[string]any {
		o := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, "keys") {
			o[rapid.OneOf(rapid.SampledFrom([]string{"name", "price", "html_url", "x\n## Goal", "x\n> do it"}), rapid.StringN(0, 8, -1)).Draw(t, "key")] = rapid.SampledFrom(words).Draw(t, "value")
		}
		return o
	}
	var rows []map[string]any
	for range rapid.IntRange(0, 4).Draw(t, "rows") {
		row := object()
		row[rapid.SampledFrom(words).Draw(t, "inner")] = object()
		row[rapid.SampledFrom(words).Draw(t, "list")] = []any{object(), object()}
		rows = append(rows, row)
	}
	var all any = rows
	if rapid.Bool().Draw(t, "one") && len(rows) > 0 {
		all = rows[0]
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err) // strings always have a form
	}
	return string(raw)
}

func TestEveryTextIsWellFormed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.SliceOfN(rapid.Custom(drawMessage), 0, 15).Draw(t, "messages")
		previous := ""
		if rapid.Bool().Draw(t, "again") {
			previous = digestOf(Options{}, rapid.SliceOfN(rapid.Custom(drawMessage), 0, 8).Draw(t, "before")...).Text(400)
		}
		budget := rapid.IntRange(0, 700).Draw(t, "budget")
		digest := func() *Digest {
			d := New(Options{})
			d.ids = reference.NewTable(rapid.IntRange(1, 40).Draw(t, "limit"), "")
			d.AddPrevious(previous)
			for _, m := range ms {
				d.Add(m)
			}
			return d
		}
		d := digest()
		text, references := d.Text(budget), d.References(budget)
		asks := []string{}
		for _, m := range ms {
			if m.Role == chat.RoleUser {
				clean, _ := redact.Redact(m.Content.String())
				asks = append(asks, clean)
			}
		}
		if previous != "" {
			asks = nil // they are those of the text before
		}
		wantWellFormed(t, text, budget, asks)
		wantWellFormed(t, references, budget, nil)
		if again := d.Text(budget); again != text {
			t.Errorf("asked again: %q, before %q", again, text)
		}
		for _, s := range []string{text, references} {
			if _, found := redact.Redact(s); found.Total() > 0 || strings.Contains(s, "ghijklmnopqrst") {
				t.Errorf("a secret in %q", s)
			}
		}
	})
}

func TestTheSameMessagesGiveTheSameText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.SliceOfN(rapid.Custom(drawMessage), 0, 15).Draw(t, "messages")
		a, b := digestOf(Options{}, ms...), digestOf(Options{}, ms...)
		b.References(100) // looking changes nothing
		if x, y := a.Text(300), b.Text(300); x != y {
			t.Errorf("%q and %q", x, y)
		}
	})
}

func FuzzDigest(f *testing.F) {
	f.Add("do it", "done?", `{"path":"a/b.go"}`, "error: no", uint16(100))
	f.Add(strings.Join(words, " "), strings.Join(words, ""), strings.Join(words, "\n"), "", uint16(1000))
	f.Add("find it", "here", `{"near":"hall"}`, `[{"n":"Bahia","x\\n## Goal":{"p":3}},{"n":"Marina","x\\n## Goal":{"p":4}}]`, uint16(400))
	f.Add("show it", "here", `{"id":"W1"}`, `{"a":"1","b":"2","c":"3","x\\n> do it":[{"name":"lamp"},{"name":"fan"}]}`, uint16(400))
	f.Fuzz(func(t *testing.T, ask, reply, arguments, output string, budget uint16) {
		m := calls(reply, "1", reply)
		m.ToolCalls[0].Arguments = arguments
		d := digestOf(Options{}, user(ask), m, result("1", output))
		text := d.Text(int(budget))
		clean, _ := redact.Redact(ask)
		wantWellFormed(t, text, int(budget), []string{clean})
		wantWellFormed(t, d.References(int(budget)), int(budget), nil)
		next := New(Options{})
		next.AddPrevious(text)
		next.AddPrevious(output)
		next.Add(user(arguments))
		wantWellFormed(t, next.Text(int(budget)), int(budget), nil)
	})
}
