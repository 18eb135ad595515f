package strategies

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/summarize"
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
	Type   string `json:"type"`
	Params Params `json:"params"`
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
func (h *timbalHost) make(specs []timbalSpec) ([]Strategy, error) {
	r := Builtin()
	r.Summarizer = &h.fake
	var out []Strategy
	for _, spec := range specs {
		s, err := r.New(spec.Type, spec.Params)
		if err != nil {
			return nil, err
		}
		if s, ok := s.(*rollingSummary); ok {
			s.arguments = timbalArguments
		}
		out = append(out, s)
	}
	return out, nil
}

// run runs strategies on the view, or on the head of it, and says what each did.
func (h *timbalHost) run(strategies []Strategy) (steps []timbalStep, changed bool, err error) {
	s := session(h.messages()...)
	for i, m := range h.view {
		s.pinned[chat.Seq(i+1)] = string(m.Extra["pinned"]) == "true"
	}
	d, err := NewDraft(s.transcript(true))
	if err != nil {
		return nil, false, err
	}
	for _, st := range strategies {
		before, _ := d.Transcript().Included()
		if _, err := d.Run(context.Background(), st, s.load); err != nil {
			return nil, false, err
		}
		if d.unsummarized != nil && !errors.Is(d.unsummarized, errEmptySummary) {
			return nil, false, d.unsummarized
		}
		after, _ := d.Transcript().Included()
		steps = append(steps, timbalStep{st.Name(), before, after})
	}
	if d.rejected > 0 {
		return nil, false, fmt.Errorf("%d additions were rejected", d.rejected)
	}
	known := slices.Clone(h.view)
	for k, a := range d.adds {
		m := timbalMessage{*d.all[len(h.view)+k].Message, -1}
		for _, q := range a.Covers.Seqs() {
			// What stands where a message stood, and speaks for it, is what is left of it.
			if c := d.all[d.id(q)]; c.Role == m.Role && (c.Position == a.Position || m.Role == chat.RoleSystem) &&
				!isSummaryText(m.Content.String()) && m.Content.String() != acknowledgment {
				m.from = known[d.id(q)].from
			}
		}
		known = append(known, m)
	}
	h.view = nil
	for _, e := range d.Transcript().Entries {
		if e.Included {
			h.view = append(h.view, known[d.id(e.Seq)])
		}
	}
	return steps, d.changes > 0, nil
}

// agree compares the view with what the reference has.
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
		for _, p := range contentParts(got.Content) {
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

// show is the view in short.
func (h *timbalHost) show() string {
	var b strings.Builder
	for _, m := range h.view {
		fmt.Fprintf(&b, " %d:%s%v", m.from, m.Role, m.CallIDs())
	}
	return b.String()
}

// guarded runs the strategies on everything that is said in the case, behind the
// guard, and says what is wrong with the view then.
func (h *timbalHost) guarded(strategies []Strategy) (err error) {
	s := session(h.input...)
	for i, m := range h.input {
		s.pinned[chat.Seq(i+1)] = string(m.Extra["pinned"]) == "true"
	}
	defer func() {
		if p, ok := recover().(error); ok {
			err = p
		}
	}()
	s.run(panics{}, Pipeline{Steps: strategies}, false)
	return s.invariants(true)
}

// panics is a test that a checker can catch.
type panics struct{}

func (panics) Fatalf(format string, args ...any) { panic(fmt.Errorf(format, args...)) }

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

func checkTimbalSummarize(v *vector) error {
	h, err := newTimbalHost(v)
	if err != nil {
		return err
	}
	type pass struct {
		Append     int    `json:"append"`
		Summarizer string `json:"summarizer"`
	}
	passes := append([]pass{{param(v, "initial", len(h.input)), param(v, "summarizer", "")}}, param(v, "passes", []pass(nil))...)
	params := Params{}
	for key, value := range v.Strategy.Params {
		if !slices.Contains([]string{"initial", "passes", "summarizer"}, key) {
			params[key] = value
		}
	}
	strategies, err := h.make([]timbalSpec{{v.Strategy.Type, params}})
	if err != nil {
		return err
	}
	var want struct {
		Passes []timbalPass `json:"passes"`
	}
	if err := json.Unmarshal(v.Expect, &want); err != nil {
		return err
	}
	said := 0
	for i, p := range passes {
		p.Append = min(p.Append, len(h.input)-said)
		h.say(said, p.Append)
		said += p.Append
		if err := h.pass(strategies, p.Summarizer, want.Passes[i]); err != nil {
			return fmt.Errorf("pass %d: %w", i, err)
		}
	}
	h.fake.mode = ""
	return h.guarded(strategies)
}

// timbalPass is what one pass of summarize does.
type timbalPass struct {
	Out         []timbalItem `json:"out"`
	Error       string       `json:"error"`
	Unchanged   bool         `json:"unchanged"`
	Calls       int          `json:"summarizer_calls"`
	Incremental bool         `json:"incremental"`
	Previous    string       `json:"previous_summary"`
	Lines       int          `json:"lines"`
	SHA         string       `json:"lines_sha256"`
	MaxTokens   int          `json:"max_tokens"`
}

func (h *timbalHost) pass(strategies []Strategy, mode string, want timbalPass) error {
	h.fake.mode = mode
	before := len(h.fake.asked)
	_, changed, err := h.run(strategies)
	asked := h.fake.asked[before:]
	switch {
	case len(asked) != want.Calls:
		return fmt.Errorf("%d summaries, want %d", len(asked), want.Calls)
	case (err != nil) != (want.Error != ""):
		return fmt.Errorf("error %w, want %q", err, want.Error)
	case err == nil && changed == want.Unchanged:
		return fmt.Errorf("changed is %v: %s", changed, h.show())
	}
	for _, r := range asked {
		previous, incremental := between(r.User, "<summary>\n", "\n</summary>")
		lines, _ := between(r.User, "<messages>\n", "\n</messages>")
		hash := fmt.Sprintf("%x", sha256.Sum256([]byte(lines)))[:16]
		if incremental != want.Incremental || previous != want.Previous || hash != want.SHA || r.MaxTokens != want.MaxTokens {
			return fmt.Errorf("asked for %+v, want %+v", r, want)
		}
	}
	if err != nil {
		return nil
	}
	return h.agree(want.Out)
}

// between is the part of s between two marks.
func between(s, open, end string) (string, bool) {
	_, s, ok := strings.Cut(s, open)
	i := strings.LastIndex(s, end)
	if !ok || i < 0 {
		return "", false
	}
	return s[:i], true
}

// timbalSummarizer is the model of the vectors.
type timbalSummarizer struct {
	mode  string
	asked []summarize.Request
}

func (s *timbalSummarizer) Summarize(_ context.Context, r summarize.Request) (string, error) {
	s.asked = append(s.asked, r)
	switch s.mode {
	case "raise":
		return "", errors.New("no model")
	case "fail":
		return "", nil
	}
	return fmt.Sprintf("SUMMARY(%d)", len(s.asked)), nil
}

// timbalRecord is what the reference notes of a turn.
type timbalRecord struct {
	Rebuilt    bool              `json:"rebuilt"`
	Compaction *timbalCompaction `json:"compaction"`
}

type timbalCompaction struct {
	Utilization *float64     `json:"utilization"`
	Steps       []timbalStep `json:"steps"`
	Passes      int          `json:"passes"`
}

func checkTimbalTrigger(v *vector) error {
	h, err := newTimbalHost(v)
	if err != nil {
		return err
	}
	var want struct {
		Out       []timbalItem   `json:"out"`
		Records   []timbalRecord `json:"records"`
		Estimated *chat.Tokens   `json:"estimated_tokens"`
	}
	if err := json.Unmarshal(v.Expect, &want); err != nil {
		return err
	}
	strategies, err := h.make(param(v, "steps", []timbalSpec(nil)))
	if err != nil {
		return err
	}
	h.say(0, len(h.input))
	if n := h.estimate(); want.Estimated != nil && n != *want.Estimated {
		return fmt.Errorf("estimated %d tokens, want %d", n, *want.Estimated)
	}
	trigger := Trigger{Ratio: param(v, "ratio", 0.0), Window: param(v, "context_window", chat.Tokens(0))}
	var last *timbalCompaction
	for i, usage := range param(v, "usages", []map[string]int64(nil)) {
		rebuilt, record, err := h.turn(trigger, usage, strategies)
		if err != nil {
			return fmt.Errorf("turn %d: %w", i, err)
		}
		if record != nil {
			record.Passes = 1
			if last != nil {
				record.Passes += last.Passes
			}
			last = record
		}
		w := want.Records[i]
		got, _ := json.Marshal(last)
		expected, _ := json.Marshal(w.Compaction)
		switch {
		case string(got) != string(expected):
			return fmt.Errorf("turn %d: noted %s, want %s", i, got, expected)
		case rebuilt && !w.Rebuilt: // the reference may also make a new list of the same messages
			return fmt.Errorf("turn %d: something changed", i)
		}
	}
	return errors.Join(h.agree(want.Out), h.guarded(strategies))
}

// turn is what a host does before it calls its model.
func (h *timbalHost) turn(trigger Trigger, usage map[string]int64, strategies []Strategy) (rebuilt bool, _ *timbalCompaction, _ error) {
	used, ok := UsedTokens(usage)
	if !ok {
		used = h.estimate()
	}
	fires, utilization, known := trigger.Fires(used)
	if !fires {
		return false, nil, nil
	}
	var tail []timbalMessage
	if h.v.Strategy.Type == "midloop" {
		head, _ := SplitMidLoop(h.messages())
		if len(head) == 0 {
			return false, nil, nil
		}
		h.view, tail = h.view[:len(head):len(head)], h.view[len(head):]
	}
	steps, rebuilt, err := h.run(strategies)
	if err != nil {
		return false, nil, err
	}
	record := &timbalCompaction{Steps: steps}
	if known {
		rounded := math.Round(utilization*1e4) / 1e4
		record.Utilization = &rounded
	}
	if tail != nil {
		h.join(tail)
	}
	return rebuilt, record, nil
}

// join puts the tail back, and keeps track of which messages these are.
func (h *timbalHost) join(tail []timbalMessage) {
	from := make([]int, 0, len(h.view)+len(tail))
	for _, m := range append(h.view[:len(h.view):len(h.view)], tail...) {
		from = append(from, m.from)
	}
	head, behind := h.messages(), (&timbalHost{view: tail}).messages()
	joined := JoinMidLoop(head, behind)
	if len(joined) < len(from) {
		from = slices.Delete(from, len(head)-1, len(head)) // the merged one counts as the tail's
	}
	h.view = nil
	for i, m := range joined {
		h.view = append(h.view, timbalMessage{m, from[i]})
	}
}

// estimate counts arguments as the reference does.
func (h *timbalHost) estimate() chat.Tokens {
	messages := h.messages()
	for i := range messages {
		messages[i].ToolCalls = slices.Clone(messages[i].ToolCalls)
		for k := range messages[i].ToolCalls {
			c := &messages[i].ToolCalls[k]
			c.Arguments = pythonRepr(timbalInput(c.Arguments))
		}
	}
	return EstimateTokens(messages)
}
