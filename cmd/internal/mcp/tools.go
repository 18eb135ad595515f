package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// Read is the answer of history_read and summary_expand.
type Read struct {
	Answer
	Messages []Entry `json:"messages"`
}

type readIn struct {
	From   chat.Seq    `json:"from_seq,omitempty" jsonschema:"the first message; give it, or around"`
	To     chat.Seq    `json:"to_seq,omitempty" jsonschema:"the last message; without it, as many as max_tokens allows"`
	Around chat.Seq    `json:"around,omitempty" jsonschema:"a message, such as a hit of history_search, to read with those beside it"`
	Max    chat.Tokens `json:"max_tokens,omitempty" jsonschema:"the size of the answer, 4000 without it"`
	Offset int         `json:"offset,omitempty" jsonschema:"as next gives it: where to go on in the first message"`
}

// read answers history_read.
func (h *History) read(ctx context.Context, s *session, in readIn) (Read, error) {
	const beside = 10 // on each side
	in.Max = cmp.Or(in.Max, defaultTokens)
	switch {
	case (in.From == 0) == (in.Around == 0):
		return Read{}, fmt.Errorf("%w: give from_seq (and to_seq), or around", store.ErrInvalid)
	case in.To != 0 && in.To < in.From:
		return Read{}, fmt.Errorf("%w: to_seq %d is before from_seq %d", store.ErrInvalid, in.To, in.From)
	case in.Around != 0:
		return h.around(ctx, s, in.Around, beside, in.Max)
	}
	to := chat.Open
	if in.To != 0 {
		to = in.To + 1
	}
	out := Read{Answer: s.answer("messages from %d on", in.From)}
	if in.To != 0 {
		out.Scope = s.answer("messages %d to %d", in.From, in.To).Scope
	}
	err := h.inOrder(ctx, s, &out, chat.Ranges{{Lo: in.From, Hi: to}}, in.Offset, in.Max, func(next chat.Seq, offset int) *NextCall {
		call := NextCall{"history_read", map[string]any{"from_seq": next, "max_tokens": in.Max}}
		if in.To != 0 {
			call.Arguments["to_seq"] = in.To
		}
		if offset > 0 {
			call.Arguments["offset"] = offset
		}
		return &call
	})
	return out, err
}

// inOrder adds messages of ranges to an answer, as many as fit. The first one may be cut.
func (h *History) inOrder(
	ctx context.Context, s *session, out *Read, ranges chat.Ranges, offset int, most chat.Tokens, next func(chat.Seq, int) *NextCall,
) error {
	here, beyond := firstOf(ranges, window)
	msgs, ended, err := h.load(ctx, here)
	if err != nil {
		return err
	}
	budget := most - envelope
	out.Messages = []Entry{}
	var used chat.Tokens
	for i := range msgs {
		e, rest := s.entry(&msgs[i], offset, budget-used)
		cost := s.cost(e)
		switch {
		case i > 0 && (rest > 0 || used+cost > budget): // it does not fit behind others
			out.leave(msgs[i:], beyond, ended, next(msgs[i].Seq, 0))
			return h.looked(ctx, msgs[:i])
		case rest > 0:
			out.Messages = append(out.Messages, e)
			out.leave(msgs[1:], beyond, ended, next(msgs[i].Seq, rest))
			out.LeftOut = "the rest of message " + fmt.Sprint(e.Seq) + "; " + out.LeftOut
			return h.looked(ctx, msgs[:1])
		}
		used += cost + 1 // a comma
		out.Messages, offset = append(out.Messages, e), 0
	}
	if beyond != nil && !ended {
		out.leave(nil, beyond, ended, next(beyond[0].Lo, 0))
	}
	return h.looked(ctx, msgs)
}

// leave counts the messages that an answer leaves out, and names the ranges beyond them.
func (r *Read) leave(msgs []store.Stored, beyond chat.Ranges, ended bool, next *NextCall) {
	var size chat.Tokens
	for i := range msgs {
		size += msgs[i].Tokens
	}
	r.LeftOut = fmt.Sprintf("%d more messages of %d tokens", len(msgs), size)
	if n := beyond.Len(); !ended && n > 0 {
		r.LeftOut += fmt.Sprintf(", and what is there from message %d on", beyond[0].Lo)
	}
	r.Next = next
}

// around answers history_read for the surroundings of a message.
func (h *History) around(ctx context.Context, s *session, seq chat.Seq, beside int, most chat.Tokens) (Read, error) {
	low, high := max(1, seq-chat.Seq(beside)), seq+chat.Seq(beside)
	out := Read{Answer: s.answer("messages %d to %d", low, high), Messages: []Entry{}}
	msgs, _, err := h.load(ctx, chat.Ranges{{Lo: low, Hi: high + 1}})
	if err != nil {
		return out, err
	}
	at, found := slices.BinarySearchFunc(msgs, seq, func(m store.Stored, seq chat.Seq) int { return cmp.Compare(m.Seq, seq) })
	if !found {
		return out, fmt.Errorf("message %d of %s: %w (a summary is read with summary_show)", seq, s.name(), store.ErrNotFound)
	}
	budget := most - envelope
	e, rest := s.entry(&msgs[at], 0, budget)
	out.Messages = append(out.Messages, e)
	used := s.cost(e)
	from, to := at, at+1
	for rest == 0 && (from > 0 || to < len(msgs)) {
		if before, left := h.fits(s, msgs, from-1, budget-used); before != nil {
			out.Messages, from, used = slices.Insert(out.Messages, 0, *before), from-1, used+left
		} else if from > 0 {
			break
		}
		if behind, left := h.fits(s, msgs, to, budget-used); behind != nil {
			out.Messages, to, used = append(out.Messages, *behind), to+1, used+left
		} else if to < len(msgs) {
			break
		}
	}
	if from > 0 || to < len(msgs) || rest > 0 {
		var next *NextCall
		switch {
		case rest > 0:
			next = &NextCall{"history_read", map[string]any{"from_seq": seq, "to_seq": seq, "offset": rest, "max_tokens": most}}
		case to < len(msgs):
			next = &NextCall{"history_read", map[string]any{"from_seq": msgs[to].Seq, "to_seq": high, "max_tokens": most}}
		default:
			next = &NextCall{"history_read", map[string]any{"from_seq": low, "to_seq": msgs[from-1].Seq, "max_tokens": most}}
		}
		out.leave(slices.Concat(msgs[:from], msgs[to:]), nil, true, next)
		if rest > 0 {
			out.LeftOut = fmt.Sprintf("the rest of message %d; %s", seq, out.LeftOut)
		}
	}
	return out, h.looked(ctx, msgs[from:to])
}

// fits returns message i as an entry and its cost, or nil if there is none, or not within a budget.
func (h *History) fits(s *session, msgs []store.Stored, i int, budget chat.Tokens) (*Entry, chat.Tokens) {
	if i < 0 || i >= len(msgs) {
		return nil, 0
	}
	e, rest := s.entry(&msgs[i], 0, budget)
	cost := s.cost(e) + 1 // a comma
	if rest > 0 || cost > budget {
		return nil, 0
	}
	return &e, cost
}

// load returns the source messages within ranges, in order, and whether the session ends there. Words in
// an archive that is damaged are missing.
func (h *History) load(ctx context.Context, ranges chat.Ranges) (msgs []store.Stored, ended bool, err error) {
	msgs, err = h.Store.Among(ctx, h.Key, ranges)
	if err != nil && (len(msgs) == 0 || !errors.Is(err, store.ErrDamaged)) {
		return nil, false, err
	}
	ended = int64(len(msgs)) < ranges.Len()
	msgs = slices.DeleteFunc(msgs, func(m store.Stored) bool { return m.Kind != chat.KindSource })
	slices.SortFunc(msgs, func(a, b store.Stored) int { return cmp.Compare(a.Seq, b.Seq) })
	return msgs, ended, nil
}

// firstOf returns the first n seqs of ranges, and the others.
func firstOf(ranges chat.Ranges, n int64) (here, beyond chat.Ranges) {
	for i, r := range ranges {
		if r.Hi-r.Lo > chat.Seq(n) {
			at := r.Lo + chat.Seq(n)
			if n > 0 {
				here = append(here, chat.Range{Lo: r.Lo, Hi: at})
			}
			return here, append(chat.Ranges{{Lo: at, Hi: r.Hi}}, ranges[i+1:]...)
		}
		here, n = append(here, r), n-int64(r.Hi-r.Lo)
	}
	return here, nil
}

// looked notes the runs that had taken messages out of the view, which the agent had to look up again.
func (h *History) looked(ctx context.Context, msgs []store.Stored) error {
	var runs []store.RunID
	for i := range msgs {
		if m := &msgs[i]; !m.Included && m.ExcludedBy != 0 && !slices.Contains(runs, m.ExcludedBy) {
			runs = append(runs, m.ExcludedBy)
		}
	}
	if len(runs) == 0 {
		return nil
	}
	if err := h.Store.Reader.NoteLookups(ctx, h.Key.Tenant, runs); err != nil { // on a standby, nothing can be noted
		h.Logger.WarnContext(ctx, "a look-up could not be noted", "error", err)
	}
	return nil
}

// Compactions is the answer of compactions.
type Compactions struct {
	Answer
	Runs []Compaction `json:"compactions"`
}

// Compaction is a change of the view.
type Compaction struct {
	Run            store.RunID `json:"run"`
	Kind           string      `json:"kind" jsonschema:"compact, or undo, replace, repair, erase"`
	EndedAt        *time.Time  `json:"ended_at,omitempty"`
	InForce        bool        `json:"in_force" jsonschema:"whether it was not undone"`
	Strategies     []string    `json:"strategies"`
	MessagesBefore int64       `json:"messages_before"`
	MessagesAfter  int64       `json:"messages_after"`
	TokensBefore   int64       `json:"tokens_before"`
	TokensAfter    int64       `json:"tokens_after"`
	Summaries      []string    `json:"summaries" jsonschema:"the ids of the summaries that it wrote"`
}

type compactionsIn struct {
	Limit  int         `json:"limit,omitempty" jsonschema:"how many, at most: 10 without it"`
	Before store.RunID `json:"before_run,omitempty" jsonschema:"only those before this run"`
}

// compactions answers compactions.
func (h *History) compactions(ctx context.Context, s *session, in compactionsIn) (Compactions, error) {
	in.Limit = cmp.Or(in.Limit, defaultLimit)
	out := Compactions{Answer: s.answer("compactions"), Runs: []Compaction{}}
	rows, err := h.Store.Operator.Runs(ctx, store.RunFilter{
		Key: h.Key, Status: store.StatusApplied, Before: in.Before, Limit: in.Limit + 1,
	})
	if err != nil {
		return out, err
	}
	used := chat.Tokens(envelope)
	for i, r := range rows {
		c := Compaction{
			Run: r.ID, Kind: r.Kind, EndedAt: r.EndedAt, InForce: r.InForce, Strategies: []string{}, MessagesBefore: r.MessagesBefore,
			MessagesAfter: r.MessagesAfter, TokensBefore: r.TokensBefore, TokensAfter: r.TokensAfter,
		}
		var steps []struct {
			Strategy string `json:"strategy"`
		}
		_ = json.Unmarshal(r.Steps, &steps) // null without a plan
		for _, step := range steps {
			c.Strategies = append(c.Strategies, clip(step.Strategy))
		}
		if c.Summaries, err = h.Store.Reader.SummariesOf(ctx, r.ID); err != nil {
			return out, err
		}
		c.Summaries = append([]string{}, c.Summaries...)
		if used += s.cost(c) + 1; i == in.Limit || i > 0 && used > defaultTokens {
			out.LeftOut = "earlier ones"
			out.Next = &NextCall{"compactions", map[string]any{"before_run": rows[i-1].ID, "limit": in.Limit}}
			return out, nil
		}
		out.Runs = append(out.Runs, c)
	}
	return out, nil
}

// Shown is the answer of summary_show.
type Shown struct {
	Answer
	Summary Entry       `json:"summary"`
	Run     store.RunID `json:"run" jsonschema:"the compaction that wrote it"`
	Covers  string      `json:"covers" jsonschema:"the seqs of what it stands for"`
}

type showIn struct {
	ID     string      `json:"id" jsonschema:"its id, such as summary-120-7"`
	Max    chat.Tokens `json:"max_tokens,omitempty" jsonschema:"the size of the answer, 4000 without it"`
	Offset int         `json:"offset,omitempty" jsonschema:"as next gives it: where to go on"`
}

// show answers summary_show.
func (h *History) show(ctx context.Context, s *session, in showIn) (Shown, error) {
	row, err := h.summary(ctx, s, in.ID)
	if err != nil {
		return Shown{}, err
	}
	in.Max = cmp.Or(in.Max, defaultTokens)
	e, rest := s.entry(&row.Stored, in.Offset, in.Max-envelope)
	out := Shown{Answer: s.answer("summary %s", clip(in.ID)), Summary: e, Run: row.Run, Covers: clip(row.SummaryOf.String())}
	out.Next = &NextCall{"summary_expand", map[string]any{"id": in.ID}}
	out.LeftOut = "the messages that it stands for"
	if rest > 0 {
		out.LeftOut = "the rest of the summary, and the messages that it stands for"
		out.Next = &NextCall{"summary_show", map[string]any{"id": in.ID, "offset": rest, "max_tokens": in.Max}}
	}
	return out, nil
}

// summary returns a summary of the session. One of another session is not found.
func (h *History) summary(ctx context.Context, s *session, id string) (store.SummaryRow, error) {
	row, err := h.Store.Reader.Summary(ctx, h.Key, id)
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("summary %q of %s: %w (compactions and history_search have the ids)", clip(id), s.name(), store.ErrNotFound)
	}
	return row, err
}

type expandIn struct {
	ID     string      `json:"id" jsonschema:"its id, such as summary-120-7"`
	Max    chat.Tokens `json:"max_tokens,omitempty" jsonschema:"the size of the answer, 4000 without it"`
	From   chat.Seq    `json:"from_seq,omitempty" jsonschema:"as next gives it: the message to go on with"`
	Offset int         `json:"offset,omitempty" jsonschema:"as next gives it: where to go on in that message"`
}

// expand answers summary_expand.
func (h *History) expand(ctx context.Context, s *session, in expandIn) (Read, error) {
	in.Max = cmp.Or(in.Max, defaultTokens)
	if _, err := h.summary(ctx, s, in.ID); err != nil { // it may be of another session
		return Read{}, err
	}
	_, covered, err := h.Store.Reader.Sources(ctx, h.Key, in.ID)
	if err != nil {
		return Read{}, err
	}
	out := Read{Answer: s.answer("the messages behind summary %s", clip(in.ID))}
	rest := covered.Intersect(chat.Ranges{{Lo: max(1, in.From), Hi: chat.Open}})
	err = h.inOrder(ctx, s, &out, rest, in.Offset, in.Max, func(next chat.Seq, offset int) *NextCall {
		call := NextCall{"summary_expand", map[string]any{"id": in.ID, "from_seq": next, "max_tokens": in.Max}}
		if offset > 0 {
			call.Arguments["offset"] = offset
		}
		return &call
	})
	return out, err
}
