package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// roles and kinds hold the values of message_log.role_code and message_log.kind by their
// codes. Append refuses all other roles; their code would be 'o'.
var (
	roles = [256]chat.Role{
		's': chat.RoleSystem, 'u': chat.RoleUser, 'a': chat.RoleAssistant, 't': chat.RoleTool, 'd': chat.RoleDeveloper, 'o': "other",
	}
	kinds = [256]chat.Kind{'m': chat.KindSource, 's': chat.KindSummary, 'i': chat.KindReplacement}
)

func roleCode(r chat.Role) string { return codeOf(roles[:], r, "o") }
func kindCode(k chat.Kind) string { return codeOf(kinds[:], k, "m") }

// codeOf returns the code of a value in a table, or other if it has none.
func codeOf[T ~string](table []T, v T, other string) string {
	if i := slices.Index(table, v); i > 0 {
		return string(rune(i))
	}
	return other
}

// rangesText scans the text of a multirange into ranges.
type rangesText struct{ to *chat.Ranges }

// Scan implements sql.Scanner.
func (r rangesText) Scan(v any) error {
	text, _ := v.(string)
	ranges, err := chat.ParseRanges(text)
	*r.to = ranges
	return err
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// metas returns the rows of a query as collectMetas does, completed by withReasoning. op
// prefixes errors.
func (s *Store) metas(ctx context.Context, op string, sid int64, out *chat.Ranges, last chat.Seq, query string, args ...any) ([]chat.Meta, error) {
	rows, _ := s.pool.Query(ctx, s.q(query), args...) // rows hold the error
	metas, err := collectMetas(rows, 0, last)
	if err == nil {
		metas, err = s.withReasoning(ctx, s.pool, sid, metas, out)
	}
	return metas, wrap(op, err)
}

// withReasoning completes metadata that was read from the index alone: it sets
// ReasoningTokens, and takes the reasoning of the messages in out away; nil stands for those
// of the session now. It reads nothing if no reasoning is signed. It changes metas.
func (s *Store) withReasoning(ctx context.Context, db querier, sid int64, metas []chat.Meta, out *chat.Ranges) ([]chat.Meta, error) {
	var seqs []chat.Seq
	for i := range metas {
		if metas[i].Signed() {
			seqs = append(seqs, metas[i].Seq)
		}
	}
	if len(seqs) == 0 {
		return metas, nil
	}
	const query = `
		SELECT m.seq, coalesce(m.reasoning_tokens, 0), s.reasoning_out @> m.seq
		FROM compactor.sessions s JOIN compactor.message_log m ON m.sid = s.sid
		WHERE s.sid = $1 AND m.seq = ANY($2::bigint[])`
	rows, _ := db.Query(ctx, s.q(query), sid, seqs) // rows hold the error
	type row struct {
		tokens chat.Tokens
		out    bool
	}
	found := make(map[chat.Seq]row, len(seqs))
	var q chat.Seq
	var r row
	_, err := pgx.ForEachRow(rows, []any{&q, &r.tokens, &r.out}, func() error {
		found[q] = r
		return nil
	})
	kept := metas[:0]
	for _, m := range metas {
		in := true
		if m.Signed() {
			r := found[m.Seq]
			m.ReasoningTokens = r.tokens
			if out == nil && r.out || out != nil && out.Has(m.Seq) {
				m, in = m.WithoutReasoning()
			}
		}
		if in {
			kept = append(kept, m)
		}
	}
	return kept, err
}

// collectMetas reads rows of (seq, position, token_count, calls, flags,
// role_code, kind) and returns them in view order, without rows beyond last.
func collectMetas(rows pgx.Rows, capacity int, last chat.Seq) ([]chat.Meta, error) {
	metas := make([]chat.Meta, 0, capacity)
	var r metaRow
	_, err := pgx.ForEachRow(rows, []any{&r.seq, &r.position, &r.tokens, &r.calls, &r.flags, &r.role, &r.kind}, func() error {
		if chat.Seq(r.seq) <= last {
			metas = append(metas, r.meta())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(metas, chat.Compare)
	return metas, nil
}

// metaRow is a row of message_log, as planning reads it.
type metaRow struct {
	seq, position int64
	tokens        int32
	calls, flags  int16
	role, kind    byte
}

// meta returns the metadata of a row.
func (r *metaRow) meta() chat.Meta {
	m := chat.Meta{
		Seq: chat.Seq(r.seq), Position: chat.Seq(r.position), Kind: kinds[r.kind], Role: roles[r.role],
		Flags: chat.Flags(r.flags), Calls: int(r.calls), Tokens: chat.Tokens(r.tokens),
	}
	if r.kind == 'm' && r.position != r.seq {
		// Replace moved it after the message at this position. Planning takes a moved message as
		// a summary, which sorts before the message at its position.
		m.Kind, m.Position = chat.KindSummary, m.Position+1
		m.Flags |= chat.Moved
	}
	return m
}
