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

// Repeat is a message after erased ones, in a session that has them, that may repeat their text.
// Messages that came with a replacement of the view are the application's own, such as its
// summaries, and may do so in other words; of other messages, those that hold the text count.
type Repeat struct {
	Session string `json:"session"`
	Message string `json:"message"`
	// Replaced reports that it came with a replacement of the view.
	Replaced bool `json:"replaced"`
	// Holds reports that it holds a part of the text: 40 characters in a row, or all of a
	// shorter text, white space apart.
	Holds bool `json:"holds"`
	// Erased reports that it is erased with them, as it is both Replaced and Holds.
	Erased bool `json:"erased"`
}

const (
	// repeatLength is the number of characters in a row that are a part of a text.
	repeatLength = 40
	// shortestRepeat is the length of the shortest text that is looked for.
	shortestRepeat = 4
	// maxRepeatParts bounds the memory for parts of texts to about 200 MB. Of longer texts only
	// every second part is kept, or every third and so on, so only longer repeats are found.
	maxRepeatParts = 4 << 20
)

// repeats locks the sessions that have the messages, and returns the messages that repeat them,
// and the seqs of those to erase with them, by sid.
func (s Admin) repeats(ctx context.Context, tx pgx.Tx, k Key, ids []string) (found []Repeat, more map[string]string, err error) {
	type copied struct {
		sid         int64
		key         Key
		seqs, later chat.Ranges
	}
	copies, err := collectRows(ctx, s.Store, tx, func(row pgx.CollectableRow) (c copied, err error) {
		c.key.Tenant = k.Tenant
		return c, row.Scan(&c.sid, &c.key.Session, rangesText{&c.seqs}, rangesText{&c.later})
	}, `SELECT sid, session, seqs::text, later::text FROM compactor.lock_copies($1, $2, $3)`, k.tenant(), k.Session, ids)
	if err != nil {
		return nil, nil, err
	}
	found, more = []Repeat{}, map[string]string{}
	parts, read := partSet{}, chat.Ranges{}
	if !slices.ContainsFunc(copies, func(c copied) bool { return len(c.later) > 0 }) {
		return found, more, nil
	}
	for _, c := range copies { // each has the same messages under the same seqs, or some of them
		var got []chat.Seq
		err = s.eachBody(ctx, tx, c.key, c.sid, c.seqs.Minus(read), func(m erasable, text string) {
			if parts.add(text) {
				got = append(got, m.Seq)
			}
		})
		if err != nil {
			return nil, nil, err
		}
		read = read.Union(chat.RangesOf(got...))
	}
	for _, c := range copies {
		var erased []chat.Seq
		err = errors.Join(err, s.eachBody(ctx, tx, c.key, c.sid, c.later, func(m erasable, text string) {
			r := Repeat{Session: c.key.Session, Message: m.ID, Replaced: m.Replaced, Holds: parts.in(text)}
			if r.Erased = r.Holds && (r.Replaced || m.Derived); r.Erased {
				erased = append(erased, m.Seq)
			}
			if !m.Derived && (r.Holds || r.Replaced) {
				found = append(found, r)
			}
		}))
		if len(erased) > 0 {
			more[strconv.FormatInt(c.sid, 10)] = chat.RangesOf(erased...).String()
		}
	}
	return found, more, err
}

// erasable is a message that may repeat an erased one: a source message, Replaced if it came with
// a replacement of the view, or a Derived one, which a run wrote in place of a message.
type erasable struct {
	Seq               chat.Seq
	ID                string
	Replaced, Derived bool
}

// eachBody calls yield with each source message and each replacement in seqs, and its body. It
// leaves out purged messages and those of a segment that cannot be read.
func (s Admin) eachBody(ctx context.Context, tx pgx.Tx, k Key, sid int64, seqs chat.Ranges, yield func(m erasable, body string)) error {
	const query = `
		SELECT m.seq, m.id, m.kind = 'm' AND coalesce(m.replaced, false), m.kind = 'i', coalesce(b.body, '') FROM (
			SELECT seq, id, kind, seq <= max(said_until) OVER w AS replaced FROM (
				SELECT l.seq AS place, l.seq, l.id, l.kind, NULL::bigint AS said_until FROM compactor.message_log l WHERE l.sid = $1
				UNION ALL SELECT r.applied_seq + 1, NULL, NULL, 'r', r.said_until FROM compactor.runs r
				WHERE r.sid = $1 AND r.kind = 'replace' AND r.status = 'applied') x WINDOW w AS (ORDER BY place)) m
		LEFT JOIN compactor.message_body b ON b.sid = $1 AND b.seq = m.seq
		WHERE m.kind IN ('m', 'i') AND $2::int8multirange @> m.seq`
	if len(seqs) == 0 {
		return nil
	}
	rows, _ := tx.Query(ctx, s.q(query), sid, seqs.String()) // rows hold the error
	var m erasable
	var text string
	archived := map[chat.Seq]erasable{}
	_, err := pgx.ForEachRow(rows, []any{&m.Seq, &m.ID, &m.Replaced, &m.Derived, &text}, func() error {
		if text == "" {
			archived[m.Seq] = m
		} else {
			yield(m, text)
		}
		return nil
	})
	if err != nil || len(archived) == 0 {
		return err
	}
	segments, err := loadSegments(ctx, s.Store, tx, k, seqs)
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
			if m, ok := archived[b.Seq]; ok {
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

// add adds the parts of a body's texts, and reports whether it has text that no earlier erasure
// has erased.
func (p partSet) add(body string) (hasText bool) {
	for _, text := range textsOf(body) {
		n := min(len(text), repeatLength)
		if string(text) == "[erased]" {
			continue
		}
		if hasText = true; n < shortestRepeat {
			continue
		}
		if p[n] == nil {
			p[n] = map[uint64]struct{}{}
		}
		eachPart(text, n, func(at int, hash uint64) bool {
			// Rulers, indentation and the like do not count.
			if at%(1+len(p[n])/maxRepeatParts) == 0 && (n < repeatLength || letters(text[at:at+n]) >= n/2) {
				p[n][hash] = struct{}{}
			}
			return true
		})
	}
	return hasText
}

// in reports whether a body has one of the parts, a short one between word boundaries.
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

// letters counts the letters and digits of a text.
func letters(text []rune) (n int) {
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// textsOf returns the texts of a stored message, without ids, roles and types and the names of
// tools. White space in them is folded.
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

// folded replaces each white space of a text by one blank.
func folded(s string) []rune { return []rune(strings.Join(strings.Fields(s), " ")) }
