package builtin

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
	"github.com/sessionstore/compactor/strategies/plan"
)

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
	params := plan.Params{}
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

// timbalPass is the result of one pass of summarize.
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

func (h *timbalHost) pass(strategies []plan.Strategy, mode string, want timbalPass) error {
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
	if want.Error != "" {
		return nil // and the view is left as it was: the next pass shows it
	}
	return h.agree(want.Out)
}

// between returns the part of s between two marks.
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
	asked []plan.Request
}

// Write shows the arguments of calls as the reference does.
func (s *timbalSummarizer) Write(ctx context.Context, t plan.Task) (string, error) {
	t, _ = t.Redact()
	for i, m := range t.Messages {
		shown := *m
		shown.ToolCalls = slices.Clone(m.ToolCalls)
		for k := range shown.ToolCalls {
			shown.ToolCalls[k].Arguments = pyASCII.write(timbalInput(shown.ToolCalls[k].Arguments))
		}
		t.Messages[i] = &shown
	}
	return s.Summarize(ctx, t.Request())
}

// Summarize implements plan.Summarizer.
func (s *timbalSummarizer) Summarize(_ context.Context, r plan.Request) (string, error) {
	s.asked = append(s.asked, r)
	switch s.mode {
	case "raise":
		return "", errors.New("no model")
	case "fail":
		return "", nil
	}
	return fmt.Sprintf("SUMMARY(%d)", len(s.asked)), nil
}

// timbalRecord is the reference's record of a turn.
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
	trigger := func(used chat.Tokens) (fires bool, utilization float64, known bool) {
		return Hosts.Trigger(param(v, "ratio", 0.0), param(v, "context_window", chat.Tokens(0)), used)
	}
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

// turn returns the actions of a host before it calls its model.
func (h *timbalHost) turn(trigger func(chat.Tokens) (bool, float64, bool), usage map[string]int64, strategies []plan.Strategy) (rebuilt bool, _ *timbalCompaction, _ error) {
	all := h.view
	var tail []timbalMessage
	if h.v.Strategy.Type == "midloop" {
		head, _ := Hosts.Split(h.messages())
		if len(head) == 0 && len(all) > 0 {
			return false, nil, nil
		}
		h.view, tail = all[:len(head):len(head)], all[len(head):]
	}
	used, ok := Hosts.Used(usage)
	if !ok {
		used = h.estimate() // of the messages that may be compacted
	}
	fires, utilization, known := trigger(used)
	if !fires {
		h.view = all
		return false, nil, nil
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
	if len(tail) > 0 {
		h.join(tail)
	}
	return rebuilt, record, nil
}

// join puts the tail back, and keeps track of which messages these are.
func (h *timbalHost) join(tail []timbalMessage) {
	from := make([]int, 0, len(h.view)+len(tail))
	for _, m := range slices.Concat(h.view, tail) {
		from = append(from, m.from)
	}
	head, behind := h.messages(), (&timbalHost{view: tail}).messages()
	joined := Hosts.Join(head, behind)
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
			c.Arguments = pyRepr.write(timbalInput(c.Arguments))
		}
	}
	return Hosts.Estimate(messages)
}
