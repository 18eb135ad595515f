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

// originalsPage is how many bytes of messages Originals holds at a time, or one message.
const originalsPage = 1 << 20

// Originals reads what messages of a session up to a seq stand for, as plan.Originals says:
// what explains that a message is out of the view is the latest run in force that took it out.
// dropped is the reason of what was dropped for lack of room; where the application has since
// replaced the view, it stays out. Originals holds no connection while the caller has a message.
func (s Worker) Originals(ctx context.Context, sid int64, upTo chat.Seq, of []chat.Seq, dropped string, most int64) (messages iter.Seq2[chat.Original, error], older []*chat.Message, err error) {
	covers, err := s.covers(ctx, sid, dropped)
	if err != nil {
		return nil, nil, wrap("find originals", err)
	}
	reached := covers.closure(chat.RangesOf(of...).Union(covers.of[0]).Intersect(chat.Ranges{{Lo: 1, Hi: upTo + 1}}))
	log, err := s.logged(ctx, sid, reached)
	if err != nil {
		return nil, nil, wrap("find originals", err)
	}
	log, stands := covers.newest(log, most)
	first, err := s.Messages(ctx, sid, stands)
	if err != nil {
		return nil, nil, err
	}
	for _, q := range stands {
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

// covers holds by summary or replacement the messages out of the view that it was the latest to
// take the place of. What was last excluded for lack of room has the key 0.
type covers struct {
	of    map[chat.Seq]chat.Ranges
	keys  []chat.Seq // of of, sorted
	cells []cell     // all that is in of, sorted and disjoint
}

// cell is a part of what a summary or replacement covers.
type cell struct {
	chat.Range
	by chat.Seq
}

func (s Worker) covers(ctx context.Context, sid int64, dropped string) (covers, error) {
	const query = `
		SELECT seqs, by FROM (
			SELECT live::text AS seqs, NULL::bigint AS by, NULL::bigint AS revision FROM compactor.sessions WHERE sid = $1
			UNION ALL
			SELECT e.seqs::text, CASE WHEN e.summary_seq IS NULL AND e.reason = $2 AND r.revision > p.revision THEN 0 ELSE e.summary_seq END, r.revision
			FROM (SELECT coalesce(max(o.revision), 0) AS revision FROM compactor.runs o WHERE o.sid = $1 AND o.in_force AND o.kind = 'replace') p,
				compactor.exclusions e JOIN compactor.runs r ON r.id = e.run
			WHERE e.sid = $1 AND r.in_force) x
		ORDER BY revision DESC NULLS FIRST`
	rows, _ := s.pool.Query(ctx, s.q(query), sid, dropped) // rows hold the error
	var said []cell                                        // the latest first, and before all the view itself
	var seqs chat.Ranges
	var by *chat.Seq
	_, err := pgx.ForEachRow(rows, []any{rangesText{&seqs}, &by}, func() error {
		for _, x := range seqs {
			c := cell{x, noCover}
			if by != nil {
				c.by = *by
			}
			said = append(said, c)
		}
		return nil
	})
	return newCovers(said), err
}

// noCover is in a cell that explains why messages are in the view or out of it, without what
// takes their place.
const noCover chat.Seq = -1

// newCovers returns the covers of cells that overlap; the first that has a message counts. The
// time that it takes grows with the number of cells, however they overlap.
func newCovers(said []cell) covers {
	bounds := make([]chat.Seq, 0, 2*len(said))
	for _, x := range said {
		bounds = append(bounds, x.Lo, x.Hi)
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	// Between two bounds, all messages have the same cover. next leads to the first place at or
	// after one that has none yet.
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
	for _, x := range said {
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
	for i := 0; i < len(all); i++ { // what is appended, too
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

// by returns the summary or replacement that was the latest to take the place of a message, 0
// for none.
func (c covers) by(q chat.Seq) chat.Seq {
	i, _ := slices.BinarySearchFunc(c.cells, q, func(x cell, q chat.Seq) int { return cmp.Compare(x.Hi, q+1) })
	if i < len(c.cells) && c.cells[i].Lo <= q {
		return c.cells[i].by
	}
	return 0
}

// newest returns the messages of the application of a log, which is in order: of more than most
// bytes the newest. stands are the summaries that stand for the others, and those that cover
// nothing that is known. Of words that were purged, without a summary of them, a stand-in is in
// their place.
func (c covers) newest(log []logged, most int64) (out []logged, stands []chat.Seq) {
	kinds := map[chat.Seq]byte{}
	for _, m := range log {
		if m.kind != 'm' {
			kinds[m.seq] = m.kind
		}
		if m.size == purgedSize {
			kinds[m.seq] = 'p' // nor does it stand for anything
		}
	}
	// above returns the summary that stands for a message, perhaps of stand-ins, 0 without one, and
	// the topmost stand-in below it.
	above := func(q chat.Seq) (summary, standIn chat.Seq) {
		for summary = c.by(q); kinds[summary] == 'i' || kinds[summary] == 'p'; summary = c.by(summary) {
			if kinds[summary] == 'i' {
				standIn = summary
			}
		}
		return summary, standIn
	}
	var left chat.Ranges // what the summaries stand for
	stand := func(by chat.Seq) {
		stands, left = append(stands, by), left.Union(c.closure(chat.RangesOf(by)))
	}
	purged := false // a newer message, which a summary stands for
	fits := func(m logged) bool {
		if purged { // the summary of it stands for what is older, but for what is in the view
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
			stand(m.seq)
		case m.size < purgedSize && fits(m):
			most -= m.size
			took[m.seq] = true
		case !c.of[0].Has(m.seq): // the oldest summary of it stands for all before it
			summary, standIn := above(m.seq)
			switch gone := m.size == purgedSize; {
			case summary > 0:
				stand(summary)
				purged = purged || gone
			case gone && standIn > 0:
				left = left.Union(c.closure(chat.RangesOf(standIn)).Minus(chat.RangesOf(standIn)))
				took[standIn] = true
			}
			if m.size > most && m.size < purgedSize {
				most = 0
			}
		}
	}
	slices.Sort(stands)
	for _, m := range log {
		if took[m.seq] && !left.Has(m.seq) {
			out = append(out, m)
		}
	}
	return out, stands
}

// purgedSize stands for the size of words that are gone: what covers the message stands for it.
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
				WHEN EXISTS (SELECT FROM compactor.archive_segments a WHERE a.sid = $1 AND a.data IS NULL AND a.seqs @> m.seq) THEN $3 ELSE m.token_count::bigint * 4 END, m.kind FROM unnest($2::int8multirange) x
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
