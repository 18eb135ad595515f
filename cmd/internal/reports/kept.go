package reports

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/summary"
)

// Kept is the part of the messages that left a view that can still be read in it.
type Kept struct {
	// Messages is how many of them were looked at, the newest, Of how many there are.
	Messages int64 `json:"messages"`
	Of       int64 `json:"of"`
	// Identifiers are paths, ids, hashes and names of code; one is kept if it stands somewhere in the view.
	Identifiers KeptPart `json:"identifiers"`
	// Requests are the messages of the user, Demands sentences of these such as "never push to main"; one is kept if a
	// line that the run wrote has most of its words.
	Requests KeptPart `json:"requests"`
	Demands  KeptPart `json:"demands"`
}

// KeptPart counts those of one kind that are kept.
type KeptPart struct {
	Kept int `json:"kept"`
	Of   int `json:"of"`
	// Lost are those that are not, the newest first, up to a number.
	Lost []LostText `json:"lost"`
}

// LostText is a text that stands in no message of the view, and the message that it is from.
type LostText struct {
	Seq  chat.Seq `json:"seq"`
	Text string   `json:"text"`
}

// Of each change so many messages that left and that stayed are looked at, so many lines that it wrote are compared with so
// many demands, and so many lost texts are named.
const (
	mostGone    = 500
	mostStayed  = 2000
	mostLines   = 2000
	mostDemands = 2000
	mostLost    = 30
	lostWidth   = 240
)

// LoadKept returns the part that a change of the view of a session kept of the messages that it took out; nil if their words are
// archived.
func LoadKept(ctx context.Context, st *store.Store, k store.Key, d store.RunDiff) (*Kept, error) {
	gone, err := seqsOf(d.Out)
	if err != nil {
		return nil, err
	}
	stayed, err := seqsOf(append(slices.Clone(d.In), d.Stays))
	if err != nil {
		return nil, err
	}
	left, err := st.Among(ctx, k, newest(gone, mostGone))
	if err != nil {
		return nil, unlessArchived(err)
	}
	stays, err := st.Among(ctx, k, newest(stayed, mostStayed))
	if err != nil {
		return nil, unlessArchived(err)
	}
	out := &Kept{Messages: int64(len(left)), Of: gone.Len()}
	out.Identifiers.Lost, out.Requests.Lost, out.Demands.Lost = []LostText{}, []LostText{}, []LostText{}
	seen := map[string]bool{}
	for i := range stays {
		for w := range summary.Identifiers(textOf(&stays[i].Message)) {
			seen[w] = true
		}
	}
	var lines []map[string]bool
	for _, w := range d.Wrote {
		var m chat.Message
		if json.Unmarshal(w.Message, &m) != nil {
			continue // as the archive does not have it
		}
		for line := range strings.Lines(textOf(&m)) {
			for w := range summary.Identifiers(line) {
				seen[w] = true
			}
			if len(lines) < mostLines {
				lines = append(lines, wordsOf(line))
			}
		}
	}
	known := map[string]bool{}
	for _, m := range slices.Backward(left) {
		text := textOf(&m.Message)
		for w := range summary.Identifiers(text) {
			if !known[w] {
				known[w] = true
				out.Identifiers.add(m.Seq, w, seen[w])
			}
		}
		if m.Role != chat.RoleUser || m.Kind != chat.KindSource {
			continue
		}
		said := m.Content.String()
		out.Requests.add(m.Seq, said, nearly(lines, said))
		for _, s := range extract.Demands(said) {
			if out.Demands.Of < mostDemands {
				out.Demands.add(m.Seq, s, nearly(lines, s))
			}
		}
	}
	return out, nil
}

// add counts a text.
func (p *KeptPart) add(seq chat.Seq, text string, kept bool) {
	p.Of++
	switch {
	case kept:
		p.Kept++
	case len(p.Lost) < mostLost:
		p.Lost = append(p.Lost, LostText{seq, term.Truncate(strings.ToValidUTF8(text[:min(len(text), 4*lostWidth)], ""), lostWidth)})
	}
}

func unlessArchived(err error) error {
	if errors.Is(err, store.ErrArchived) || errors.Is(err, store.ErrPurged) {
		return nil
	}
	return err
}

func seqsOf(parts []store.DiffPart) (all chat.Ranges, err error) {
	for _, p := range parts {
		r, err := chat.ParseRanges(cmp.Or(p.Seqs, "{}"))
		if err != nil {
			return nil, err
		}
		all = all.Union(r)
	}
	return all, nil
}

// newest returns the last n seqs of ranges.
func newest(r chat.Ranges, n int) chat.Ranges {
	if r.Len() <= int64(n) {
		return r
	}
	seqs := r.Seqs()
	return chat.RangesOf(seqs[len(seqs)-n:]...)
}

// textOf returns the text of a message, and the arguments of its calls.
func textOf(m *chat.Message) string {
	var b strings.Builder
	b.WriteString(m.Content.String())
	for _, c := range m.ToolCalls {
		b.WriteString("\n" + c.Arguments)
	}
	return b.String()
}

// wordsOf returns the words of three characters or more of a text.
func wordsOf(s string) map[string]bool {
	words := map[string]bool{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if utf8.RuneCountInString(w) >= 3 {
			words[w] = true
		}
	}
	return words
}

// nearly reports whether a line has four of five of the words at the beginning of a text.
func nearly(lines []map[string]bool, text string) bool {
	words := wordsOf(term.Truncate(text, lostWidth))
	if len(words) == 0 {
		return true
	}
	for _, line := range lines {
		n := 0
		for w := range words {
			if line[w] {
				n++
			}
		}
		if 5*n >= 4*len(words) {
			return true
		}
	}
	return false
}
