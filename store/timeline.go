package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// A Timeline has the newest messages and runs up to these numbers.
const (
	timelineMessages = 100_000
	timelineRuns     = 200
)

// Timeline is what was said in a session and how runs changed its view, without any words. Sets of messages are
// ranges of seqs, as {[3,8),[9,10)}.
type Timeline struct {
	Messages TimelineMessages `json:"messages"`
	// Runs are the latest ones that changed the view, the oldest first.
	Runs    []TimelineRun `json:"runs"`
	LastSeq chat.Seq      `json:"last_seq"`
	// Live is the view now, with all that will be appended.
	Live     string `json:"in_view"`
	Pinned   string `json:"pinned"`
	Erased   string `json:"erased"`
	Archived string `json:"archived"`
	// NoReasoning are messages whose signed reasoning is not in the view.
	NoReasoning string      `json:"no_reasoning"`
	TailStart   chat.Seq    `json:"tail_start_seq"` // no run has changed anything from it on
	Turns       int64       `json:"turns"`          // messages of the user
	NewTokens   chat.Tokens `json:"tokens_since_run"`
	NewMessages int64       `json:"messages_since_run"`
	More        bool        `json:"more"` // there are older messages or runs
}

// TimelineMessages are messages in columns, in the order of their seqs.
type TimelineMessages struct {
	Seqs []chat.Seq `json:"seqs"`
	// Positions are the places in the view: a summary stands before the message at its position.
	Positions []chat.Seq `json:"positions"`
	// Kinds has a letter for each message: s system, u user, a assistant, c tool call, t tool result, o another
	// role, M summary, R replacement.
	Kinds  string        `json:"kinds"`
	Tokens []chat.Tokens `json:"tokens"`
	// Said are the tokens said up to and with each message, from the first one here on. Summaries and replacements were
	// not said.
	Said []chat.Tokens `json:"said"`
	// Covers has, by their seqs, what summaries and replacements stand for.
	Covers map[chat.Seq]string `json:"covers"`
}

// TimelineRun is a run that changed the view.
type TimelineRun struct {
	ID             RunID       `json:"run"`
	Trigger        string      `json:"trigger"`
	Kind           string      `json:"kind"`
	RequestedBy    string      `json:"requested_by"`
	Status         string      `json:"status"`
	Outcome        string      `json:"outcome"`
	InForce        bool        `json:"in_force"`
	Undoes         RunID       `json:"undoes,omitempty"`    // kind undo: the undone run, the first of several
	UndoneBy       RunID       `json:"undone_by,omitempty"` // the undo that took it back; 0 if it is in force
	Revision       int64       `json:"revision"`
	MessagesBefore int64       `json:"messages_before"`
	MessagesAfter  int64       `json:"messages_after"`
	TokensBefore   chat.Tokens `json:"tokens_before"`
	TokensAfter    chat.Tokens `json:"tokens_after"`
	EndedAt        *time.Time  `json:"ended_at,omitempty"`
	Seconds        float64     `json:"seconds"`
	Model          string      `json:"model,omitempty"`       // called last; empty for none
	CostMicros     int64       `json:"cost_micros,omitempty"` // of its calls of models
	Read           chat.Seq    `json:"read_seq"`              // the last message before the run
	Until          chat.Seq    `json:"until_seq"`             // the last one with what the run wrote
	Out            string      `json:"out"`                   // of the view
	Back           string      `json:"back"`                  // into the view
	Wrote          string      `json:"wrote"`
}

// Timeline returns the timeline of a session, as of one moment. ErrNotFound names the session. It costs what an
// index-only scan of the log does.
func (s Reader) Timeline(ctx context.Context, k Key) (t Timeline, err error) {
	const session = `
		SELECT sid, last_seq, live::text, pinned::text, erased::text, archived::text, reasoning_out::text, tail_start_seq, turns,
			tokens_since_run, messages_since_run
		FROM compactor.sessions WHERE tenant = $1 AND id = $2`
	const messages = `
		SELECT seq, position, cumulative_tokens, token_count, calls, role_code, kind FROM compactor.message_log
		WHERE sid = $1 AND seq > $2 ORDER BY seq`
	const covers = `SELECT m.seq, m.summary_of::text FROM compactor.message_log m WHERE sid = $1 AND seq = ANY($2)`
	const runs = `
		SELECT r.id, r.trigger, r.kind, r.requested_by, r.status, coalesce(r.outcome, ''), r.in_force, coalesce(r.undoes, 0), 0::bigint, r.revision,
			coalesce(r.messages_before, 0), coalesce(r.messages_after, 0), coalesce(r.tokens_before, 0), coalesce(r.tokens_after, 0), r.ended_at,
			coalesce(extract(epoch FROM r.ended_at - r.started_at), 0)::float8, coalesce(c.model, ''), c.micros, coalesce(r.applied_seq, 0),
			greatest(r.applied_seq, r.said_until, upper(r.appended) - 1, 0), (r.live_before - r.live_after)::text,
			(r.live_after - r.live_before)::text, coalesce(r.appended, '{}')::text
		FROM (SELECT * FROM compactor.runs WHERE sid = $1 AND status = 'applied' ORDER BY id DESC LIMIT $2) r
		CROSS JOIN LATERAL (SELECT (array_agg(model ORDER BY id DESC) FILTER (WHERE model IS NOT NULL))[1] AS model,
			coalesce(sum(cost_micros), 0)::bigint AS micros FROM compactor.summary_calls WHERE run = r.id OFFSET 0) c
		ORDER BY r.revision`
	err = pgx.BeginTxFunc(ctx, s.pool, snapshotTx, func(tx pgx.Tx) error {
		var sid int64
		err := tx.QueryRow(ctx, s.q(session), k.tenant(), k.Session).Scan(&sid, &t.LastSeq, &t.Live, &t.Pinned, &t.Erased, &t.Archived, &t.NoReasoning,
			&t.TailStart, &t.Turns, &t.NewTokens, &t.NewMessages)
		if err != nil {
			return err
		}
		first := max(0, t.LastSeq-timelineMessages)
		rows, _ := tx.Query(ctx, s.q(messages), sid, first) // rows hold the error
		written, err := t.Messages.collect(rows)
		if err != nil {
			return err
		}
		t.Messages.Covers = map[chat.Seq]string{}
		if len(written) > 0 {
			var q chat.Seq
			var of string
			rows, _ = tx.Query(ctx, s.q(covers), sid, written) // rows hold the error
			_, err = pgx.ForEachRow(rows, []any{&q, &of}, func() error {
				t.Messages.Covers[q] = of
				return nil
			})
			if err != nil {
				return err
			}
		}
		t.Runs, err = collectRows(ctx, s.Store, tx, pgx.RowToStructByPos[TimelineRun], runs, sid, timelineRuns)
		t.Runs = append([]TimelineRun{}, t.Runs...)
		t.markUndone()
		t.More = first > 0 || len(t.Runs) == timelineRuns
		return err
	})
	return t, wrap(fmt.Sprintf("session %s", k), err)
}

// collect adds the rows of messages, and returns the seqs of those that runs wrote.
func (m *TimelineMessages) collect(rows pgx.Rows) (written []chat.Seq, err error) {
	letters := []byte{}
	m.Seqs, m.Positions, m.Tokens, m.Said = []chat.Seq{}, []chat.Seq{}, []chat.Tokens{}, []chat.Tokens{}
	var r metaRow
	var said, before chat.Tokens
	_, err = pgx.ForEachRow(rows, []any{&r.seq, &r.position, &said, &r.tokens, &r.calls, &r.role, &r.kind}, func() error {
		m.Seqs, m.Positions = append(m.Seqs, chat.Seq(r.seq)), append(m.Positions, chat.Seq(r.position))
		if len(m.Said) == 0 && r.kind == 'm' {
			before = said - chat.Tokens(r.tokens)
		} else if len(m.Said) == 0 {
			before = said
		}
		m.Tokens, m.Said = append(m.Tokens, chat.Tokens(r.tokens)), append(m.Said, said-before)
		letters = append(letters, r.letter())
		if r.kind != 'm' {
			written = append(written, chat.Seq(r.seq))
		}
		return nil
	})
	m.Kinds = string(letters)
	return written, err
}

// letter returns the kind of a message in a timeline.
func (r *metaRow) letter() byte {
	switch {
	case r.kind == 's':
		return 'M'
	case r.kind == 'i':
		return 'R'
	case r.role == 'd':
		return 's'
	case r.role == 'a' && r.calls > 0:
		return 'c'
	}
	return r.role
}

// markUndone sets which undo took a run back: the first that undid it or one before it.
func (t *Timeline) markUndone() {
	revisions := map[RunID]int64{}
	for i := range t.Runs {
		r := &t.Runs[i]
		revisions[r.ID] = r.Revision
		for j := range t.Runs[:i] {
			if o := &t.Runs[j]; r.Undoes != 0 && r.InForce && !o.InForce && o.UndoneBy == 0 && o.Revision >= revisions[r.Undoes] {
				o.UndoneBy = r.ID
			}
		}
	}
}

// Order returns the places of the messages in the order of a view.
func (t *Timeline) Order() []int {
	m := t.Messages
	rank := func(i int) int {
		switch k := m.Kinds[i]; {
		case k == 'M':
			return 0
		case k != 'R' && m.Positions[i] != m.Seqs[i]: // it was moved behind the message at its position
			return 2
		}
		return 1
	}
	order := make([]int, len(m.Seqs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(m.Positions[a], m.Positions[b]), cmp.Compare(rank(a), rank(b)))
	})
	return order
}

// Covered returns what a summary or replacement stands for, also through others.
func (t *Timeline) Covered(seq chat.Seq) chat.Ranges {
	written := slices.Sorted(maps.Keys(t.Messages.Covers))
	seen := chat.Ranges{}
	for next := []chat.Seq{seq}; len(next) > 0; next = next[1:] {
		of, _ := chat.ParseRanges(t.Messages.Covers[next[0]]) // else nothing
		for _, x := range of.Minus(seen) {
			for i, _ := slices.BinarySearch(written, x.Lo); i < len(written) && written[i] < x.Hi; i++ {
				next = append(next, written[i])
			}
		}
		seen = seen.Union(of)
	}
	return seen
}

// At returns the view that a run left, or with 0 that of now, and the last message that there was then. ok is false for
// a run that the timeline does not have.
func (t *Timeline) At(run RunID) (view chat.Ranges, until chat.Seq, ok bool) {
	live, err := chat.ParseRanges(t.Live)
	if err != nil {
		return nil, 0, false
	}
	until = t.LastSeq
	if run != 0 {
		until = -1
		for _, r := range slices.Backward(t.Runs) {
			if r.ID == run {
				until = r.Until
				break
			}
			out, err1 := chat.ParseRanges(r.Out)
			back, err2 := chat.ParseRanges(r.Back)
			if err1 != nil || err2 != nil {
				return nil, 0, false
			}
			live = live.Minus(back).Union(out)
		}
	}
	if until < 0 {
		return nil, 0, false
	}
	return live.Intersect(chat.Ranges{{Lo: 1, Hi: until + 1}}), until, true
}
