package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/chat/formats"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// compactFileCmd compacts a file without any server.
type compactFileCmd struct {
	In          string   `arg:"" help:"JSONL or JSON file; - is standard input."`
	Strategy    []string `sep:"none" xor:"how" placeholder:"NAME[:P=V,…]" help:"Run this strategy in place of a policy's pipeline; repeatable, in order."`
	Policy      string   `xor:"how" placeholder:"PRESET|FILE" help:"Policy: a preset's name, or a configuration file; else the one that is configured."`
	Format      string   `default:"auto" placeholder:"NAME" help:"Format of the file, else found by its content: ${formats}."`
	To          string   `default:"chat" placeholder:"NAME" help:"Format of --out: ${formats}."`
	Model       string   `placeholder:"NAME" help:"Model of sessions that name none: its tokenizer and its window."`
	Pin         []string `sep:"none" placeholder:"ID" help:"Keep the message with this id, verbatim; repeatable."`
	AllowGrowth bool     `help:"Keep a result that has more tokens than before."`
	Explain     bool     `help:"Say what the policy comes to, and name every message that is out."`
	Full        bool     `help:"Show whole texts."`
	Out         string   `short:"o" placeholder:"FILE" help:"Write the view to this file, in place of showing it. It appears when it is complete."`
}

// Help documents the command.
func (*compactFileCmd) Help() string {
	var b strings.Builder
	b.WriteString(`Needs no server and stores nothing. A file is recognized by its content; message n of a session has seq n, and what a strategy writes has the seqs behind them. With a policy the pipeline stops at its target, whether or not the session is over its start; with --strategy exactly these run.

Presets:

`)
	for _, p := range policy.Presets() {
		fmt.Fprintf(&b, "    %-20s %s\n", p.Name, p.Doc)
		if p.Summarizer {
			fmt.Fprintf(&b, "    %-20s   needs a summarizer\n", "")
		}
	}
	b.WriteByte('\n')
	writeStrategyHelp(&b)
	b.WriteString(`
Examples:

    compactor compact-file history.jsonl
    compactor compact-file history.jsonl --policy chat --explain
    compactor compact-file history.jsonl --strategy sliding_window:keep_last_groups=20 --out short.jsonl
    compactor compact-file - --policy tool_heavy --json < history.jsonl | jq '.sessions[].after'`)
	return b.String()
}

// fileJSON is a compacted session as scripts get it.
type fileJSON struct {
	Session  string         `json:"session"`
	Model    string         `json:"model,omitempty"`
	Before   totalsJSON     `json:"before"`
	After    totalsJSON     `json:"after"`
	Grew     bool           `json:"grew,omitempty"`
	Steps    []stepJSON     `json:"steps,omitempty"`
	Repaired map[string]int `json:"repaired,omitempty"`
	Explain  []string       `json:"explain,omitempty"`
	// Other counts what the file holds beside messages.
	Other    map[string]int `json:"other,omitempty"`
	View     []viewedJSON   `json:"view"`
	Excluded []excludedJSON `json:"excluded"`
}

// viewedJSON is a message of the view.
type viewedJSON struct {
	Seq       chat.Seq        `json:"seq"`
	Kind      chat.Kind       `json:"kind"`
	Role      chat.Role       `json:"role"`
	Tokens    chat.Tokens     `json:"tokens"`
	SummaryOf string          `json:"summary_of,omitempty"`
	Message   json.RawMessage `json:"message"`
}

// excludedJSON is a message out of it.
type excludedJSON struct {
	Seq    chat.Seq    `json:"seq"`
	ID     string      `json:"id,omitempty"`
	Role   chat.Role   `json:"role"`
	Tokens chat.Tokens `json:"tokens"`
	Reason string      `json:"reason"`
	By     chat.Seq    `json:"by,omitempty"`
}

// Run runs the command.
func (c *compactFileCmd) Run(ctx context.Context, e *Env) (err error) {
	cfg, err := c.config(e)
	if err != nil {
		return err
	}
	in, err := c.open(e)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	var target *os.File
	if c.Out != "" {
		if target, err = os.CreateTemp(filepath.Dir(c.Out), "."+filepath.Base(c.Out)+".*"); err != nil {
			return &exitError{exitUsage, fmt.Errorf("--out: %w", err)}
		}
		defer func() { err = errors.Join(err, finishFile(target, c.Out, err == nil)) }()
	}
	sessions := []fileJSON{}
	r, err := formats.NewReader(in, c.Format)
	if err != nil {
		return wrong("--format: %w", err)
	}
	if _, err := formats.Lookup(c.To); err != nil {
		return wrong("--to: %w", err)
	}
	lost := formats.Losses{}
	for n := 1; ; n++ {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return &exitError{exitUsage, fmt.Errorf("%s: %w", c.In, err)}
		}
		if s.ID == "" {
			s.ID = fmt.Sprintf("session %d", n)
		}
		if s.Model == "" {
			s.Model = c.Model
		}
		f, err := c.session(ctx, e, cfg, s.Session)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", c.In, term.Clean(s.ID), err)
		}
		if other := kinds(s.Report.Other); other != "" && !e.JSON {
			e.note("%s: not messages of their own: %s", term.Clean(s.ID), other)
		}
		if target != nil {
			s.Messages = f.conversation.View()
			losses, err := formats.Write(target, c.To, s.Session, formats.Options{})
			if err != nil {
				return err
			}
			for kind, n := range losses {
				lost[kind] += n
			}
		}
		if e.JSON {
			one := f.json()
			one.Other = s.Report.Other
			sessions = append(sessions, one)
			continue
		}
		if n > 1 {
			e.say("")
		}
		if err := c.print(e, f); err != nil {
			return err
		}
		sessions = append(sessions, fileJSON{})
	}
	if len(lost) > 0 {
		e.note("%s: %s cannot hold: %s", c.Out, c.To, kinds(lost))
	}
	switch {
	case len(sessions) == 0:
		return wrong("%s: no session in it", c.In)
	case e.JSON:
		return term.JSON(e.Out.W, map[string]any{"sessions": sessions})
	}
	return nil
}

// kinds are counts by kind, on one line.
func kinds(counts map[string]int) string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, term.Clean(kind)+" "+term.Count(counts[kind]))
	}
	return strings.Join(out, ", ")
}

// config is the configuration with the policy that was asked for.
func (c *compactFileCmd) config(e *Env) (config.Config, error) {
	switch {
	case c.Policy == "":
	case slices.Contains(policy.PresetNames(), c.Policy):
		e.flags["policy.preset"] = c.Policy
	default:
		if _, err := os.Stat(c.Policy); err != nil {
			return config.Config{}, wrong("--policy: %s: want a configuration file or one of %s", c.Policy, strings.Join(policy.PresetNames(), ", "))
		}
		e.file = c.Policy
	}
	return e.Config()
}

func (c *compactFileCmd) open(e *Env) (io.ReadCloser, error) {
	files, _, err := openSources([]string{c.In}, e.Stdin, c.Format)
	if err != nil {
		return nil, err
	}
	return files[0].in, nil
}

// compactedFile is what became of a session.
type compactedFile struct {
	session      chat.Session
	conversation *strategies.Conversation
	report       strategies.Report
	explain      []string
	target       chat.Tokens // the policy's, 0 for none
}

func (c *compactFileCmd) session(ctx context.Context, e *Env, cfg config.Config, s chat.Session) (*compactedFile, error) {
	p, explain, err := c.pipeline(cfg, s.Model)
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for i := range s.Messages {
		ids[s.Messages[i].ID] = true
	}
	for _, id := range c.Pin {
		if !ids[id] {
			e.note("--pin %s: no message of session %s has this id", id, term.Clean(s.ID))
		}
	}
	f := &compactedFile{session: s, target: p.Target, conversation: strategies.NewConversation(strategies.Options{
		Counter: tokens.ForModel(s.Model), PinIDs: c.Pin, AllowGrowth: c.AllowGrowth,
	})}
	if c.Explain {
		f.explain = explain
	}
	f.conversation.Append(s.Messages...)
	f.report, err = f.conversation.Compact(ctx, p)
	return f, err
}

// pipeline is what is run on a session of a model, and what it comes to in words.
func (c *compactFileCmd) pipeline(cfg config.Config, model string) (p strategies.Pipeline, explain []string, err error) {
	pol := cfg.Policy
	limits := pol.Limits(model, tokens.Window)
	p.Guard.DropSystem = !pol.PreserveSystem
	if len(c.Strategy) > 0 {
		own, err := parseStrategies(c.Strategy, pol)
		if err != nil {
			return p, nil, err
		}
		pol.Pipeline = nil
		for _, s := range own {
			pol.Pipeline = append(pol.Pipeline, policy.Step{Strategy: s.Strategy, Params: s.Params})
		}
		for i, s := range pol.Steps(limits) {
			params, err := json.Marshal(s.Params)
			if err != nil {
				return p, nil, err
			}
			explain = append(explain, fmt.Sprintf("step %d %s %s", i+1, s.Strategy, params))
		}
	} else {
		p.Target, p.Fallback = limits.Target, pol.Fallback
		explain = pol.Explain(model, tokens.Window)
	}
	registry := strategies.Builtin()
	for _, s := range pol.Steps(limits) {
		built, err := registry.New(s.Strategy, s.Params)
		if err != nil {
			return p, nil, &exitError{exitUsage, err}
		}
		p.Steps = append(p.Steps, built)
	}
	return p, explain, nil
}

func (f *compactedFile) json() fileJSON {
	r := &f.report
	out := fileJSON{
		Session: f.session.ID, Model: f.session.Model, Before: newTotalsJSON(r.Before), After: newTotalsJSON(r.After), Grew: r.Grew,
		Steps: newStepsJSON(r.Steps), Explain: f.explain, View: []viewedJSON{}, Excluded: []excludedJSON{},
	}
	for _, x := range r.Repairs {
		if out.Repaired == nil {
			out.Repaired = map[string]int{}
		}
		out.Repaired[x.Reason] += x.Messages
	}
	for _, m := range f.stored() {
		v := viewedJSON{Seq: m.Seq, Kind: m.Kind, Role: m.Role, Tokens: m.Tokens, Message: m.AppendJSON(nil)}
		if len(m.SummaryOf) > 0 {
			v.SummaryOf = m.SummaryOf.String()
		}
		out.View = append(out.View, v)
	}
	for _, x := range r.Excluded {
		out.Excluded = append(out.Excluded, excludedJSON{x.Seq, x.ID, x.Role, x.Tokens, x.Reason, x.By})
	}
	return out
}

// stored is the view as messages that can be shown.
func (f *compactedFile) stored() []store.Stored {
	covers := map[chat.Seq]chat.Ranges{}
	for _, w := range f.report.Written {
		covers[w.Seq] = w.Covers
	}
	var out []store.Stored
	for _, m := range f.conversation.Records() {
		if m.Included {
			out = append(out, store.Stored{
				Message: m.Message, Seq: m.Seq, Kind: m.Kind, Tokens: m.Tokens, Included: true, Pinned: m.Pinned, SummaryOf: covers[m.Seq],
			})
		}
	}
	return out
}

// print shows a session as people read it.
func (c *compactFileCmd) print(e *Env, f *compactedFile) error {
	r := &f.report
	style := e.Out.Style()
	e.say("%s%s", style.Bold(term.Clean(f.session.ID)), style.Dim("  "+orDash(term.Clean(f.session.Model))))
	for _, line := range f.explain {
		e.say("%s", line)
	}
	b, a := r.Before, r.After
	if err := e.Out.Pairs(
		[2]any{"groups", change(int64(b.IncludedGroups), int64(a.IncludedGroups))},
		[2]any{"messages", change(int64(b.IncludedMessages), int64(a.IncludedMessages))},
		[2]any{"tool calls", change(int64(b.IncludedToolCalls), int64(a.IncludedToolCalls))},
		[2]any{"tokens", change(int64(b.IncludedTokens), int64(a.IncludedTokens))},
	); err != nil {
		return err
	}
	switch {
	case r.Grew:
		e.say("nothing changed: the view would have become larger; --allow-growth keeps it all the same")
	case !r.Changed() && f.target > 0 && a.IncludedTokens <= f.target:
		e.say("nothing to do: the view is within the policy's target of %s tokens (--start and --target give others)", term.Count(f.target))
	case !r.Changed():
		e.say("nothing to compact")
	}
	for _, x := range r.Repairs {
		e.say("mended: %s in %s", x.Reason, term.Plural(x.Messages, "message", "messages"))
	}
	if err := writeSteps(e, r.Steps); err != nil {
		return err
	}
	if c.Out == "" {
		e.say("")
		writeMessages(e, f.stored(), c.Full)
	}
	if len(r.Excluded) == 0 {
		return nil
	}
	e.say("")
	if c.Explain {
		return f.eachExcluded(e)
	}
	return f.excludedByReason(e)
}

// eachExcluded names every message that is out.
func (f *compactedFile) eachExcluded(e *Env) error {
	t := e.Out.Table(term.Num("OUT"), term.Text("ROLE"), term.Num("TOKENS"), term.Text("REASON"), term.Text("IN ITS PLACE"), term.Text("ID"))
	for _, x := range f.report.Excluded {
		t.Row(int64(x.Seq), term.Clean(string(x.Role)), int64(x.Tokens), x.Reason, inPlace(x.By), term.Clean(x.ID))
	}
	return t.Write()
}

// excludedByReason puts those together that are out for one reason.
func (f *compactedFile) excludedByReason(e *Env) error {
	type key struct {
		reason string
		by     chat.Seq
	}
	type sum struct {
		messages int
		tokens   chat.Tokens
		seqs     chat.Ranges
	}
	var order []key
	sums := map[key]*sum{}
	for _, x := range f.report.Excluded {
		k := key{x.Reason, x.By}
		if sums[k] == nil {
			sums[k] = &sum{}
			order = append(order, k)
		}
		s := sums[k]
		s.messages++
		s.tokens += x.Tokens
		s.seqs = append(s.seqs, chat.Range{Lo: x.Seq, Hi: x.Seq + 1})
	}
	t := e.Out.Table(term.Text("OUT FOR"), term.Num("MESSAGES"), term.Num("TOKENS"), term.Text("SEQS"), term.Text("IN THEIR PLACE"))
	for _, k := range order {
		s := sums[k]
		t.Row(k.reason, s.messages, int64(s.tokens), chat.Ranges{}.Union(s.seqs).String(), inPlace(k.by))
	}
	return t.Write()
}

func inPlace(by chat.Seq) string {
	if by == 0 {
		return ""
	}
	return fmt.Sprintf("message %d", by)
}
