package builtin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/plan"
)

// handoff summarizes the messages between a protected head and a tail of limited size as
// notes for the assistant that continues, and prunes old tool results in the rest. A later
// handoff updates the notes of the previous one.
type handoff struct {
	first, last   int
	tail, most    chat.Tokens
	focus         string
	reference     bool
	fallsBack     bool
	systemNote    bool
	prefix, note  string
	end, stub     string
	fallback      string
	prune         plan.Strategy
	summarizer    plan.Summarizer
	continues     bool
	continuesWith string
}

// The fixed texts of a handoff, where none are configured.
const (
	handoffNote     = `[Note: earlier parts of this conversation may have been condensed into handoff notes. What they describe is done; build on it and on the present state of files and systems.]`
	handoffStub     = `[The result of this call was condensed; see the handoff notes.]`
	handoffFallback = `There is no summary of the {n} messages that stood here: they were taken out to save room, and condensing them did not work. Go on from the messages below and from the present state of files and systems.`
	// legacyPrefix begins summaries of other compressors.
	legacyPrefix = "[CONTEXT SUMMARY]:"
	countMark    = "{n}"

	// leastMiddle is how many messages there are behind the head, and one more, where a
	// handoff is worth it.
	leastMiddle = 4
)

func newHandoff(a *plan.Args) (plan.Strategy, error) {
	if p, ok := a.Policy(); ok {
		summary := min(p.Summary, max(1, p.Target/4))
		rest := float64(p.Target) - 1.3*float64(summary) - p.References*float64(summary)
		// The tail's share of the rest leaves space for the head, and for a tail that is
		// half as long again.
		const tailShare = 0.55
		a.Fill("context_length", int(p.Window))
		a.Fill("max_summary_tokens", int(summary))
		a.Fill("tail_token_budget", max(1, int(rest*tailShare)))
	}
	h := &handoff{
		first: int(a.Int(plan.Int{
			Name: "protect_first_n", Default: 3, Min: 0, Max: 1 << 30,
			Doc: "how many of the first messages stay as they are, system messages included",
		})),
		last: int(a.Int(plan.Int{
			Name: "protect_last_n", Default: 20, Min: 0, Max: 1 << 30,
			Doc: "newest messages in which tool results and arguments are not pruned; in mode safe the tail has as many of them, 8 at most, whatever they cost",
		})),
	}
	window := a.Int(plan.Int{
		Name: "context_length", Default: 128_000, Min: 1,
		Doc: "the model's window in tokens; what is not given below follows from it",
	})
	percent := a.Float(plan.Float{
		Name: "threshold_percent", Default: 0.5, Min: 0, Max: 1,
		Doc: "the part of the window from which on a conversation is compressed, 64000 tokens at least",
	})
	ratio := a.Float(plan.Float{
		Name: "summary_target_ratio", Default: 0.2, Min: 0, Max: 1,
		Doc: "the part of that threshold that the tail may have; 0.1 to 0.8 count",
	})
	h.tail = chat.Tokens(a.Int(plan.Int{
		Name: "tail_token_budget", Default: -1, Min: -1, Max: 1 << 40,
		Doc: "how many tokens of the newest messages stay, and half as much again before a message is cut off; -1: as above",
	}))
	h.most = chat.Tokens(a.Int(plan.Int{
		Name: "max_summary_tokens", Default: 0, Min: 0, Max: 1 << 40,
		Doc: "the most a summary is asked to have; 0: a twentieth of the window, 12000 at most",
	}))
	h.focus = a.Text("focus", "", "a topic that the summary favours")
	h.reference = a.Choice("mode", "safe",
		"reference: as Hermes Agent did, its losses included; safe: without them", "safe", "reference") == "reference"
	sizes := ThresholdsWithin(chat.Tokens(window), percent, ratio)
	if h.reference {
		sizes = ThresholdsOf(chat.Tokens(window), percent, ratio)
	}
	if h.tail < 0 {
		h.tail = sizes.Tail
	}
	if h.most == 0 {
		h.most = sizes.Summary
	}
	h.fallsBack = a.Choice("on_failure", "keep",
		"when no summary is had: keep everything, or put the fallback text in its place", "keep", "fallback") == "fallback"
	h.systemNote = a.Bool("system_note", false, "add compaction_note to the leading system message, if no guard forbids it")
	h.prefix = a.Text("summary_prefix", frame.Prefix, "what a summary begins with, and how it is recognised later")
	h.note = a.Text("compaction_note", handoffNote, "what system_note adds")
	h.end = a.Text("end_marker", frame.Suffix, "what ends a summary")
	h.stub = a.Text("stub_result", handoffStub, "the result of a call whose own is gone (mode reference)")
	h.fallback = a.Text("fallback_text", handoffFallback, "what stands in place of a summary that was not had; {n} counts the messages")
	if strings.TrimSpace(h.prefix) == "" {
		a.Fault("summary_prefix", h.prefix, "a text, for summaries are recognised by it")
	}
	h.summarizer = a.Summarizer()
	h.prune = &pruneToolResults{protect: int64(h.last), budget: int64(h.tail)}
	return h, nil
}

// Name implements Strategy.
func (*handoff) Name() string { return "handoff" }

// Reads implements Reader.
func (h *handoff) Reads(t *plan.Transcript) []chat.Seq {
	view := h.view(t)
	out := make([]chat.Seq, len(view))
	for i, e := range view {
		out[i] = t.Entries[e].Seq
	}
	return out
}

// view returns the indexes of the entries in the view, nil where there are too few for
// a handoff.
func (h *handoff) view(t *plan.Transcript) []int {
	var view []int
	for i := range t.Entries {
		if t.Entries[i].Included {
			view = append(view, i)
		}
	}
	if len(view) <= h.first+leastMiddle {
		return nil
	}
	return view
}

// WithFocus implements Focuser.
func (h *handoff) WithFocus(topic string) plan.Strategy {
	focused := *h
	focused.focus = topic
	return &focused
}

// WithPrevious implements Continuer.
func (h *handoff) WithPrevious(summary string) plan.Strategy {
	continued := *h
	continued.continues, continued.continuesWith = true, summary
	return &continued
}

// Plan implements Strategy. Without a summary the plan is empty, or writes the
// fallback text, and the error wraps ErrNoSummary.
func (h *handoff) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	p, err := h.pass(ctx, t)
	if p == nil {
		return chat.Plan{}, err
	}
	return p.plan, err
}

// handoffPass is the state of planning one handoff.
type handoffPass struct {
	h *handoff
	t *plan.Transcript
	// view are indexes of entries, messages what the view holds once it is pruned,
	// keep what stays though it is in the middle; all three run in parallel.
	view     []int
	messages []*chat.Message
	keep     []bool
	spans    spans
	pruned   map[chat.Seq]*chat.Addition
	// middle, from start to end, is what the summary is of; end may be one too far.
	start, end int
	turns      []*chat.Message
	// previous is the summary that this one updates, empty for none; budget is the number
	// of tokens asked for.
	previous string
	budget   int
	// asked: the summarizer was asked. dropped counts what a fallback text replaced.
	asked   bool
	dropped int
	// role of the summary, empty where it was merged into the first message behind it.
	role chat.Role
	plan chat.Plan
}

// pass plans a handoff. Both results are nil where the view is too short.
func (h *handoff) pass(ctx context.Context, t *plan.Transcript) (*handoffPass, error) {
	p := &handoffPass{h: h, t: t, view: h.view(t)}
	if p.view == nil {
		return nil, nil //nolint:nilnil // nothing to do is no error
	}
	if err := p.read(ctx); err != nil {
		return nil, err
	}
	p.start, p.end = h.bounds(p.spans)
	if err := p.collect(); err != nil {
		return nil, err
	}
	if p.start >= p.end || len(p.turns) == 0 && !h.reference {
		p.pruneOnly()
		return p, nil
	}
	text, err := p.summary(ctx)
	switch {
	case err == nil:
		p.assemble(text)
	case !errors.Is(err, plan.ErrNoSummary):
		return nil, err
	case h.fallsBack:
		p.dropped = p.end - p.start
		p.assemble(h.prefix + "\n" + strings.ReplaceAll(h.fallback, countMark, strconv.Itoa(p.dropped)))
	}
	return p, err
}

// read takes the messages of the view, pruned where they will be.
func (p *handoffPass) read(ctx context.Context) error {
	plan, err := p.h.prune.Plan(ctx, p.t)
	if err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	p.pruned = make(map[chat.Seq]*chat.Addition, len(plan.Additions))
	for i := range plan.Additions {
		p.pruned[plan.Additions[i].Covers[0].Lo] = &plan.Additions[i]
	}
	p.messages = make([]*chat.Message, len(p.view))
	p.spans = make(spans, len(p.view))
	for i, e := range p.view {
		m, err := p.t.Read(e)
		if err != nil {
			return err
		}
		if a := p.pruned[p.t.Entries[e].Seq]; a != nil {
			m = &a.Message
		}
		p.messages[i], p.spans[i] = m, spanOf(m)
		meta := &p.t.Entries[e].Meta
		p.spans[i].summary = p.h.wrote(m) || meta.Kind == chat.KindSummary && !meta.Has(chat.Moved)
	}
	p.keep = p.kept()
	return nil
}

// kept marks what stays in the middle: pinned groups, and instructions, which are not to
// be retold.
func (p *handoffPass) kept() []bool {
	pinned := make([]bool, len(p.t.Entries))
	for i, g := range p.t.Groups() {
		if !p.t.GroupPinned(i) {
			continue
		}
		for e := g.Start; e < g.End; e++ {
			pinned[e] = true
		}
	}
	keep := make([]bool, len(p.view))
	for i, e := range p.view {
		keep[i] = pinned[e] || !p.h.reference && instructs(&p.t.Entries[e])
	}
	return keep
}

// collect gathers what is to be summarized and the summary it goes on from. A strict
// writer shortens what a model reads by itself, and takes references from all that was
// said: it gets messages as they are, not as pruning left them.
func (p *handoffPass) collect() error {
	newest := chat.Seq(0)
	_, strict := p.h.summarizer.(plan.Strict)
	for i := range p.messages {
		m := p.messages[i]
		if strict {
			var err error
			if m, err = p.t.Read(p.view[i]); err != nil {
				return err
			}
		}
		inside := i >= p.start && i < p.end && !p.keep[i]
		summary, rest, ok := p.h.split(m)
		if ok && !p.h.isFallback(summary) && p.t.Entries[p.view[i]].Seq > newest && (inside || p.h.reference) {
			newest, p.previous = p.t.Entries[p.view[i]].Seq, summary
		}
		switch {
		case !inside:
			continue
		case !p.h.reference && p.h.wrote(m):
			continue // the model is given it as the previous summary
		case ok && !p.h.reference:
			said := *m
			said.Content = chat.TextContent(rest)
			m = &said
		}
		p.turns = append(p.turns, m)
	}
	if p.h.continues {
		p.previous = p.h.continuesWith
	}
	return nil
}

// pruneOnly plans nothing but what pruning wants.
func (p *handoffPass) pruneOnly() {
	for i := range p.view {
		p.standIn(i)
	}
}
