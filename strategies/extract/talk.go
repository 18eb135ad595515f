package extract

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// turn is a request of the user with the texts and calls that followed.
type turn struct {
	request string
	at      time.Time
	message int
	// before is the last text of the assistant before the request, beforeAt its turn's time.
	before   string
	beforeAt time.Time
	texts    []passage
	// last is the message of the newest call, 0 for none.
	last    int
	edited  []string
	commits []commit
	// interrupted reports that the user stopped the work on it.
	interrupted bool
}

// passage is a text of the assistant.
type passage struct {
	text    string
	message int
	// calls is the number of calls before it.
	calls int
}

const (
	maxTurns    = 750
	maxRequest  = 12_000 // characters that are kept of a request, half of them its end
	maxPassage  = 6000   // characters that are kept of a text of the assistant
	maxPassages = 40     // of a turn
	maxTalk     = 256 << 10
)

// talk holds the requests of the user and the texts of the assistant. Its memory is bounded: the texts of the oldest turns
// go first, then the oldest turns.
type talk struct {
	turns []*turn
	bytes int
	// stale is the number of turns that lost all but their last text.
	stale int
}

// ask adds a request. One that equals the request before it, to which nothing was said, is the same.
func (t *talk) ask(said string, at time.Time, message int) {
	before, beforeAt := "", at
	if cur := t.current(); cur != nil {
		beforeAt = cur.at
		if before = cur.lastText(); before == "" && len(cur.texts) == 0 {
			before = cur.before
		}
		if cur.request == said && cur.isUntouched() {
			return
		}
	}
	x := &turn{request: ends(said, maxRequest), at: at, message: message, before: before, beforeAt: beforeAt}
	t.bytes += len(x.request)
	t.turns = append(t.turns, x)
	if len(t.turns) > maxTurns {
		t.turns, t.stale = slices.Delete(t.turns, 1, maxTurns/4), max(0, t.stale-maxTurns/4)
	}
}

// answer adds a text of the assistant after a number of calls.
func (t *talk) answer(said string, message, calls int) {
	if strings.TrimSpace(said) == "" {
		return
	}
	cur := t.current()
	if cur == nil {
		cur = &turn{message: message}
		t.turns = append(t.turns, cur)
	}
	p := passage{ends(said, maxPassage), message, calls}
	if len(cur.texts) >= maxPassages {
		cur.texts = slices.Delete(cur.texts, 1, 2)
	}
	cur.texts = append(cur.texts, p)
	for t.bytes += len(p.text); t.bytes > maxTalk && t.stale < len(t.turns)-1; t.stale++ {
		if old := t.turns[t.stale]; len(old.texts) > 1 {
			old.texts = slices.Clone(old.texts[len(old.texts)-1:])
		}
		t.bytes = t.size()
	}
}

func (t *talk) size() (n int) {
	for _, x := range t.turns {
		n += len(x.request)
		for _, p := range x.texts {
			n += len(p.text)
		}
	}
	return n
}

// isUntouched reports that nothing was said or called since the request.
func (x *turn) isUntouched() bool { return x.last == 0 && len(x.texts) == 0 }

// current returns the newest turn, nil for none.
func (t *talk) current() *turn {
	if len(t.turns) == 0 {
		return nil
	}
	return t.turns[len(t.turns)-1]
}

// lastText returns the last text of the assistant in a turn, "" for none.
func (x *turn) lastText() string {
	if len(x.texts) == 0 {
		return ""
	}
	return x.texts[len(x.texts)-1].text
}

// demand returns the request in at most n characters: half of it for the beginning, then the sentences with words of demands, and
// the end if there is room left.
func (x *turn) demand(n int) string {
	all := prose.OneLine(x.request)
	if utf8.RuneCountInString(all) <= n {
		return all
	}
	parts := []string{prose.TruncateHead(all, n/2)}
	left := n - utf8.RuneCountInString(parts[0])
	rest := all[len(parts[0]):]
	for _, s := range prose.Sentences(rest) {
		if need := utf8.RuneCountInString(s) + utf8.RuneCountInString(gapMark); binds(s) && need <= left {
			parts, left = append(parts, s), left-need
			_, rest, _ = strings.Cut(rest, s)
		}
	}
	if left > minPiece && rest != "" {
		parts = append(parts, tailWords(rest, left-utf8.RuneCountInString(gapMark)))
	}
	return strings.Join(parts, gapMark)
}

// gapMark stands between parts of a text.
const gapMark = " … "

// ends returns a copy of the first and the last characters of a text that is longer than n, with a line for the text between
// them.
func ends(s string, n int) string {
	if text.Longer(s, n) {
		return text.Head(s, n/2) + "\n" + gapLine + "\n" + text.Tail(s, n/2)
	}
	return strings.Clone(s)
}
