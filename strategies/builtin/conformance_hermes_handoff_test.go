package builtin

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func init() {
	checkers["hermes/hermes_compress"] = checkHermesCompress
	checkers["hermes/hermes_sequence"] = checkHermesSequence
}

// filler returns a text of n characters.
func filler(name string, n int) string { return name + strings.Repeat(".", n-len(name)) }

// Fillers as long as the fixed texts of the reference.
var (
	hermesPrefix   = filler("<prefix>", 586)
	hermesNote     = filler("<note>", 229)
	hermesEnd      = filler("<end>", 84)
	hermesStub     = filler("<stub>", 62)
	hermesFallback = filler("<fallback>", 265) + countMark
	fallbackOf     = regexp.MustCompile(`\{\{FALLBACK:(\d+)\}\}`)
)

// filled returns a text of the vectors with fillers in it.
func filled(s string) string {
	s = strings.NewReplacer("{{SUMMARY_PREFIX}}", hermesPrefix, "{{COMPACTION_NOTE}}", hermesNote,
		"{{END_MARKER}}", hermesEnd, "{{STUB_RESULT}}", hermesStub).Replace(s)
	return fallbackOf.ReplaceAllString(s, strings.Replace(hermesFallback, countMark, "$1", 1))
}

// hermesModel is the summarizer of the vectors. All calls of a case count.
type hermesModel struct {
	mode  string
	calls int
}

// Summarize implements summarize.Summarizer.
func (m *hermesModel) Summarize(context.Context, plan.Request) (string, error) {
	m.calls++
	text := "SUMMARY(" + strconv.Itoa(m.calls) + ")"
	switch m.mode {
	case "", "ok":
		return text, nil
	case "empty", "none":
		return "", nil
	case "long":
		return text + strings.Repeat(" detail", 3000), nil
	case "secret":
		return text + " sk-abcdefghijklmnopqrstuvwxyz123456", nil
	case "prefixed":
		return hermesPrefix + "\n" + text, nil
	case "runtime":
		return "", fmt.Errorf("%w", plan.ErrNoModel)
	case "error":
		return "", errors.New("boom: provider exploded")
	case "timeout":
		return "", errors.New("request timeout")
	case "auth":
		return "", errors.New("invalid api key")
	case "network":
		return "", errors.New("peer closed connection without sending complete message body (incomplete chunked read)")
	}
	return "", fmt.Errorf("no mode %q is known", m.mode)
}

// hermesHandoff makes the strategy of a case.
func hermesHandoff(v *vector, s plan.Summarizer) (*handoff, error) {
	r := Registry()
	r.Summarizer = s
	p := plan.Params{
		"on_failure": "fallback", "system_note": true, "context_length": 128_000,
		"summary_prefix": hermesPrefix, "compaction_note": hermesNote, "end_marker": hermesEnd, "fallback_text": hermesFallback,
	}
	for _, name := range []string{"protect_first_n", "protect_last_n", "tail_token_budget"} {
		if n := param(v, name, -1); n >= 0 {
			p[name] = n
		}
	}
	h, err := r.New("handoff", p)
	if err != nil {
		return nil, err
	}
	return h.(*handoff), nil
}

// hermesEngine is the engine of a case, without a guard.
type hermesEngine struct {
	EngineHost

	model    *hermesModel
	now      time.Time
	strategy referenceHandoff
	last     *referencePass
}

func newHermesEngine(v *vector) (*hermesEngine, error) {
	h := &hermesEngine{model: &hermesModel{mode: param(v, "summarizer", "")}, now: time.Unix(1e9, 0)}
	o := HostOptions{
		Main: h.model, Now: func() time.Time { return h.now }, Estimate: pyRough,
		New: func(s plan.Summarizer) (plan.Strategy, error) {
			made, err := hermesHandoff(v, s)
			if err != nil {
				return nil, err
			}
			if previous := param(v, "previous_summary", ""); previous != "" {
				made = made.WithPrevious(previous).(*handoff)
			}
			h.strategy = referenceHandoff{made, &h.last}
			return h.strategy, nil
		},
	}
	if param(v, "summary_model", "") != "" {
		o.Auxiliary = h.model
	}
	var err error
	h.EngineHost, err = Hosts.Engine(o)
	return h, err
}

// hermesStep is one step of the reference.
type hermesStep struct {
	ShouldCompress  *bool       `json:"should_compress"`
	HasContent      bool        `json:"has_content"`
	Compacted       *bool       `json:"compacted"`
	SameList        bool        `json:"out_same_list"`
	Live            int         `json:"live"`
	Pruned          *int        `json:"pruned"`
	Start           int         `json:"compress_start"`
	End             int         `json:"compress_end"`
	Role            string      `json:"summary_role"`
	Merged          bool        `json:"merged_into_tail"`
	Out             []hermesOut `json:"out"`
	Calls           int         `json:"summarizer_calls"`
	SerializedSHA   string      `json:"serialized_sha256"`
	SerializedChars int         `json:"serialized_chars"`
	Turns           *int        `json:"turns"`
	Iterative       bool        `json:"iterative"`
	Budget          int         `json:"summary_budget"`
	Savings         float64     `json:"savings_pct"`
	Ineffective     int         `json:"ineffective"`
	Count           int         `json:"compression_count"`
	Fallback        bool        `json:"fallback"`
	Dropped         int         `json:"dropped"`
	Error           *string     `json:"summary_error"`
	Cooldown        float64     `json:"cooldown_s"`
}

// hermesOut is one message of a result.
type hermesOut struct {
	hermesItem
	Prepend string `json:"prepend"`
	Append  string `json:"append"`
	Role    string `json:"role"`
	Text    string `json:"text"`
	CallID  string `json:"tool_call_id"`
}

func checkHermesCompress(v *vector) error {
	type seed struct {
		hermesStep
		Threshold  chat.Tokens `json:"threshold_tokens"`
		Tail       chat.Tokens `json:"tail_token_budget"`
		MaxSummary chat.Tokens `json:"max_summary_tokens"`
	}
	want, messages, err := seedAndChat[seed](v)
	if err != nil {
		return err
	}
	e, err := newHermesEngine(v)
	if err != nil {
		return err
	}
	if s := e.strategy; e.Status().Threshold != want.Threshold || s.tail != want.Tail || s.maxSummary != want.MaxSummary {
		return fmt.Errorf("sizes %d, %d, %d, want %v", e.Status().Threshold, s.tail, s.maxSummary, want)
	}
	r := Compressing{Focus: param(v, "focus", ""), Tokens: chat.Tokens(param(v, "current_tokens", 0))}
	if _, err := e.compress(messages, messages, r, want.hermesStep); err != nil {
		return err
	}
	// The guard keeps the invariants that the reference breaks (v.Breaks).
	h, err := hermesHandoff(v, &hermesModel{mode: e.model.mode})
	if err != nil {
		return err
	}
	for name, s := range map[string]plan.Strategy{"reference": referenceHandoff{h, new(*referencePass)}, "product": h} {
		h.summarizer = &hermesModel{mode: e.model.mode}
		if err := keepsInvariants(sessiontest.Of(messages...), s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func checkHermesSequence(v *vector) error {
	want, messages, err := seedAndChat[struct{ Steps []hermesStep }](v)
	if err != nil {
		return err
	}
	e, err := newHermesEngine(v)
	if err != nil {
		return err
	}
	steps := param(v, "steps", []struct {
		Op         string
		N          int
		Seconds    float64
		Tokens     chat.Tokens
		Current    chat.Tokens `json:"current_tokens"`
		Auto       bool
		Summarizer string
	}(nil))
	n := param(v, "initial", 0)
	live := messages[:n:n]
	for i, s := range steps {
		w := want.Steps[i]
		var err error
		switch s.Op {
		case "append":
			live = append(live, messages[n:n+s.N]...)
			if n += s.N; len(live) != w.Live {
				err = fmt.Errorf("%d messages, want %d", len(live), w.Live)
			}
		case "advance":
			e.now = e.now.Add(time.Duration(s.Seconds * float64(time.Second)))
		case "reset":
			e.OnSessionReset()
		case "compress":
			e.model.mode = s.Summarizer
			should := e.ShouldCompress(s.Tokens)
			switch {
			case should != *w.ShouldCompress:
				err = fmt.Errorf("should compress: %v, want %v", should, *w.ShouldCompress)
			case should || !s.Auto:
				live, err = e.compress(live, messages, Compressing{Tokens: s.Current}, w)
			}
		default:
			err = errors.New("unknown")
		}
		if err != nil {
			return fmt.Errorf("step %d, %s: %w", i, s.Op, err)
		}
	}
	return nil
}

// compress compresses and compares; refs of the vectors are indexes of messages.
func (e *hermesEngine) compress(live, messages []chat.Message, r Compressing, want hermesStep) ([]chat.Message, error) {
	if got := e.HasContent(live); got != want.HasContent {
		return nil, fmt.Errorf("has content: %v, want %v", got, want.HasContent)
	}
	calls := e.model.calls
	e.last = nil
	c, err := e.Compress(live, r.Focus, r.Tokens)
	if err != nil {
		return nil, err
	}
	s := e.Status()
	wantError := ""
	if want.Error != nil {
		if wantError = *want.Error; e.model.mode == "runtime" {
			wantError = plan.ErrNoModel.Error()
		}
	}
	type facts struct {
		compacted, same, fallback    bool
		calls, compressions, dropped int
		cooldown                     float64
		failure                      string
	}
	got := facts{
		c.Compressed, !c.Compressed, c.NoSummary != "" && c.Compressed,
		e.model.calls - calls, s.Compressions, 0, s.Cooldown.Seconds(), s.LastError,
	}
	if e.last != nil {
		got.dropped = e.last.dropped
	}
	expected := facts{*want.Compacted, want.SameList, want.Fallback, want.Calls, want.Count, want.Dropped, want.Cooldown, wantError}
	if got != expected {
		return nil, fmt.Errorf("%+v, want %+v", got, expected)
	}
	if err := e.samePass(want, c); err != nil {
		return nil, err
	}
	if s.Ineffective != want.Ineffective {
		return nil, fmt.Errorf("ineffective %d, want %d (savings %.2f, want %.2f)", s.Ineffective, want.Ineffective, c.Savings, want.Savings)
	}
	if len(c.Messages) != len(want.Out) {
		return nil, fmt.Errorf("%d messages, want %d", len(c.Messages), len(want.Out))
	}
	for i := range want.Out {
		if err := sameHermes(&c.Messages[i], &want.Out[i], messages); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	return c.Messages, nil
}
