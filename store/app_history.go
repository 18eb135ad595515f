package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// History adapts one session to an agent.Provider: the application compacts in its
// own process, and the store records each compaction as a run that can be explained and
// undone like a worker's. Safe for concurrent use: of concurrent compactions of a session
// one succeeds, the others return ErrStale. The login needs the rights of the role worker.
type History struct {
	// Count returns the tokens of a message to append and the name of the counter. If
	// nil, the store estimates.
	Count func(*chat.Message) (tokens chat.Tokens, counter string)

	store *Store
	key   Key
	model string
	by    string
}

// History returns the history of a session, which the first Append creates. by is
// recorded as the requester of its runs.
func (s *Store) History(k Key, model, by string) *History {
	return &History{store: s, key: k, model: model, by: by}
}

// Load returns the session's view, or its whole log. A session that does not exist has
// no records.
func (h *History) Load(ctx context.Context, whole bool) (chat.Log, error) {
	var log chat.Log
	var sid int64
	var in, pins, out chat.Ranges
	const query = `
		SELECT sid, live::text, pinned::text, reasoning_out::text, revision, last_seq
		FROM compactor.sessions WHERE tenant = $1 AND id = $2`
	err := h.store.pool.QueryRow(ctx, h.store.q(query), h.key.tenant(), h.key.Session).
		Scan(&sid, rangesText{&in}, rangesText{&pins}, rangesText{&out}, &log.Revision, &log.Last)
	if errors.Is(err, pgx.ErrNoRows) {
		return log, nil
	}
	if err != nil {
		return log, fmt.Errorf("load session %s: %w", h.key, mapError(err))
	}
	metas, err := h.metas(ctx, sid, in, out, whole, log.Last)
	if err != nil || len(metas) == 0 {
		return log, err
	}
	seqs := make([]chat.Seq, len(metas))
	for i, m := range metas {
		seqs[i] = m.Seq
	}
	messages, err := h.store.Worker.Messages(ctx, sid, seqs)
	if err != nil {
		return log, err
	}
	log.Records = make([]chat.Record, len(metas))
	for i, m := range metas {
		log.Records[i] = chat.Record{Meta: m, Message: *messages[m.Seq], Included: in.Has(m.Seq), Pinned: pins.Has(m.Seq)}
	}
	return log, nil
}

// metas reads the metadata by the ranges that Load has read, so that both are of one
// moment: rows of the log never change.
func (h *History) metas(ctx context.Context, sid int64, live, out chat.Ranges, whole bool, last chat.Seq) ([]chat.Meta, error) {
	const query = selectMetas + `
		FROM (SELECT $1::bigint AS sid) s CROSS JOIN LATERAL unnest($2::int8multirange) x ` + joinRange
	if whole {
		live = chat.Ranges{{Lo: 1, Hi: last + 1}}
	}
	return h.store.metas(ctx, "load view", sid, &out, last, query, sid, live.String())
}

// Append appends messages and then applies the plan as a run. It returns ErrStale if the
// session was written or compacted, or an excluded message pinned, since the Load that
// the plan is based on, and ErrBusy if a worker holds the session. The messages stay
// appended in both cases.
func (h *History) Append(ctx context.Context, w chat.Write) error {
	if len(w.Messages) > 0 {
		msgs := make([]NewMessage, len(w.Messages))
		for i, m := range w.Messages {
			msgs[i].Message = m
			if h.Count != nil {
				msgs[i].Tokens, msgs[i].Counter = h.Count(&m)
			}
		}
		seqs, _, err := h.store.Append(ctx, h.key, h.model, msgs)
		if err != nil {
			return err
		}
		for i, q := range seqs {
			if !w.Plan.Empty() && q != w.After+chat.Seq(i+1) {
				return h.stale()
			}
		}
	}
	if w.Plan.Empty() {
		return nil
	}
	err := h.apply(ctx, w)
	if err == nil || errors.Is(err, ErrStale) {
		return err
	}
	return fmt.Errorf("apply plan to session %s: %w", h.key, mapError(err))
}

// stale returns the ErrStale of Append.
func (h *History) stale() error {
	return fmt.Errorf("apply plan to session %s: the session has changed: %w", h.key, ErrStale)
}

const (
	// The run becomes visible to others when it has ended.
	queryInlineRun = `
		WITH s AS (SELECT * FROM compactor.sessions WHERE tenant = $1 AND id = $2 FOR NO KEY UPDATE),
		r AS (INSERT INTO compactor.runs (sid, trigger, requested_by, status, fence, started_at)
			SELECT sid, 'application', $3, 'running', 1, now() FROM s RETURNING id)
		SELECT r.id, s.sid, s.last_seq, s.live_messages, s.live_tokens, coalesce(s.due_tokens, $4), s.estimate_margin,
			s.policy_hash, coalesce(s.decision_fingerprint, ''), coalesce(s.due_new_tokens, 0), coalesce(s.due_messages, 0),
			coalesce(s.due_turns, 0), coalesce(s.due_live_messages, 0), s.due_signals
		FROM s, r`
	queryMoved = `
		SELECT count(*), coalesce(sum(m.token_count), 0), coalesce(sum(m.token_count) FILTER (WHERE m.flags & 16 > 0), 0)
		FROM compactor.sessions s CROSS JOIN LATERAL compactor.view_rows(s.sid, $2::int8multirange, s.reasoning_out) m WHERE s.sid = $1`
	queryReasoning = `
		SELECT m.messages, m.tokens FROM compactor.sessions s CROSS JOIN LATERAL compactor.reasoning_in(
			s.sid, (s.live - $2::int8multirange + $3) * ($4::int8multirange - s.reasoning_out)) m
		WHERE s.sid = $1`
)

// apply writes the run and its effects in one transaction.
func (h *History) apply(ctx context.Context, w chat.Write) error {
	s := h.store
	var run RunID
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		c := Change{
			Plan: w.Plan, Revision: w.Revision, Pinned: w.Pinned, SnapshotSeq: w.After + chat.Seq(len(w.Messages)),
			FreeReasoning: w.FreeReasoning, Ledger: Ledger{Kind: "compact", Outcome: "applied", Steps: w.Steps, Worker: h.by},
		}
		var sid int64
		var last chat.Seq
		p := &c.PostRunState
		err := tx.QueryRow(ctx, s.q(queryInlineRun), h.key.tenant(), h.key.Session, h.by, int64(never)).Scan(&run, &sid, &last,
			&c.Ledger.MessagesBefore, &c.Ledger.TokensBefore, &p.DueTokens, &p.EstimateMargin, &p.PolicyHash, &p.DecisionFingerprint,
			&p.NewTokens, &p.NewMessages, &p.NewTurns, &p.Messages, &p.Signals)
		if err != nil {
			return err
		}
		if last != c.SnapshotSeq {
			return h.stale()
		}
		if err := h.setDeltas(ctx, tx, sid, &c); err != nil {
			return err
		}
		e, err := c.endRunArgs()
		if err != nil {
			return err
		}
		e.run, e.fence = run, 1
		var code string
		query, args := s.endRunQuery(e)
		if err := tx.QueryRow(ctx, query, args...).Scan(&code, nil); err != nil {
			return err
		}
		if code != "ended" {
			return h.stale()
		}
		return nil
	})
	if err == nil {
		s.ended.add(run)
	}
	return err
}

// never is the threshold of a session before any policy is saved.
const never = 1 << 40

// setDeltas sets the changes of the live counters and the ledger's totals.
func (h *History) setDeltas(ctx context.Context, tx pgx.Tx, sid int64, c *Change) error {
	for _, a := range c.Plan.Additions {
		c.Ledger.MessagesAfter++
		c.Ledger.TokensAfter += int64(a.Tokens)
	}
	for _, part := range []struct {
		seqs chat.Ranges
		sign int64
	}{{c.Plan.Gone(), -1}, {c.Plan.Include, 1}} {
		var n, tokens, estimated int64
		if err := tx.QueryRow(ctx, h.store.q(queryMoved), sid, part.seqs.String()).Scan(&n, &tokens, &estimated); err != nil {
			return err
		}
		c.DeltaMessages += part.sign * n
		c.DeltaTokens += part.sign * tokens
		c.DeltaEstimated += part.sign * estimated
	}
	c.Ledger.MessagesAfter += c.Ledger.MessagesBefore + c.DeltaMessages
	c.Ledger.TokensAfter += c.Ledger.TokensBefore + c.DeltaTokens
	if len(c.Plan.DropReasoning) == 0 {
		return nil
	}
	var n, tokens int64
	gone, in, out := c.Plan.Gone().String(), c.Plan.Include.String(), c.Plan.DropReasoning.String()
	err := tx.QueryRow(ctx, h.store.q(queryReasoning), sid, gone, in, out).Scan(&n, &tokens)
	c.Ledger.MessagesAfter -= n
	c.Ledger.TokensAfter -= tokens
	return err
}
