package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func init() {
	for _, single := range []string{"keep_last_n_turns", "keep_last_n_messages", "compact_tool_results"} {
		checkers["timbal/"+single] = checkTimbalOne
	}
	checkers["timbal/summarize"] = checkTimbalSummarize
	checkers["timbal/compose"] = checkTimbalCompose
	checkers["timbal/trigger"] = checkTimbalTrigger
	checkers["timbal/midloop"] = checkTimbalTrigger
}

// timbalItem is one message of an expected view.
type timbalItem struct {
	Ref       *int      `json:"ref"`
	Content   *string   `json:"content"`
	ToolCalls *[]string `json:"tool_calls"`

	Summary  bool      `json:"summary"`
	New      bool      `json:"new"`
	Role     chat.Role `json:"role"`
	Text     string    `json:"text"`
	Verbatim []string  `json:"verbatim"`
	Trimmed  bool      `json:"verbatim_trimmed"`

	Merged    []int    `json:"merged"`
	TextParts []string `json:"text_parts"`
	CallIDs   []string `json:"tool_call_ids"`
}

type timbalStep struct {
	Compactor     string
	Before, After int
}

type timbalSpec struct {
	Type   string      `json:"type"`
	Params plan.Params `json:"params"`
}

// timbalHost is a host that holds messages in memory and runs strategies on them.
type timbalHost struct {
	v     *vector
	input []chat.Message
	view  []timbalMessage
	fake  timbalSummarizer
}

// timbalMessage is a message and the input message that it is, in whole or in part,
// or -1.
type timbalMessage struct {
	chat.Message

	from int
}

func newTimbalHost(v *vector) (*timbalHost, error) {
	input, err := v.chat()
	return &timbalHost{v: v, input: input}, err
}

// say appends the next n messages of the case.
func (h *timbalHost) say(from, n int) {
	for i := from; i < from+n; i++ {
		h.view = append(h.view, timbalMessage{h.input[i], i})
	}
}

func (h *timbalHost) messages() []chat.Message {
	out := make([]chat.Message, len(h.view))
	for i := range h.view {
		out[i] = h.view[i].Message
	}
	return out
}

// make makes strategies the way a configuration does.
func (h *timbalHost) make(specs []timbalSpec) ([]plan.Strategy, error) {
	r := Registry()
	r.Summarizer = &h.fake
	var out []plan.Strategy
	for _, spec := range specs {
		s, err := r.New(spec.Type, spec.Params)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// run runs strategies on the view, or on its head, and returns the result of each.
func (h *timbalHost) run(strategies []plan.Strategy) (steps []timbalStep, changed bool, err error) {
	s := timbalSession(h.messages())
	t := s.Transcript(true)
	t.Unmarked = true // the reference knows summaries by their heads
	d, err := pipeline.NewDraft(t)
	if err != nil {
		return nil, false, err
	}
	for _, st := range strategies {
		before, _ := d.Transcript().Included()
		did, err := d.Run(context.Background(), st, s.Load)
		if err != nil {
			return nil, false, err
		}
		if err := d.NoSummary(); err != nil && !errors.Is(err, plan.ErrEmptySummary) {
			return nil, false, err
		}
		changed = changed || did
		after, _ := d.Transcript().Included()
		steps = append(steps, timbalStep{st.Name(), before, after})
	}
	if d.Rejected() > 0 {
		return nil, false, fmt.Errorf("%d additions were rejected", d.Rejected())
	}
	known := slices.Clone(h.view)
	entries := d.Entries() // the one with seq q is at q-1
	for k, a := range d.Additions() {
		m := timbalMessage{*entries[len(h.view)+k].Message, -1}
		for _, q := range a.Covers.Seqs() {
			// An addition in the place of a message is the rest of that message.
			if c := entries[q-1]; c.Role == m.Role && (c.Position == a.Position || m.Role == chat.RoleSystem) &&
				!isSummaryText(m.Content.String()) && m.Content.String() != acknowledgment {
				m.from = known[q-1].from
			}
		}
		known = append(known, m)
	}
	h.view = nil
	for _, e := range d.Transcript().Entries {
		if e.Included {
			h.view = append(h.view, known[e.Seq-1])
		}
	}
	return steps, changed, nil
}

// agree compares the view with that of the reference.
func (h *timbalHost) agree(want []timbalItem) error {
	if len(h.view) != len(want) {
		return fmt.Errorf("view has %d messages, want %d: %s", len(h.view), len(want), h.show())
	}
	for i, w := range want {
		if err := h.same(h.view[i], w); err != nil {
			return fmt.Errorf("message %d of the view: %w: %s", i, err, h.show())
		}
	}
	return nil
}

func (h *timbalHost) same(got timbalMessage, w timbalItem) error {
	text := got.Content.String()
	switch {
	case w.Summary:
		if got.from >= 0 || !isSummaryText(text) {
			return errors.New("is no summary")
		}
		s := parseSummary(text)
		if got.Role != w.Role || s.body != w.Text || !slices.Equal(s.quotes, w.Verbatim) || s.trimmed != w.Trimmed {
			return fmt.Errorf("got %s %+v, want %+v", got.Role, s, w)
		}
	case w.New:
		if got.from >= 0 || got.Role != w.Role || text != w.Text {
			return fmt.Errorf("got %s %q, want %+v", got.Role, text, w)
		}
	case w.Merged != nil:
		var parts []string
		merged := got.Content.Parts
		if merged == nil {
			merged = []chat.Part{{Text: got.Content.Text}}
		}
		for _, p := range merged {
			parts = append(parts, p.Text)
		}
		if got.from != w.Merged[len(w.Merged)-1] || got.Role != w.Role || !slices.Equal(parts, w.TextParts) || !slices.Equal(got.CallIDs(), w.CallIDs) {
			return fmt.Errorf("got %+v, want %+v", got, w)
		}
	default:
		in := h.input[*w.Ref]
		wantText, wantCalls := in.Content.String(), in.CallIDs()
		if w.Content != nil {
			wantText = *w.Content
		}
		if w.ToolCalls != nil {
			wantCalls = *w.ToolCalls
		}
		if got.from != *w.Ref || got.Role != in.Role || got.ToolCallID != in.ToolCallID || text != wantText || !slices.Equal(got.CallIDs(), wantCalls) {
			return fmt.Errorf("got message %d, %s %q %q %q, want %d with %q %q", got.from, got.Role, got.ToolCallID, text, got.CallIDs(), *w.Ref, wantText, wantCalls)
		}
	}
	return nil
}

// show returns the view in short.
func (h *timbalHost) show() string {
	var b strings.Builder
	for _, m := range h.view {
		fmt.Fprintf(&b, " %d:%s%v", m.from, m.Role, m.CallIDs())
	}
	return b.String()
}

// guarded runs the strategies on all messages of the case behind the guard.
func (h *timbalHost) guarded(strategies []plan.Strategy) error {
	return keepsInvariants(timbalSession(h.input), strategies...)
}

// timbalSession returns a session of messages, of which some are pinned.
func timbalSession(messages []chat.Message) *sessiontest.Session {
	s := sessiontest.Of(messages...)
	for i, m := range messages {
		s.Pinned[chat.Seq(i+1)] = string(m.Extra["pinned"]) == "true"
	}
	return s
}

func checkTimbalOne(v *vector) error {
	h, err := newTimbalHost(v)
	if err != nil {
		return err
	}
	var want struct {
		Out  []timbalItem `json:"out"`
		Same bool         `json:"same_list"`
	}
	if err := json.Unmarshal(v.Expect, &want); err != nil {
		return err
	}
	strategies, err := h.make([]timbalSpec{{v.Strategy.Type, v.Strategy.Params}})
	if err != nil {
		return err
	}
	h.say(0, len(h.input))
	_, changed, err := h.run(strategies)
	switch {
	case err != nil:
		return err
	case want.Same && changed:
		return errors.New("something changed")
	}
	return errors.Join(h.agree(want.Out), h.guarded(strategies))
}

func checkTimbalCompose(v *vector) error {
	h, err := newTimbalHost(v)
	if err != nil {
		return err
	}
	var want struct {
		Out   []timbalItem `json:"out"`
		Steps []timbalStep `json:"steps"`
		Calls int          `json:"summarizer_calls"`
	}
	if err := json.Unmarshal(v.Expect, &want); err != nil {
		return err
	}
	strategies, err := h.make(param(v, "steps", []timbalSpec(nil)))
	if err != nil {
		return err
	}
	h.say(0, len(h.input))
	steps, _, err := h.run(strategies)
	switch {
	case err != nil:
		return err
	case !slices.Equal(steps, want.Steps):
		return fmt.Errorf("steps %v, want %v", steps, want.Steps)
	case len(h.fake.asked) != want.Calls:
		return fmt.Errorf("%d summaries, want %d", len(h.fake.asked), want.Calls)
	}
	return errors.Join(h.agree(want.Out), h.guarded(strategies))
}
