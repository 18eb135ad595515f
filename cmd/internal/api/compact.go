package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/worker"
)

// compactTimeout bounds a compaction without a session, and the answer to it, in place of the
// timeouts of the server: models write for minutes. A call that another process has begun before is
// taken for lost.
const compactTimeout = 10 * time.Minute

// compaction registers the operations on messages that are in no session.
func (a *api) compaction() {
	register(a, operation{
		scope: appends, method: http.MethodPost, path: "/v1/compact", id: "compact-messages",
		summary: "Compact messages that are in no session; neither they nor the result are stored",
		more: func(op *huma.Operation) {
			op.Middlewares = append(op.Middlewares, func(ctx huma.Context, next func(huma.Context)) {
				if err := a.s.compacts(func() error { next(ctx); return nil }); err != nil {
					r, w := humago.Unwrap(ctx)
					writeProblem(w, r, problemOf(err))
				}
			})
		},
	}, compactMessages)
	a.responses()
}

// compacts calls a handler of compactions without a session, unless api.max_compactions are in progress. The
// handler has not read the body yet, as that is most of what they hold.
func (s *Server) compacts(handle func() error) error {
	select {
	case s.compacting <- struct{}{}:
		defer func() { <-s.compacting }()
		return handle()
	default:
		return problem(http.StatusServiceUnavailable, "too_many_compactions", "%d compactions are in progress (api.max_compactions)",
			cap(s.compacting)).with("Retry-After", "10")
	}
}

type statelessIn struct{ Body StatelessRequest }

// StatelessRequest has messages, and how to compact them.
type StatelessRequest struct {
	Messages json.RawMessage `json:"messages" doc:"A list of messages, a document with one, or the text of a session file."`
	Format   string          `json:"format,omitempty" default:"auto" enum:"auto,chat,responses,anthropic,sharegpt,claude-code,codex,pi,qwen-code,gemini-cli,gemini,copilot-cli,kimi,grok,cline,goose,opencode,openhands,langchain,vercel,mastra,bedrock,chatgpt"`
	To       string          `json:"to,omitempty" enum:"chat,responses,anthropic,sharegpt,claude-code,codex,pi" doc:"By default format, or chat if that is only read."`
	Model    string          `json:"model,omitempty" doc:"It selects the tokenizer, the window and the policy."`
	// How. At most one of the four.
	Strategies []string     `json:"strategies,omitempty" doc:"Run these, all of them and in order, in place of the policy's pipeline."`
	Pipeline   []store.Step `json:"pipeline,omitempty" doc:"The same with parameters."`
	Preset     string       `json:"preset,omitempty" doc:"The name of a preset."`
	Policy     string       `json:"policy,omitempty" doc:"NAME or NAME@VERSION; by default that of a session with this model."`

	TargetTokens chat.Tokens `json:"target_tokens,omitempty" minimum:"1" doc:"By default that of the policy, or a third of less."`
	Focus        string      `json:"focus,omitempty" maxLength:"2000" doc:"A topic that a summary should keep."`
	Pin          []string    `json:"pin,omitempty" doc:"Ids of messages that stay as they are."`
	AllowGrowth  bool        `json:"allow_growth,omitempty" doc:"Return the result even if it is larger than messages."`
}

// StatelessResult is the result of a compaction that is not stored.
type StatelessResult struct {
	Format string          `json:"format" doc:"The format of view."`
	View   json.RawMessage `json:"view" doc:"A document of the format, or a list of its records."`
	Lost   map[string]int  `json:"lost,omitempty" doc:"Parts of messages that the format cannot hold, by kind."`
	Report StatelessReport `json:"report"`
}

// StatelessReport describes a compaction that is not stored.
type StatelessReport struct {
	Model        string                  `json:"model,omitempty"`
	Before       strategies.Counts       `json:"before"`
	After        strategies.Counts       `json:"after"`
	Changed      bool                    `json:"changed"`
	Grew         bool                    `json:"grew,omitempty" doc:"The result was larger, and discarded."`
	Target       chat.Tokens             `json:"target,omitempty"`
	TargetChosen bool                    `json:"target_chosen,omitempty" doc:"The policy has a larger one."`
	OpenLoop     bool                    `json:"open_tool_loop,omitempty" doc:"It keeps all before it."`
	Reasoning    []chat.Seq              `json:"reasoning_excluded,omitempty" doc:"Counted from 1."`
	Steps        []strategies.StepCounts `json:"steps"`
	Excluded     []strategies.Excluded   `json:"excluded" doc:"Messages that are not in the view, counted from 1, and why."`
	Other        map[string]int          `json:"other,omitempty" doc:"Records that are no messages, by kind."`
	Dropped      map[string]int          `json:"left_out,omitempty" doc:"Fields of messages that were left out, by kind."`
}

func compactMessages(ctx context.Context, c *caller, in *statelessIn) (*body[StatelessResult], error) {
	s, format, err := readSession(in.Body.Messages, in.Body.Format)
	if err != nil {
		return nil, err
	}
	s.Model = cmp.Or(in.Body.Model, s.Model)
	for _, id := range in.Body.Pin {
		if !slices.ContainsFunc(s.Messages, func(m chat.Message) bool { return m.ID == id }) {
			return nil, invalid("body.pin", "no message has the id %.100q", id)
		}
	}
	how, err := in.Body.how(ctx, c, s.Model)
	if err != nil {
		return nil, err
	}
	r, err := c.compactStateless(ctx, s.Session, how, rand.Text())
	if err != nil {
		return nil, err
	}
	if formats.CanWrite(format) != nil {
		format = "chat"
	}
	out := StatelessResult{Format: cmp.Or(in.Body.To, format), Report: StatelessReport{
		Model: s.Model, Before: strategies.NewCounts(r.Report.Before), After: strategies.NewCounts(r.Report.After),
		Changed: r.Report.Changed(), Grew: r.Report.Grew, Target: r.Target, TargetChosen: r.Former > 0,
		OpenLoop: r.Report.OpenLoop, Reasoning: r.Report.Reasoning,
		Steps:    append([]strategies.StepCounts{}, strategies.NewStepCounts(r.Report.Steps)...),
		Excluded: append([]strategies.Excluded{}, r.Report.Excluded...),
		Other:    s.Report.Other, Dropped: s.Report.Dropped,
	}}
	s.Messages = r.Conversation.View()
	var written bytes.Buffer
	out.Lost, err = formats.Write(&written, out.Format, s.Session, formats.Options{})
	out.View = bytes.TrimSpace(written.Bytes())
	if rest, ok := bytes.CutPrefix(out.View, []byte(`{"session_id":"",`)); ok {
		out.View = append([]byte("{"), rest...)
	}
	if f, _ := formats.Lookup(out.Format); f.Log || bytes.IndexByte(out.View, '\n') >= 0 {
		out.View = slices.Concat([]byte("["), bytes.ReplaceAll(out.View, []byte("\n"), []byte(",")), []byte("]"))
	}
	return answer(out, err)
}

// readSession reads the one session of messages in a format, and returns that, too.
func readSession(messages json.RawMessage, format string) (s formats.Session, found string, err error) {
	refuse := func(err error) (formats.Session, string, error) {
		return s, "", invalid("body.messages", "%s", "messages: "+err.Error())
	}
	text := []byte(messages)
	switch first := bytes.TrimLeft(text, " \t\r\n"); {
	case bytes.HasPrefix(first, []byte(`"`)):
		var file string
		if err := json.Unmarshal(messages, &file); err != nil {
			return refuse(err)
		}
		text = []byte(file)
	case bytes.HasPrefix(first, []byte("[")): // a record a line, as some formats have it
		var records []json.RawMessage
		if err := json.Unmarshal(messages, &records); err != nil {
			return refuse(err)
		}
		var lines bytes.Buffer
		for _, r := range records {
			_ = json.Compact(&lines, r) // it is valid
			lines.WriteByte('\n')
		}
		text = lines.Bytes()
	}
	r, err := formats.NewReader(bytes.NewReader(text), format)
	if err != nil {
		return refuse(err)
	}
	if s, err = r.Next(); errors.Is(err, io.EOF) {
		err = errors.New("want at least one")
	}
	if err != nil {
		return refuse(err)
	}
	if _, err = r.Next(); !errors.Is(err, io.EOF) {
		return refuse(cmp.Or(err, errors.New("want those of one session")))
	}
	return s, r.Format().Name, nil
}

// how returns how messages for a model are compacted.
func (b *StatelessRequest) how(ctx context.Context, c *caller, model string) (o worker.Stateless, err error) {
	ways := []bool{len(b.Strategies) > 0, len(b.Pipeline) > 0, b.Preset != "", b.Policy != ""}
	if first := slices.Index(ways, true); first >= 0 && slices.Contains(ways[first+1:], true) {
		return o, invalid("body", "give one of strategies, pipeline, preset and policy")
	}
	planner := c.server.o.Planner
	st, k := c.of("")
	switch {
	case b.Preset != "":
		var preset policy.Preset
		if preset, err = policy.PresetNamed(b.Preset); err != nil {
			return o, invalid("body.preset", "%s", err.Error())
		}
		o.Policy = preset.Over(planner.Policy)
	case b.Policy != "":
		o.Policy, err = c.namedPolicy(ctx, st, b.Policy)
	default:
		o.Policy, err = planner.PolicyFor(ctx, st, k.Tenant, model)
	}
	if b.TargetTokens > 0 {
		o.Policy, o.Sized = o.Policy.WithTarget(b.TargetTokens), true
	}
	for _, name := range b.Strategies {
		o.Steps = append(o.Steps, policy.Step{Strategy: name})
	}
	for _, s := range b.Pipeline {
		o.Steps = append(o.Steps, policy.Step(s))
	}
	o.PinIDs, o.AllowGrowth, o.Focus = b.Pin, b.AllowGrowth, b.Focus
	return o, err
}

// namedPolicy returns a policy that st may see, by NAME or NAME@VERSION.
func (c *caller) namedPolicy(ctx context.Context, st *store.Store, ref string) (policy.Policy, error) {
	name, number, versioned := strings.Cut(ref, "@")
	version, err := strconv.Atoi(cmp.Or(number, "0"))
	if err != nil || versioned && version < 1 {
		return policy.Policy{}, invalid("body.policy", "policy: want NAME or NAME@VERSION")
	}
	v, err := st.Policy(ctx, name, version)
	if errors.Is(err, store.ErrNotFound) && ref == policy.DefaultName {
		return c.server.o.Planner.Policy, nil // of the configuration
	} else if err != nil {
		return policy.Policy{}, err
	}
	return c.server.o.Planner.Read(v)
}

// compactStateless compacts a session that is in no store. Of calls of models, only the cost is stored if
// forget is not empty.
func (c *caller) compactStateless(ctx context.Context, s chat.Session, o worker.Stateless, forget string) (worker.Compacted, error) {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		end := http.NewResponseController(x)
		// Errors: the timeouts of the server hold. The first also ends ctx.
		_, _ = end.SetReadDeadline(time.Now().Add(2*compactTimeout)), end.SetWriteDeadline(time.Now().Add(2*compactTimeout))
	}
	ctx, cancel := context.WithTimeout(ctx, compactTimeout)
	defer cancel()
	_, k := c.of("")
	// No session has this scope: its id would have a NUL.
	o.Scope = k.Tenant + "\x00\x00"
	o.Answers = worker.StatelessAnswers{Store: c.server.o.Store.Worker, Tenant: k.Tenant, Forget: forget, Patience: compactTimeout}
	r, err := c.server.o.Planner.Compact(ctx, s, o)
	if errors.Is(err, worker.ErrOptions) {
		return r, invalid("body.pipeline", "%s", err.Error())
	}
	return r, err
}
