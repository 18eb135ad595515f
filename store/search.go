package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// MessageRow is a stored message in lists.
type MessageRow struct {
	Seq       chat.Seq    `json:"seq"`
	ID        string      `json:"id"`
	Kind      chat.Kind   `json:"kind"`
	Role      chat.Role   `json:"role"`
	Tokens    chat.Tokens `json:"tokens"`
	CreatedAt time.Time   `json:"created_at,omitzero"`
	// Included reports whether the message is in the view; the next fields say why it is not.
	Included      bool            `json:"included"`
	Pinned        bool            `json:"pinned,omitempty"`
	ExcludeReason string          `json:"exclude_reason,omitempty"`
	Purged        bool            `json:"purged,omitempty"`
	ExcludedBy    RunID           `json:"excluded_by,omitempty"`
	SummarizedBy  string          `json:"summarized_by,omitempty"`
	SummaryOf     string          `json:"summary_of,omitempty"`
	ReasoningBy   RunID           `json:"reasoning_excluded_by,omitempty"`
	Message       json.RawMessage `json:"message"`
}

// Row returns the message as it is listed.
func (m *Stored) Row() MessageRow {
	r := MessageRow{
		Seq: m.Seq, ID: m.ID, Kind: m.Kind, Role: m.Role, Tokens: m.Tokens, CreatedAt: m.CreatedAt.UTC(), Included: m.Included,
		Pinned: m.Pinned, ExcludeReason: m.ExcludeReason, ExcludedBy: m.ExcludedBy, SummarizedBy: m.SummarizedBy,
		ReasoningBy: m.ReasoningExcludedBy, Purged: m.Purged, Message: m.Body().AppendJSON(nil),
	}
	if len(m.SummaryOf) > 0 {
		r.SummaryOf = m.SummaryOf.String()
	}
	return r
}

// MessageRows returns messages as they are listed.
func MessageRows(msgs []Stored) []MessageRow {
	out := make([]MessageRow, len(msgs))
	for i := range msgs {
		out[i] = msgs[i].Row()
	}
	return out
}

// SearchFilter selects messages of a session; zero fields select all.
type SearchFilter struct {
	// Text is a part of the text of a message, of its reasoning, or of the name or the arguments of a
	// call, whatever the case. White space in it stands for any.
	Text string
	Role chat.Role
	// Tool is the name of a tool: its calls and their results.
	Tool  string
	Kinds []chat.Kind
	// After and Before are the seqs between which the messages lie; 0 is no bound.
	After, Before chat.Seq
	// Newest has the newest message come first.
	Newest bool
	Limit  int
}

// Found is a message that a search has found.
type Found struct {
	Stored
	// Snippet is the text around the match, "" without SearchFilter.Text.
	Snippet string
}

const (
	// searchRows and searchTokens bound the messages that a search holds at a time, and searchBatches
	// how often it reads so many.
	searchRows, searchTokens, searchBatches = 500, 250_000, 8
	// callBefore is the number of messages before a result among which its call is looked for.
	callBefore = 64
	// snippetRunes is the length of a snippet on each side of the match.
	snippetRunes = 100
)

// Search returns messages of a session, in the order of their seqs, archived ones too, and
// the bound for the next call, After or with Newest Before: 0 if there is nothing beyond. The work of a call is
// bounded, so that it may find nothing and there is more. ErrNotFound names the session.
func (s Reader) Search(ctx context.Context, k Key, f SearchFilter) (found []Found, next chat.Seq, err error) {
	const query = `SELECT seqs::text, coalesce(upto, 0), more
		FROM compactor.messages_page($1, $2, $3, $4, $5, nullif($6, ''), $7, $8, $9)`
	after, before := f.After, cmp.Or(f.Before, chat.Open)
	text := newMatcher(f.Text)
	for range searchBatches {
		rows := searchRows
		if f.Text == "" && f.Tool == "" || f.Limit <= 0 {
			rows = max(0, min(rows, f.Limit-len(found)))
		}
		var seqs chat.Ranges
		var upto chat.Seq
		var more bool
		err := s.pool.QueryRow(ctx, s.q(query), k.tenant(), k.Session, after, before, f.Newest, f.Role, f.Kinds, rows, searchTokens).
			Scan(rangesText{&seqs}, &upto, &more)
		if err != nil {
			return nil, 0, wrap(fmt.Sprintf("search session %s", k), err)
		}
		if f.Limit <= 0 { // the session exists
			return nil, 0, nil
		}
		hits, err := match(ctx, s.Store, k, seqs, text, f)
		if err != nil {
			return nil, 0, err
		}
		for i := range hits {
			if found = append(found, hits[i]); len(found) == f.Limit {
				if more || i < len(hits)-1 {
					next = hits[i].Seq
				}
				return found, next, nil
			}
		}
		if !more {
			return found, 0, nil
		}
		if next = upto; f.Newest {
			before = upto
		} else {
			after = upto
		}
	}
	return found, next, nil
}

// match returns those of the messages that a filter selects.
func match(ctx context.Context, s *Store, k Key, seqs chat.Ranges, text matcher, f SearchFilter) ([]Found, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	msgs, err := s.Among(ctx, k, seqs)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(msgs, func(a, b Stored) int { return cmp.Compare(a.Seq, b.Seq) })
	if f.Newest {
		slices.Reverse(msgs)
	}
	var found []Found
	for i := range msgs {
		if snippet, ok := text.find(&msgs[i]); ok {
			found = append(found, Found{msgs[i], snippet})
		}
	}
	if f.Tool == "" {
		return found, nil
	}
	tools, err := toolsOf(ctx, s, k, found)
	return slices.DeleteFunc(found, func(m Found) bool {
		return m.Name != f.Tool && tools[m.Seq] != f.Tool && !slices.ContainsFunc(m.ToolCalls, func(c chat.ToolCall) bool { return c.Name == f.Tool })
	}), err
}

// toolsOf returns the names of the tools that the results among messages are of, by the seqs of the results.
// Of the messages with the calls, it holds searchTokens or one message at a time.
func toolsOf(ctx context.Context, s *Store, k Key, found []Found) (map[chat.Seq]string, error) {
	const query = `SELECT result, call, token_count FROM compactor.calls_of($1, $2, $3, $4)`
	ids := map[chat.Seq]string{}
	var results []chat.Range
	for _, m := range found {
		if m.ToolCallID != "" && m.Name == "" {
			ids[m.Seq] = m.ToolCallID
			results = append(results, chat.Range{Lo: m.Seq, Hi: m.Seq + 1})
		}
	}
	if len(results) == 0 {
		return nil, nil
	}
	type pair struct {
		Result, Call chat.Seq
		Tokens       chat.Tokens
	}
	pairs, err := queryRows(ctx, s, fmt.Sprintf("calls of session %s", k), pgx.RowToStructByPos[pair], query,
		k.tenant(), k.Session, chat.Merged(results).String(), callBefore)
	tools := map[chat.Seq]string{}
	for err == nil && len(pairs) > 0 {
		n, held := 1, pairs[0].Tokens
		calls := []chat.Range{{Lo: pairs[0].Call, Hi: pairs[0].Call + 1}}
		for ; n < len(pairs) && held+pairs[n].Tokens <= searchTokens; n++ {
			held += pairs[n].Tokens
			calls = append(calls, chat.Range{Lo: pairs[n].Call, Hi: pairs[n].Call + 1})
		}
		var msgs []Stored
		msgs, err = s.Among(ctx, k, chat.Merged(calls))
		named := map[chat.Seq]map[string]string{}
		for _, m := range msgs {
			named[m.Seq] = map[string]string{}
			for _, c := range m.ToolCalls {
				named[m.Seq][c.ID] = c.Name
			}
		}
		for _, p := range pairs[:n] {
			tools[p.Result] = named[p.Call][ids[p.Result]]
		}
		pairs = pairs[n:]
	}
	return tools, err
}

// matcher finds a text in messages.
type matcher struct {
	words []string // in lower case
	whole *regexp.Regexp
}

func newMatcher(text string) matcher {
	words := strings.Fields(text)
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i], words[i] = regexp.QuoteMeta(w), strings.ToLower(w)
	}
	return matcher{words, regexp.MustCompile(`(?i)` + strings.Join(quoted, `\s+`))}
}

// find reports whether a message has the text, with what is around it.
func (x matcher) find(m *Stored) (snippet string, ok bool) {
	if len(x.words) == 0 {
		return "", true
	}
	parts := []string{m.Content.String(), m.Reasoning}
	for _, c := range m.ToolCalls {
		parts = append(parts, c.Name+"("+c.Arguments+")")
	}
	for _, text := range parts {
		lower := strings.ToLower(text) // much faster than the expression
		if slices.ContainsFunc(x.words, func(w string) bool { return !strings.Contains(lower, w) }) {
			continue
		}
		if at := x.whole.FindStringIndex(text); at != nil {
			return around(text, at[0], at[1]), true
		}
	}
	return "", false
}

// around returns a part of a text with what is around it, on one line.
func around(text string, from, to int) string {
	lo, hi := from, to
	for i := 0; i < snippetRunes && lo > 0; i++ {
		_, size := utf8.DecodeLastRuneInString(text[:lo])
		lo -= size
	}
	for i := 0; i < snippetRunes && hi < len(text); i++ {
		_, size := utf8.DecodeRuneInString(text[hi:])
		hi += size
	}
	out := strings.Join(strings.Fields(text[lo:hi]), " ")
	if lo > 0 {
		out = "…" + out
	}
	if hi < len(text) {
		out += "…"
	}
	return out
}

// Message returns a message by its seq. ErrNotFound names it.
func (s Reader) Message(ctx context.Context, k Key, seq chat.Seq) (Stored, error) {
	msgs, err := s.Among(ctx, k, chat.Ranges{{Lo: seq, Hi: seq + 1}})
	if err == nil && len(msgs) == 0 {
		err = fmt.Errorf("session %s has no message %d: %w", k, seq, ErrNotFound)
	}
	if err != nil {
		return Stored{}, err
	}
	return msgs[0], nil
}

// Covering returns the summaries and replacements of runs in force that are in the place of a message,
// and those that are in the place of these.
func (s Reader) Covering(ctx context.Context, k Key, seq chat.Seq) ([]Stored, error) {
	const query = `
		WITH RECURSIVE s AS (SELECT sid FROM compactor.sessions WHERE tenant = $1 AND id = $2),
		up AS (SELECT $3::bigint AS seq UNION
			SELECT e.summary_seq FROM up CROSS JOIN s JOIN compactor.exclusions e ON e.sid = s.sid AND e.seqs @> up.seq
			JOIN compactor.runs r ON r.id = e.run AND r.in_force WHERE e.summary_seq IS NOT NULL)
		SELECT seq FROM up WHERE seq <> $3`
	seqs, err := queryRows(ctx, s.Store, fmt.Sprintf("session %s", k), pgx.RowTo[chat.Seq], query, k.tenant(), k.Session, seq)
	if err != nil || len(seqs) == 0 {
		return nil, err
	}
	return s.Among(ctx, k, chat.RangesOf(seqs...))
}
