package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/worker"
)

// configuredPolicy names the policy of the configuration, where presets are named too.
const configuredPolicy = "configured"

type compactFileCmd struct {
	In          string   `arg:"" help:"JSONL or JSON file; - is standard input."`
	Strategy    []string `sep:"none" xor:"how" placeholder:"NAME[:P=V,…]" help:"Run this strategy instead of a policy's pipeline; repeatable, in order."`
	Policy      string   `xor:"how" placeholder:"PRESET|FILE" help:"Policy: the name of a preset, a configuration file, or configured (the default): that of the configuration."`
	Format      string   `default:"auto" placeholder:"NAME" help:"Format of the file: auto (by its content), ${formats}."`
	To          string   `placeholder:"NAME" help:"Format of --out, default chat: ${written}."`
	Model       string   `placeholder:"NAME" help:"Model of sessions that name none; selects the tokenizer and the window."`
	Pin         []string `sep:"none" placeholder:"ID" help:"Keep the message with this id unchanged; repeatable."`
	Strict      bool     `help:"Refuse the file if any line of it cannot be read."`
	AllowGrowth bool     `help:"Apply the result even if the view grows."`
	Explain     bool     `help:"Explain the policy's limits and list every excluded message."`
	View        bool     `help:"Show each message of the view, a line each."`
	Full        bool     `help:"Show the view with full texts."`
	Out         string   `short:"o" aliases:"output" placeholder:"FILE" help:"Write the view to this file. The file is created once it is complete."`

	steps   []policy.Step   // --strategy
	pinned  map[string]bool // ids of all messages, to report unknown --pin
	planner *worker.Planner

	registry *plan.Registry
}

func (c *compactFileCmd) Validate() error {
	if c.To != "" && c.Out == "" {
		return errors.New("--to: requires --out")
	}
	return nil
}

type fileJSON struct {
	Session string            `json:"session"`
	Model   string            `json:"model,omitempty"`
	Before  strategies.Counts `json:"before"`
	After   strategies.Counts `json:"after"`
	Grew    bool              `json:"grew,omitempty"`
	// Target is that of the policy, 0 for none. TargetChosen: the session was below it, and this
	// is a third of its tokens.
	Target       chat.Tokens `json:"target,omitempty"`
	TargetChosen bool        `json:"target_chosen,omitempty"`
	// OpenLoop reports an open tool loop whose signed reasoning keeps the messages before it.
	OpenLoop bool `json:"open_tool_loop,omitempty"`
	// Reasoning lists the messages that lost their signed reasoning.
	Reasoning []chat.Seq              `json:"reasoning_excluded,omitempty"`
	Steps     []strategies.StepCounts `json:"steps,omitempty"`
	Repaired  map[string]int          `json:"repaired,omitempty"`
	Explain   []string                `json:"explain,omitempty"`
	// Other counts the records of the file that are not messages, and Dropped the fields that
	// were left out of messages, by kind; First is the line of the first of each.
	Other    map[string]int        `json:"other,omitempty"`
	Dropped  map[string]int        `json:"left_out,omitempty"`
	First    map[string]int        `json:"first,omitempty"`
	Skipped  []formats.Skipped     `json:"skipped_lines,omitempty"`
	View     []viewedJSON          `json:"view"`
	Excluded []strategies.Excluded `json:"excluded"`
}

type viewedJSON struct {
	Seq       chat.Seq        `json:"seq"`
	ID        string          `json:"id,omitempty"`
	Kind      chat.Kind       `json:"kind"`
	Role      chat.Role       `json:"role"`
	Tokens    chat.Tokens     `json:"tokens"`
	SummaryOf string          `json:"summary_of,omitempty"`
	Message   json.RawMessage `json:"message"`
}

func (c *compactFileCmd) Run(ctx context.Context, e *Env) (err error) {
	cfg, err := c.prepare(e)
	if err != nil {
		return err
	}
	files, _, err := openSources(ctx, []string{c.In}, e.Stdin, c.Format)
	if err != nil {
		return err
	}
	defer files.close()
	target, finish, err := createFile("--out", c.Out, io.Discard, c.In)
	if err != nil {
		return err
	}
	defer finish(&err)
	r, err := formats.NewReader(files[0].in, c.Format)
	if err != nil {
		return wrong("--format: %w", err)
	}
	r.SkipLines = !c.Strict
	c.To = cmp.Or(c.To, "chat")
	if err := formats.CanWrite(c.To); err != nil {
		return wrong("--to: %w", err)
	}
	out := fileOutput{target: target, sessions: []fileJSON{}}
	c.pinned = map[string]bool{}
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return &exitError{exitUsage, fmt.Errorf("%s: %w", c.In, err)}
		}
		if err := c.write(ctx, e, cfg, n, s, &out); err != nil {
			return err
		}
	}
	if len(out.lost) > 0 {
		e.note("%s: %s cannot hold: %s", c.Out, c.To, listCounts(out.lost))
	}
	for _, id := range c.Pin {
		if !c.pinned[id] {
			e.note("--pin %s: no message has this id", id)
		}
	}
	if len(out.sessions) == 0 {
		return wrong("%s: the file holds no session", c.In)
	}
	return e.show(map[string]any{"sessions": out.sessions}, func() { c.printAll(e, &out) })
}

// prepare reads the configuration, the steps of --strategy and, if the pipeline summarizes, the
// models.
func (c *compactFileCmd) prepare(e *Env) (config.Config, error) {
	cfg, err := c.config(e)
	if err != nil {
		return cfg, err
	}
	if c.steps, err = parseStrategies(c.Strategy, cfg.Policy, e.Registry); err != nil {
		return cfg, err
	}
	pipeline := c.steps
	if len(pipeline) == 0 {
		pipeline = cfg.Policy.Pipeline
	}
	c.planner = newPlanner(cfg, e.Registry, nil)
	if summarizes(cfg.Policy.Summary, pipeline, e.Registry) {
		c.planner.Model, err = openModels(cfg, e.Environ, e.Err.Logger("warn", cfg.Log.Format), nil, nil)
	}
	return cfg, err
}

// fileOutput collects the results of the sessions of a file.
type fileOutput struct {
	target   io.Writer        // of --out
	lost     map[string]int   // what its format cannot hold
	sessions []fileJSON       // without --json, without view and excluded messages
	detailed []*compactedFile // the first of them that are shown one by one at the end
}

// write compacts session n of the file and writes, shows or collects the result.
func (c *compactFileCmd) write(ctx context.Context, e *Env, cfg config.Config, n int, s formats.Session, out *fileOutput) error {
	name := cmp.Or(s.ID, fmt.Sprintf("session %d", n))
	if s.Model == "" {
		s.Model = c.Model
	}
	e.noteUnknown(cfg, s.Model)
	f, err := c.session(ctx, cfg, s.Session)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", c.In, term.Clean(name), err)
	}
	f.name = name
	if !e.JSON {
		noteReport(e, name, s.Report)
	}
	if c.Out != "" {
		s.Messages = f.conversation.View()
		losses, err := formats.Write(out.target, c.To, s.Session, formats.Options{})
		if err != nil {
			return err
		}
		add(&out.lost, losses)
	}
	one := f.json(e.JSON)
	one.Other, one.Dropped, one.First, one.Skipped = s.Report.Other, s.Report.Dropped, s.Report.First, s.Report.Skipped
	out.sessions = append(out.sessions, one)
	switch {
	case e.JSON:
	case c.Explain || c.View || c.Full:
		if n > 1 {
			e.say("")
		}
		c.print(e, f)
	case n <= maxDetailed:
		out.detailed = append(out.detailed, f)
	}
	return nil
}

// noteReport notes the lines, records and fields of a session's file that are in no message.
func noteReport(e *Env, name string, r formats.ReadReport) {
	const most = 10
	for _, skipped := range r.Skipped[:min(most, len(r.Skipped))] {
		e.note("%s: line %d is skipped: %s", name, skipped.Line, term.Clean(skipped.Reason))
	}
	if more := len(r.Skipped) - most; more > 0 {
		e.note("%s: %s skipped (--json lists them)", name, term.Plural(more, "more line is", "more lines are"))
	}
	first := map[string]string{}
	for kind, line := range r.First {
		first[kind] = fmt.Sprintf("line %d", line)
	}
	if text := listLeftOut(r.Other, r.Dropped, first); text != "" {
		e.note("%s: fields and records left out: %s", name, text)
	}
	if meta := kinds(r.Other, true); len(meta) > 0 {
		e.note("%s: records that are not messages: %s", name, listCounts(meta))
	}
}

// config returns the configuration with the policy of --policy.
func (c *compactFileCmd) config(e *Env) (config.Config, error) {
	preset, err := policy.PresetNamed(c.Policy)
	switch {
	case c.Policy == "" || c.Policy == configuredPolicy:
		return e.Config()
	case err != nil:
		if _, err := os.Stat(c.Policy); err != nil {
			return config.Config{}, wrong("--policy: %s: want a configuration file or one of %s, %s", c.Policy, configuredPolicy,
				strings.Join(policy.PresetNames(), ", "))
		}
		e.file = c.Policy
		return e.Config()
	}
	e.flags["policy.preset"] = c.Policy
	cfg, err := e.Config()
	if _, given := e.flags["policy.pipeline"]; !given {
		// A preset given by name takes precedence over the pipeline of a file.
		cfg.Policy.Pipeline = preset.Over(cfg.Policy).Pipeline
	}
	return cfg, err
}

// compactedFile is a session of the file and the result of its compaction.
type compactedFile struct {
	name         string // the session's id, or its place in the file
	session      chat.Session
	conversation *strategies.Conversation
	report       strategies.Report
	explain      []string
	target       chat.Tokens // the policy's, 0 for none
	chosen       bool        // the session was within the target of the policy, former, so target is a third of it
	former       chat.Tokens
}

// session compacts a session.
func (c *compactFileCmd) session(ctx context.Context, cfg config.Config, s chat.Session) (*compactedFile, error) {
	for i := range s.Messages {
		c.pinned[s.Messages[i].ID] = true
	}
	r, err := c.planner.Compact(ctx, s, worker.Stateless{
		Policy: cfg.Policy, Steps: c.steps, Sized: sized(cfg), PinIDs: c.Pin, AllowGrowth: c.AllowGrowth,
	})
	if errors.Is(err, worker.ErrOptions) {
		return nil, &exitError{exitUsage, err}
	} else if err != nil {
		return nil, err
	}
	f := &compactedFile{
		session: s, conversation: r.Conversation, report: r.Report, target: r.Target, chosen: r.Former > 0, former: r.Former,
	}
	if c.Explain {
		if f.chosen {
			cfg.Policy = cfg.Policy.WithTarget(r.Target)
		}
		f.explain = c.explain(cfg, s.Model)
	}
	return f, nil
}

// sized reports whether a setting says how large sessions may become.
func sized(cfg config.Config) bool {
	sizes := []string{"start", "target", "start_tokens", "target_tokens", "triggers", "guards.auto_compact_limits"}
	return slices.ContainsFunc(sizes, func(key string) bool {
		source := cfg.Origin("policy." + key).Source
		return source != config.FromDefault && source != config.FromPreset
	})
}

// explain explains the limits and the pipeline for a session of a model.
func (c *compactFileCmd) explain(cfg config.Config, model string) []string {
	pol := cfg.Policy
	if len(c.steps) == 0 {
		return pol.Explain(model, cfg.Models.Window, c.registry.Fill)
	}
	pol.Pipeline = c.steps
	lines := pol.Explain(model, cfg.Models.Window, c.registry.Fill)
	return slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "step ") })
}

// json returns the result, with the view and the excluded messages if whole.
func (f *compactedFile) json(whole bool) fileJSON {
	r := &f.report
	out := fileJSON{
		Target: f.target, TargetChosen: f.chosen,
		Session: f.name, Model: f.session.Model, Before: strategies.NewCounts(r.Before), After: strategies.NewCounts(r.After), Grew: r.Grew,
		OpenLoop: r.OpenLoop, Reasoning: r.Reasoning,
		Steps: strategies.NewStepCounts(r.Steps), Explain: f.explain, View: []viewedJSON{}, Excluded: []strategies.Excluded{},
	}
	for _, x := range r.Repairs {
		if out.Repaired == nil {
			out.Repaired = map[string]int{}
		}
		out.Repaired[x.Reason] += x.Messages
	}
	if !whole {
		return out
	}
	out.Excluded = append(out.Excluded, r.Excluded...)
	for _, m := range f.stored() {
		v := viewedJSON{Seq: m.Seq, ID: m.ID, Kind: m.Kind, Role: m.Role, Tokens: m.Tokens, Message: m.Body().AppendJSON(nil)}
		if len(m.SummaryOf) > 0 {
			v.SummaryOf = m.SummaryOf.String()
		}
		out.View = append(out.View, v)
	}
	return out
}

// stored returns the view in the form that writeMessages takes.
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
