package strategies_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// providers pipes prompts to the rules of others (testdata/providers/check.mjs).
type providers struct {
	in     io.WriteCloser
	out    bytes.Buffer
	errors bytes.Buffer
	cmd    *exec.Cmd
	n      int
}

func startProviders(t *testing.T) *providers {
	t.Helper()
	if testing.Short() {
		t.Skip("computes for long, with little concurrency")
	}
	const dir = "testdata/providers"
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		if os.Getenv("REQUIRE_NODE") != "" {
			t.Fatalf("%v: npm ci --prefix strategies/%s", err, dir)
		}
		t.Skipf("the rules of providers are not installed: npm ci --prefix strategies/%s", dir)
	}
	p := &providers{cmd: exec.CommandContext(t.Context(), "node", "check.mjs")}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, &p.out, &p.errors
	var err error
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// check compacts a session and writes the view for each provider.
func (p *providers) check(t *testing.T, name string, s chat.Session, step plan.Strategy) {
	t.Helper()
	c := strategies.NewConversation(strategies.Options{Counter: sessiontest.Quarter{}, AllowGrowth: true})
	c.Append(s.Messages...)
	if _, err := c.Compact(t.Context(), pipeline.Pipeline{Steps: []plan.Strategy{step}}); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	s.Messages = c.View()
	for _, format := range []string{"chat", "anthropic", "responses", "ai-sdk"} {
		var b bytes.Buffer
		var err error
		if format == "ai-sdk" {
			_, err = formats.WriteModelMessages(&b, s)
		} else {
			_, err = formats.Write(&b, format, s, formats.Options{})
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p.n++
		if _, err := fmt.Fprintf(p.in, `{"name":%q,"format":%q,"doc":%s}`+"\n", name+" after "+step.Name(), format, bytes.TrimSpace(b.Bytes())); err != nil {
			t.Fatalf("%v: %s", err, p.errors.String())
		}
	}
}

// end fails for each prompt that is refused, the first ten in words.
func (p *providers) end(t *testing.T) {
	t.Helper()
	if err := errors.Join(p.in.Close(), p.cmd.Wait()); err != nil {
		t.Fatalf("%v: %s", err, p.errors.String())
	}
	refused, checked := 0, 0
	for lines := bufio.NewScanner(&p.out); lines.Scan(); {
		var r struct {
			Name, Format string
			Problems     []string
			Prompts      int
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		checked += r.Prompts
		if len(r.Problems) == 0 {
			continue
		}
		if refused++; refused <= 10 {
			t.Errorf("%s, %s:\n  %s", r.Name, r.Format, strings.Join(r.Problems, "\n  "))
		}
	}
	if refused > 0 || checked != p.n {
		t.Errorf("%d of %d prompts are refused, %d were checked", refused, p.n, checked)
	}
}

// steps returns the strategies that histories are compacted with.
func steps(t *testing.T) []plan.Strategy {
	t.Helper()
	var out []plan.Strategy
	for _, c := range []struct {
		name   string
		params plan.Params
	}{
		{"keep_last_n_messages", plan.Params{"n": 7}},
		{"keep_last_n_turns", plan.Params{"n": 2}},
		{"sliding_window", plan.Params{"keep_last_groups": 4}},
		{"truncation", plan.Params{"max_n": 9, "compact_to": 6}},
		{"tool_result", plan.Params{"keep_last_tool_call_groups": 1}},
		{"selective_tool_call", plan.Params{"keep_last_tool_call_groups": 1}},
		{"prune_tool_results", plan.Params{"protect_last_n": 5}},
		{"compact_tool_results", plan.Params{}},
		{"clear_tool_arguments", plan.Params{}},
		{"extractive", plan.Params{}},
		{"clamp", plan.Params{"max_tokens": 100000}},
	} {
		s, err := builtin.Registry().New(c.name, c.params)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// history draws a conversation as agents and gateways leave them: call ids that repeat in each
// turn or in one message, or with other characters, results that are late, lost, failed or without a
// call, calls from before tools, parallel calls a message each, reasoning that is signed, texts of white space.
type history struct {
	*rand.Rand
	ms                          []chat.Message
	calls                       int
	same, restart, legacy, tidy bool
	id                          string // form of the ids of calls
	signed                      int    // form, SignedForms for none
}

func (h *history) one(n int) bool { return h.IntN(n) == 0 }

func drawHistory(seed int) []chat.Message {
	h := &history{Rand: rand.New(rand.NewPCG(1, uint64(seed)))} //nolint:gosec // a test
	h.same, h.restart, h.legacy, h.tidy = h.one(5), h.one(3), h.one(5), h.one(3)
	h.signed = h.IntN(2 * sessiontest.SignedForms)
	h.id = []string{"call_%d", "call_%d", "functions.look:%d", "call_%d|fc_1"}[h.IntN(4)]
	if h.one(2) {
		h.add(sessiontest.Sys("Help."))
	}
	for range 1 + h.IntN(6) {
		if h.restart {
			h.calls = 0
		}
		h.add(sessiontest.User(h.text()))
		for range h.IntN(4) {
			h.step()
		}
		if !h.one(4) {
			h.say(sessiontest.Says(h.text()))
		}
	}
	return h.ms
}

func (h *history) add(m chat.Message) { h.ms = append(h.ms, m) }

// say adds a message of the assistant, perhaps with reasoning, and with ids of Responses.
func (h *history) say(m chat.Message) {
	n := len(h.ms) + 1
	if h.signed < sessiontest.SignedForms && !h.one(3) {
		m = sessiontest.Sign(m, h.signed, n)
	}
	if h.one(2) {
		m.ID = fmt.Sprintf("msg_%d", n)
	}
	h.add(m)
}

func (h *history) text() string {
	if !h.tidy && h.one(8) {
		return []string{" ", "\n\n", "\t"}[h.IntN(3)]
	}
	return fmt.Sprintf("Part %d: %s.", len(h.ms), strings.Repeat("some words ", h.IntN(20)))
}

// step adds calls and their results.
func (h *history) step() {
	if h.legacy && h.one(2) {
		h.add(chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}, Legacy: true, ToolCalls: []chat.ToolCall{{Name: "f", Arguments: "{}"}}})
		if h.tidy || !h.one(8) {
			h.add(chat.Message{Role: chat.RoleTool, Legacy: true, Name: "f", Content: chat.TextContent(h.text())})
		}
		return
	}
	m := chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}}
	if h.one(3) {
		m.Content = chat.TextContent(h.text())
	}
	for range 1 + h.IntN(3) {
		h.calls++
		id := fmt.Sprintf(h.id, h.calls)
		if h.same && len(m.ToolCalls) > 0 {
			id = m.ToolCalls[0].ID
		}
		c := chat.ToolCall{ID: id, Type: "function", Name: "look", Arguments: fmt.Sprintf(`{"n":%d}`, h.calls)}
		if h.one(2) {
			c.Raw = json.RawMessage(fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"look","arguments":"{}"},"responses":{"id":"fc_%d","status":"completed"}}`, id, h.calls))
		}
		m.ToolCalls = append(m.ToolCalls, c)
	}
	ids := m.CallIDs()
	if h.one(6) { // a message for each call
		for _, c := range m.ToolCalls {
			h.say(chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}, ToolCalls: []chat.ToolCall{c}})
		}
	} else {
		h.say(m)
	}
	h.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for i, id := range ids {
		if !h.tidy {
			switch h.IntN(24) {
			case 0:
				return // interrupted
			case 1:
				continue // lost
			case 2:
				h.add(sessiontest.User("Wait."))
			case 3:
				h.add(sessiontest.Result("nobody", h.text()))
			}
		}
		r := sessiontest.Result(id, fmt.Sprintf("%s result %d", h.text(), i))
		if h.one(8) {
			r.Extra = map[string]json.RawMessage{"is_error": json.RawMessage("true")}
			r.Content = []chat.Content{r.Content, {}, chat.TextContent(" "), {Parts: []chat.Part{{Type: "text", Text: " "}}}}[h.IntN(4)]
		}
		h.add(r)
	}
}

func TestProvidersTakeWhatIsWrittenForThem(t *testing.T) {
	t.Parallel()
	p := startProviders(t)
	all := steps(t)
	for i := range 2000 {
		p.check(t, fmt.Sprintf("history %d", i), chat.Session{ID: "s", Messages: drawHistory(i)}, all[i%len(all)])
	}
	p.end(t)
}

func TestProvidersTakeRecordedSessions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../shared/data/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Skipf("no recorded conversations in ../../shared/data: %v", err)
	}
	p := startProviders(t)
	all := steps(t)
	n := 0
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := formats.NewReader(f, formats.Auto)
		if err != nil {
			t.Fatal(err)
		}
		for {
			s, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			n++
			p.check(t, filepath.Base(name)+" "+s.ID, s.Session, all[n%len(all)])
		}
	}
	t.Logf("%d sessions", n)
	p.end(t)
}
