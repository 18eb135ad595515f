package builtin

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/plan"
)

// handoff summarizes the messages between a protected head and a tail of limited size as
// notes for the assistant that continues, and prunes old tool results in the rest. A later
// handoff updates the notes of the previous one. With a target, head and tail are limited to
// the tokens that it leaves beside the notes.
type handoff struct {
	name             string
	first, last      int
	tail, maxSummary chat.Tokens
	focus            string
	useFallback      bool
	systemNote       bool
	prefix, end      string
	note, fallback   string
	prune            plan.Strategy
	summarizing
	// previous is the summary to update, nil for the newest one in the transcript.
	previous *string
}

// The default texts of a handoff.
const (
	handoffNote     = `[Note: earlier parts of this conversation may have been condensed into handoff notes. What they describe is done; build on it and on the present state of files and systems.]`
	handoffFallback = `There is no summary of the {n} messages that stood here: they were taken out to save room, and condensing them did not work. Go on from the messages below and from the present state of files and systems.`
	// legacyPrefix begins summaries of other compressors.
	legacyPrefix = "[CONTEXT SUMMARY]:"
	countMark    = "{n}"

	// maxProtected is the maximum of protect_first_n and protect_last_n.
	maxProtected = 1 << 30

	// minMiddle is the number of messages after the head that a view must exceed for a
	// handoff to be worthwhile.
	minMiddle = 4
)

func newHandoff(a *plan.Args) (plan.Strategy, error) {
	h := handoffOf(a, "handoff")
	h.useFallback = a.Choice("on_failure", "keep",
		"without a summary: keep all messages, or replace them by fallback_text", "keep", "fallback") == "fallback"
	h.systemNote = a.Bool("system_note", false, "add compaction_note to the leading system message, unless it is pinned or the guard forbids it")
	h.prefix = a.Text("summary_prefix", frame.Prefix, "text that begins each summary and by which later runs recognize it")
	h.note = a.Text("compaction_note", handoffNote, "the text added by system_note")
	h.end = a.Text("end_marker", frame.Suffix, "text that ends each summary")
	h.fallback = a.Text("fallback_text", handoffFallback, "text in place of a missing summary; {n} is the number of messages")
	if strings.TrimSpace(h.prefix) == "" {
		a.Fault("summary_prefix", h.prefix, "a text, by which summaries are recognized")
	}
	h.summarizer = a.Summarizer()
	return h, nil
}

// newExtractive returns a handoff whose summaries are written without a model.
func newExtractive(a *plan.Args) (plan.Strategy, error) {
	h := handoffOf(a, "extractive")
	h.prefix, h.end = frame.Prefix, frame.Suffix
	h.summarizer = extractor(a)
	return h, nil
}

// handoffOf returns a handoff with its sizes.
func handoffOf(a *plan.Args, name string) *handoff {
	if p, ok := a.Policy(); ok {
		// The tail, which may be half as long again, takes the tokens that an extract leaves; fitTarget
		// shortens it for the head, and for a longer answer of a model.
		const tailShare = 2.0 / 3
		a.Fill("context_length", int(p.Window))
		a.Fill("max_summary_tokens", int(p.Summary))
		a.Fill("tail_token_budget", max(1, int(float64(p.Target-p.Summary)*tailShare)))
		// The target bounds what stays, and a summary keeps more of the rest than a line for
		// each result.
		a.Fill("protect_last_n", -1)
		a.Fill("protect_first_n", 1) // such as the system message; a request is in the summary
	}
	h := &handoff{
		name: name,
		first: int(a.Int(plan.Int{
			Name: "protect_first_n", Default: 3, Min: 0, Max: maxProtected,
			Doc: "how many of the first messages stay as they are, system messages included; 1 in a policy",
		})),
		last: int(a.Int(plan.Int{
			Name: "protect_last_n", Default: 20, Min: -1, Max: maxProtected,
			Doc: "newest messages whose tool results and arguments are not pruned, -1 for all, as in a policy; the tail has at least as many, 8 at most, unless they exceed a policy's target",
		})),
	}
	if h.last < 0 {
		h.last = maxProtected
	}
	window := a.Int(plan.Int{
		Name: "context_length", Default: 128_000, Min: 1,
		Doc: "the model's window in tokens, from which the parameters below are derived if they are not given",
	})
	percent := a.Float(plan.Float{
		Name: "threshold_percent", Default: 0.5, Min: 0, Max: 1,
		Doc: "share of the window above which a conversation is compressed, at least 64000 tokens",
	})
	ratio := a.Float(plan.Float{
		Name: "summary_target_ratio", Default: 0.2, Min: 0, Max: 1,
		Doc: "share of that threshold for the tail, limited to 0.1 to 0.8",
	})
	h.tail = chat.Tokens(a.Int(plan.Int{
		Name: "tail_token_budget", Default: -1, Min: -1, Max: 1 << 40,
		Doc: "how many tokens of the newest messages stay; up to half as many more, so that no message is split; -1: derived as above",
	}))
	h.maxSummary = chat.Tokens(a.Int(plan.Int{
		Name: "max_summary_tokens", Default: 0, Min: 0, Max: 1 << 40,
		Doc: "maximum requested size of a summary; 0: a twentieth of the window, at most 12000",
	}))
	h.focus = a.Text("focus", "", "a topic that the summary favours")
	sizes := ThresholdsWithin(chat.Tokens(window), percent, ratio)
	if h.tail < 0 {
		h.tail = sizes.Tail
	}
	if h.maxSummary == 0 {
		h.maxSummary = sizes.Summary
	}
	h.prune = &pruneToolResults{protect: int64(h.last), budget: int64(h.tail)}
	return h
}

func (h *handoff) Name() string { return h.name }

func (h *handoff) Reads(t *plan.Transcript) []chat.Seq { return h.originals(t).seqs(h.view(t)) }

// view returns the indexes of the entries in the view, or nil if there are too few for a
// handoff.
func (h *handoff) view(t *plan.Transcript) []int {
	view := included(t, anyEntry)
	if len(view) <= h.first+minMiddle && !h.aboveTarget(t) {
		return nil
	}
	return view
}

// WithFocus implements agent.Focuser.
func (h *handoff) WithFocus(topic string) plan.Strategy {
	focused := *h
	focused.focus = topic
	return &focused
}

// WithPrevious implements agent.Continuer.
func (h *handoff) WithPrevious(summary string) plan.Strategy {
	continued := *h
	continued.previous = &summary
	return &continued
}

// Plan implements plan.Strategy. Without a summary the plan is empty or contains the
// fallback text, and the error wraps ErrNoSummary.
func (h *handoff) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	p := h.pass(t)
	if p.view == nil {
		return chat.Plan{}, nil
	}
	if err := p.read(ctx); err != nil {
		return chat.Plan{}, err
	}
	p.start, p.end = h.bounds(p.spans)
	p.fitTarget()
	if err := p.collect(); err != nil {
		return chat.Plan{}, err
	}
	if len(p.task.Messages) == 0 {
		for i := range p.view {
			p.addPruned(i)
		}
		return p.plan, nil
	}
	text, err := p.summary(ctx)
	switch {
	case err == nil:
		p.assemble(text)
	case !errors.Is(err, plan.ErrNoSummary):
		return chat.Plan{}, err
	case h.useFallback:
		p.assemble(h.fallbackText(p.end - p.start))
	}
	return p.plan, err
}

// fallbackText returns the text in place of the summary of n messages.
func (h *handoff) fallbackText(n int) string {
	return h.prefix + "\n" + strings.ReplaceAll(h.fallback, countMark, strconv.Itoa(n))
}

// prefixed returns a summary after the prefix, which the text may contain already.
func (h *handoff) prefixed(summary string) string {
	summary = text.Trim(summary)
	for _, prefix := range [...]string{legacyPrefix, h.prefix} {
		if rest, ok := strings.CutPrefix(summary, prefix); ok {
			summary = strings.TrimLeftFunc(rest, text.IsBlank)
			break
		}
	}
	if summary == "" {
		return h.prefix
	}
	return h.prefix + "\n" + summary
}

// split returns the summary in a message, without its prefix, and the text of the message
// into which it was merged.
func (h *handoff) split(m *chat.Message) (summary, rest string, ok bool) {
	if summary, rest, ok = h.splitOwn(m); !ok && m.Role != chat.RoleTool { // of an older version, or of another compressor
		summary, rest, ok = frame.Unwrap(m.Content.String())
	}
	return text.Trim(summary), text.Trim(rest), ok
}

// splitOwn splits a message that begins with the prefix of this handoff.
func (h *handoff) splitOwn(m *chat.Message) (summary, rest string, ok bool) {
	summary, ok = strings.CutPrefix(m.Content.String(), h.prefix)
	if !ok || m.Role == chat.RoleTool {
		return "", "", false
	}
	if h.end != "" {
		summary, rest, _ = strings.Cut(summary, "\n\n"+h.end)
	}
	return summary, rest, true
}

// wrote reports whether a message holds nothing but a summary.
func (h *handoff) wrote(m *chat.Message) bool {
	_, rest, ok := h.split(m)
	return ok && rest == "" && len(m.ToolCalls) == 0
}

// isFallback reports whether a summary is the fallback text.
func (h *handoff) isFallback(summary string) bool {
	before, after, _ := strings.Cut(h.fallback, countMark)
	return h.fallback != "" && strings.HasPrefix(summary, strings.TrimLeftFunc(before, text.IsBlank)) &&
		strings.HasSuffix(summary, strings.TrimRightFunc(after, text.IsBlank))
}

// Previous implements agent.Continuer. It returns the newest summary in the view.
func (h *handoff) Previous(t *plan.Transcript) (string, bool) {
	newest, found := "", chat.Seq(0)
	for i := range t.Entries {
		e := &t.Entries[i]
		if !e.Included || e.Message == nil || e.Seq < found {
			continue
		}
		if summary, _, ok := h.split(e.Message); ok && !h.isFallback(summary) {
			newest, found = summary, e.Seq
		}
	}
	return newest, found > 0
}

// HasContent implements agent.ContentHaver. It reports whether there are messages between
// the head and the tail, without regard to pruning.
func (h *handoff) HasContent(t *plan.Transcript) bool {
	s := h.loadedSpans(t)
	if len(s) <= h.first+minMiddle {
		return false
	}
	start, end := h.bounds(s)
	return start < end
}

// loadedSpans returns the spans of the messages in the view whose content is loaded.
func (h *handoff) loadedSpans(t *plan.Transcript) spans {
	var s spans
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Included && e.Message != nil {
			s = append(s, spanOf(e.Message))
			s[len(s)-1].summary = h.wrote(e.Message)
		}
	}
	return s
}
