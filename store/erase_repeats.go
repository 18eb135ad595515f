package store

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Repeat is a message that was said after words that are erased, in a session that has them.
// Those that came with a replacement of the view are the application's own, such as its
// summaries, and may repeat the words in others; of the rest, Repeats has those that hold them.
type Repeat struct {
	Session string `json:"session"`
	Message string `json:"message"`
	// Replaced reports that it came with a replacement of the view.
	Replaced bool `json:"replaced"`
	// Holds reports that a part of the words stands in it: 40 characters in a row, or all of a
	// shorter text, white space apart.
	Holds bool `json:"holds"`
	// Erased reports that it is erased with them, as it is both.
	Erased bool `json:"erased"`
}

const (
	// repeatLength is the number of characters in a row that are a part of a text.
	repeatLength = 40
	// shortestRepeat is the length of the shortest text that is looked for.
	shortestRepeat = 4
	// maxRepeatParts bounds the parts of texts that are kept, to about 200 MB; of longer ones, every
	// second and so on is, and parts that are as much longer are found.
	maxRepeatParts = 4 << 20
)

// repeats locks the sessions that have the words, and returns what repeats them, and of this what
// is to be erased with them, by sid.
func (s Admin) repeats(ctx context.Context, tx pgx.Tx, k Key, ids []string) (found []Repeat, more map[string]string, err error) {
	type copied struct {
		SID         int64
		Session     string
		Seqs, Later string
	}
	rows, _ := tx.Query(ctx, s.q(`SELECT sid, session, seqs::text, later::text FROM compactor.lock_copies($1, $2, $3)`), k.tenant(), k.Session, ids) // rows hold the error
	copies, err := pgx.CollectRows(rows, pgx.RowToStructByPos[copied])
	if err != nil {
		return nil, nil, err
	}
	found, more = []Repeat{}, map[string]string{}
	words := partSet{}
	read := chat.Ranges{}
	if !slices.ContainsFunc(copies, func(c copied) bool { return c.Later != "{}" }) {
		return found, more, nil
	}
	for _, c := range copies { // each has the same ones under the same seqs, or has lost them
		seqs, err := chat.ParseRanges(c.Seqs)
		if err != nil {
			return nil, nil, err
		}
		var got []chat.Seq
		if err := s.said(ctx, tx, Key{Tenant: k.Tenant, Session: c.Session}, c.SID, seqs.Minus(read).String(), func(m said, text string) {
			if words.add(text) {
				got = append(got, m.Seq)
			}
		}); err != nil {
			return nil, nil, err
		}
		read = read.Union(chat.RangesOf(got...))
	}
	for _, c := range copies {
		var erased []chat.Seq
		err = errors.Join(err, s.said(ctx, tx, Key{Tenant: k.Tenant, Session: c.Session}, c.SID, c.Later, func(m said, text string) {
			r := Repeat{Session: c.Session, Message: m.ID, Replaced: m.Replaced, Holds: words.in(text)}
			if r.Erased = r.Holds && (r.Replaced || m.Derived); r.Erased {
				erased = append(erased, m.Seq)
			}
			if !m.Derived && (r.Holds || r.Replaced) {
				found = append(found, r)
			}
		}))
		if len(erased) > 0 {
			more[strconv.FormatInt(c.SID, 10)] = chat.RangesOf(erased...).String()
		}
	}
	return found, more, err
}

// said is a source message, and whether it came with a replacement of the view; or what a run
// wrote in the place of a message, of which erase does not know whether it holds others' words.
type said struct {
	Seq               chat.Seq
	ID                string
	Replaced, Derived bool
}

// said calls yield with each source message and each replacement of ranges, and its body. Words
// that were purged, and those of a segment that cannot be read, are left out.
func (s Admin) said(ctx context.Context, tx pgx.Tx, k Key, sid int64, ranges string, yield func(m said, body string)) error {
	const query = `
		SELECT m.seq, m.id, m.kind = 'm' AND coalesce(m.replaced, false), m.kind = 'i', coalesce(b.body, '') FROM (
			SELECT seq, id, kind, seq <= max(said_until) OVER w AS replaced FROM (
				SELECT l.seq AS behind, l.seq, l.id, l.kind, NULL::bigint AS said_until FROM compactor.message_log l WHERE l.sid = $1
				UNION ALL SELECT r.applied_seq + 1, NULL, NULL, 'r', r.said_until FROM compactor.runs r
				WHERE r.sid = $1 AND r.kind = 'replace' AND r.status = 'applied') x WINDOW w AS (ORDER BY behind)) m
		LEFT JOIN compactor.message_body b ON b.sid = $1 AND b.seq = m.seq
		WHERE m.kind IN ('m', 'i') AND $2::int8multirange @> m.seq`
	if ranges == "{}" {
		return nil
	}
	rows, err := tx.Query(ctx, s.q(query), sid, ranges)
	if err != nil {
		return err
	}
	var m said
	var text string
	away := map[chat.Seq]said{}
	if _, err := pgx.ForEachRow(rows, []any{&m.Seq, &m.ID, &m.Replaced, &m.Derived, &text}, func() error {
		if text == "" {
			away[m.Seq] = m
		} else {
			yield(m, text)
		}
		return nil
	}); err != nil || len(away) == 0 {
		return err
	}
	seqs, err := chat.ParseRanges(ranges)
	if err != nil {
		return err
	}
	segments, err := s.segments(ctx, tx, k, seqs)
	if err != nil {
		return err
	}
	for i := range segments {
		if segments[i].Data == nil {
			continue
		}
		bodies, err := segments[i].unpack(seqs)
		if err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
		for _, b := range bodies {
			if m, ok := away[b.Seq]; ok {
				yield(m, b.Text)
			}
		}
	}
	return nil
}

// partSet holds parts of texts by their length in characters, as hashes.
type partSet map[int]map[uint64]struct{}

// partBase is the base of the polynomial that hashes a part.
const partBase = 0x9E3779B97F4A7C15

// add adds the parts of a body's texts, and reports whether it is more than what an earlier
// erasure has left.
func (p partSet) add(body string) (says bool) {
	for _, text := range textsOf(body) {
		n := min(len(text), repeatLength)
		if string(text) == "[erased]" {
			continue
		}
		if says = true; n < shortestRepeat {
			continue
		}
		if p[n] == nil {
			p[n] = map[uint64]struct{}{}
		}
		eachPart(text, n, func(at int, hash uint64) bool {
			// Rulers, indentation and the like say nothing.
			if at%(1+len(p[n])/maxRepeatParts) == 0 && (n < repeatLength || letters(text[at:at+n]) >= n/2) {
				p[n][hash] = struct{}{}
			}
			return true
		})
	}
	return says
}

// in reports whether a body has one of the parts: a short one as words of their own.
func (p partSet) in(body string) (found bool) {
	for _, text := range textsOf(body) {
		for n, parts := range p {
			eachPart(text, n, func(at int, hash uint64) bool {
				_, found = parts[hash]
				found = found && (n == repeatLength || letters(text[max(at-1, 0):at])+letters(text[at+n:min(at+n+1, len(text))]) == 0)
				return !found
			})
			if found {
				return true
			}
		}
	}
	return false
}

// eachPart calls yield with the place and the hash of each n characters of a text, until it
// returns false.
func eachPart(text []rune, n int, yield func(at int, hash uint64) bool) {
	var hash uint64
	gone := uint64(1)
	for range n {
		gone *= partBase
	}
	for i, r := range text {
		hash = hash*partBase + uint64(r)
		if i >= n {
			hash -= gone * uint64(text[i-n])
		}
		if i >= n-1 && !yield(i-n+1, hash) {
			return
		}
	}
}

func letters(text []rune) (n int) {
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// textsOf returns the texts of a stored message, each white space in them one blank, without ids
// and what else names no words.
func textsOf(body string) (out [][]rune) {
	var m any
	if json.Unmarshal([]byte(body), &m) != nil {
		return [][]rune{folded(body)}
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, folded(v))
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for key, x := range v {
				switch key {
				case "role", "type", "id", "tool_call_id":
				case "name":
					if _, call := v["arguments"]; !call { // the name of a tool
						walk(x)
					}
				default:
					walk(x)
				}
			}
		}
	}
	walk(m)
	return out
}

func folded(s string) []rune { return []rune(strings.Join(strings.Fields(s), " ")) }
