package store

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// originalsPage is the number of bytes of messages that Originals holds at a time, unless a
// message is larger.
const originalsPage = 1 << 20

// Originals reads the original messages that messages of a session up to a seq replace, as
// plan.Originals specifies: the latest run in force that excluded a message explains why it is
// out of the view. dropped is the reason of messages that exceeded the token budget; they stay
// out where the application has since replaced the view. Originals holds no connection while
// the caller has a message.
func (s Worker) Originals(
	ctx context.Context, sid int64, upTo chat.Seq, of []chat.Seq, dropped string, most int64,
) (messages iter.Seq2[chat.Original, error], older []*chat.Message, err error) {
	covers, err := s.covers(ctx, sid, dropped)
	if err != nil {
		return nil, nil, wrap("find originals", err)
	}
	reached := covers.closure(chat.RangesOf(of...).Union(covers.of[0]).Intersect(chat.Ranges{{Lo: 1, Hi: upTo + 1}}))
	log, err := s.logged(ctx, sid, reached)
	if err != nil {
		return nil, nil, wrap("find originals", err)
	}
	log, summaries := covers.newest(log, most)
	first, err := s.Messages(ctx, sid, summaries)
	if err != nil {
		return nil, nil, err
	}
	for _, q := range summaries {
		older = append(older, first[q])
	}
	return func(yield func(chat.Original, error) bool) {
		for rest := log; len(rest) > 0; {
			page := pageOf(rest)
			rest = rest[len(page):]
			loaded, err := s.Messages(ctx, sid, page)
			if err != nil {
				yield(chat.Original{}, err)
				return
			}
			for _, q := range page {
				if !yield(chat.Original{Message: loaded[q], Seq: q}, nil) {
					return
				}
			}
		}
	}, older, nil
}

// covers holds, for each summary or replacement, the messages out of the view of which it is
// the latest replacement. Messages last excluded for exceeding the token budget have the key 0.
type covers struct {
	of    map[chat.Seq]chat.Ranges
	keys  []chat.Seq // of of, sorted
	cells []cell     // all ranges in of, sorted and disjoint
}

// cell is a range of messages that a summary or replacement covers.
type cell struct {
	chat.Range
	by chat.Seq
}

// covers reads the covers of a session.
func (s Worker) covers(ctx context.Context, sid int64, dropped string) (covers, error) {
	const query = `
		SELECT seqs, by FROM (
			SELECT live::text AS seqs, NULL::bigint AS by, NULL::bigint AS revision FROM compactor.sessions WHERE sid = $1
			UNION ALL
			SELECT e.seqs::text,
				CASE WHEN e.summary_seq IS NULL AND e.reason = $2 AND r.revision > p.revision THEN 0 ELSE e.summary_seq END, r.revision
			FROM (SELECT coalesce(max(o.revision), 0) AS revision FROM compactor.runs o
					WHERE o.sid = $1 AND o.in_force AND o.kind = 'replace') p,
				compactor.exclusions e JOIN compactor.runs r ON r.id = e.run
			WHERE e.sid = $1 AND r.in_force) x
		ORDER BY revision DESC NULLS FIRST`
	rows, _ := s.pool.Query(ctx, s.q(query), sid, dropped) // rows hold the error
	var cells []cell                                       // the view itself, then the latest first
	var seqs chat.Ranges
	var by *chat.Seq
	_, err := pgx.ForEachRow(rows, []any{rangesText{&seqs}, &by}, func() error {
		for _, x := range seqs {
			c := cell{x, noCover}
			if by != nil {
				c.by = *by
			}
			cells = append(cells, c)
		}
		return nil
	})
	return newCovers(cells), err
}

// noCover marks a cell of messages that are in the view, or out of it without a replacement.
const noCover chat.Seq = -1

// newCovers returns the covers of cells that overlap; the first that has a message counts. Its
// time grows with the number of cells, however they overlap.
func newCovers(cells []cell) covers {
	bounds := make([]chat.Seq, 0, 2*len(cells))
	for _, x := range cells {
		bounds = append(bounds, x.Lo, x.Hi)
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	// Between two bounds, all messages have the same cover. next links each place to a later one
	// on the way to the first that has no cover yet.
	by, next := make([]chat.Seq, len(bounds)), make([]int, len(bounds))
	for i := range next {
		next[i] = i
	}
	free := func(i int) int {
		for ; next[i] != i; i = next[i] {
			next[i] = next[next[i]]
		}
		return i
	}
	for _, x := range cells {
		i, _ := slices.BinarySearch(bounds, x.Lo)
		for i = free(i); bounds[i] < x.Hi; i = free(i) {
			by[i], next[i] = x.by, i+1
		}
	}
	c := covers{of: map[chat.Seq]chat.Ranges{}}
	for i, lo := range bounds {
		if next[i] == i || by[i] == noCover {
			continue
		}
		x := chat.Range{Lo: lo, Hi: bounds[i+1]}
		c.cells = append(c.cells, cell{x, by[i]})
		c.of[by[i]] = append(c.of[by[i]], x)
	}
	for by, ranges := range c.of {
		c.of[by] = chat.Merged(ranges)
	}
	c.keys = slices.Sorted(maps.Keys(c.of))
	return c
}

// closure returns a set with what its members cover, directly or through others.
func (c covers) closure(of chat.Ranges) chat.Ranges {
	all := slices.Clone(of)
	seen := map[chat.Seq]bool{}
	for i := 0; i < len(all); i++ { // including ranges that the loop appends
		k, _ := slices.BinarySearch(c.keys, all[i].Lo)
		for ; k < len(c.keys) && c.keys[k] < all[i].Hi; k++ {
			if by := c.keys[k]; !seen[by] {
				seen[by] = true
				all = append(all, c.of[by]...)
			}
		}
	}
	return chat.Merged(all)
}

// by returns the summary or replacement that was the latest to replace a message, 0 for none.
func (c covers) by(q chat.Seq) chat.Seq {
	i, _ := slices.BinarySearchFunc(c.cells, q, func(x cell, q chat.Seq) int { return cmp.Compare(x.Hi, q+1) })
	if i < len(c.cells) && c.cells[i].Lo <= q {
		return c.cells[i].by
	}
	return 0
}

// newest returns the newest source messages of a log, which is in order, up to most bytes, and
// the summaries of the other ones, with those that cover no known message. Where the content of
// a message was purged and no summary covers it, newest returns its replacement.
func (c covers) newest(log []logged, most int64) (out []logged, summaries []chat.Seq) {
	kinds := map[chat.Seq]byte{}
	for _, m := range log {
		if m.kind != 'm' {
			kinds[m.seq] = m.kind
		}
		if m.size == purgedSize {
			kinds[m.seq] = 'p' // nor does it replace anything
		}
	}
	// above returns the summary that covers a message or its replacement, 0 without one, and the
	// topmost replacement below it.
	above := func(q chat.Seq) (summary, replacement chat.Seq) {
		for summary = c.by(q); kinds[summary] == 'i' || kinds[summary] == 'p'; summary = c.by(summary) {
			if kinds[summary] == 'i' {
				replacement = summary
			}
		}
		return summary, replacement
	}
	var left chat.Ranges // covered by the summaries
	use := func(summary chat.Seq) {
		summaries, left = append(summaries, summary), left.Union(c.closure(chat.RangesOf(summary)))
	}
	purged := false // a newer message was purged, and a summary covers it
	fits := func(m logged) bool {
		if purged { // that summary replaces older messages too, except those in the view
			summary, _ := above(m.seq)
			return m.size <= most && summary == 0
		}
		return m.size <= most
	}
	took := map[chat.Seq]bool{}
	for _, m := range slices.Backward(log) {
		switch {
		case left.Has(m.seq), m.kind == 'i', m.kind == 's' && (len(c.of[m.seq]) > 0 || m.size == purgedSize):
		case m.kind == 's':
			use(m.seq)
		case m.size < purgedSize && fits(m):
			most -= m.size
			took[m.seq] = true
		case !c.of[0].Has(m.seq): // its topmost summary replaces all messages before it
			summary, replacement := above(m.seq)
			switch gone := m.size == purgedSize; {
			case summary > 0:
				use(summary)
				purged = purged || gone
			case gone && replacement > 0:
				left = left.Union(c.closure(chat.RangesOf(replacement)).Minus(chat.RangesOf(replacement)))
				took[replacement] = true
			}
			if m.size > most && m.size < purgedSize {
				most = 0
			}
		}
	}
	slices.Sort(summaries)
	for _, m := range log {
		if took[m.seq] && !left.Has(m.seq) {
			out = append(out, m)
		}
	}
	return out, summaries
}

// purgedSize is the size of messages whose content was purged: the messages that cover them
// replace them.
const purgedSize = math.MaxInt64

// logged is a message of the log.
type logged struct {
	seq  chat.Seq
	size int64 // bytes
	kind byte
}

// logged returns the messages of a set, in log order.
func (s Worker) logged(ctx context.Context, sid int64, set chat.Ranges) ([]logged, error) {
	const query = `
		SELECT m.seq, CASE WHEN b.body IS NOT NULL THEN octet_length(b.body)
			WHEN EXISTS (SELECT FROM compactor.archive_segments a WHERE a.sid = $1 AND a.data IS NULL AND a.seqs @> m.seq) THEN $3
			ELSE m.token_count::bigint * 4 END, m.kind
		FROM unnest($2::int8multirange) x
		CROSS JOIN LATERAL (SELECT l.seq, l.position, l.kind, l.token_count FROM compactor.message_log l
			WHERE l.sid = $1 AND l.seq >= lower(x) AND l.seq < upper(x) OFFSET 0) m
		LEFT JOIN compactor.message_body b ON b.sid = $1 AND b.seq = m.seq
		ORDER BY m.position, m.seq`
	rows, _ := s.pool.Query(ctx, s.q(query), sid, set.String(), int64(purgedSize)) // rows hold the error
	var out []logged
	var m logged
	_, err := pgx.ForEachRow(rows, []any{&m.seq, &m.size, &m.kind}, func() error {
		out = append(out, m)
		return nil
	})
	return out, err
}

// pageOf returns the first messages of a list up to the size of a page, at least one.
func pageOf(list []logged) (page []chat.Seq) {
	size := int64(0)
	for _, m := range list {
		if size += m.size; size > originalsPage && len(page) > 0 {
			break
		}
		page = append(page, m.seq)
	}
	return page
}
