package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestUndoRestoresTheViewAndKeepsLaterMessages(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1, 0, false, Counts{}})
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 6)...)
	run := apply(t, s, k, summarize(span(1, 4), "start"))
	add(t, s, k, talk("n", 1)...)
	noError(t, s.Pin(t.Context(), k, "n1"))
	undo := must(s.Undo(t.Context(), k, run, false, "ann"))(t)
	equal(t, []chat.Seq{1, 2, 3, 4, 5, 6, 8}, liveSeqs(t, s, k), "view")
	row := must(s.Run(t.Context(), undo))(t)
	if row.Kind != "undo" || row.Undoes != run || row.RequestedBy != "ann" || row.Status != "applied" || !row.InForce || row.Revision != 2 ||
		row.MessagesBefore != 4 || row.MessagesAfter != 7 {
		t.Errorf("ledger row is %+v", row)
	}
	if must(s.Run(t.Context(), run))(t).InForce {
		t.Error("the undone run is in force")
	}
	if got := gens(t, s); session(t, s, k).Due || len(got) > 0 {
		t.Errorf("due %v, outbox %v; want automatic runs to wait for a new message", session(t, s, k).Due, got)
	}
	if !session(t, s, k).Suspect {
		t.Error("an unchecked restored view, but the session is not suspect")
	}
	wantConsistent(t, s)
	for name, id := range map[string]RunID{"an undone run": run, "a run that never was": 1 << 40} {
		_, err := s.Undo(t.Context(), k, id, true, "")
		want := ErrNotApplicable
		if id != run {
			want = ErrNotFound
		}
		if !errors.Is(err, want) || !strings.Contains(fmt.Sprint(err), fmt.Sprint(id)) {
			t.Errorf("undo of %s: %v, want %v naming it", name, err, want)
		}
	}
	add(t, s, k, talk("o", 1)...)
	if !session(t, s, k).Due || len(gens(t, s)) != 1 {
		t.Error("not due after a new message")
	}
	again := must(s.Undo(t.Context(), k, undo, false, ""))(t)
	equal(t, []chat.Seq{7, 5, 6, 8, 9}, liveSeqs(t, s, k), "view after the undo of the undo")
	if !must(s.Run(t.Context(), run))(t).InForce || must(s.Run(t.Context(), undo))(t).InForce || !must(s.Run(t.Context(), again))(t).InForce {
		t.Error("after the undo of an undo the wrong runs are in force")
	}
	wantConsistent(t, s)
}

// line is the history of a session's views in plain Go: sets of seqs, and a list
// of runs linked as the views were made from each other.
type line struct {
	sources map[chat.Seq]string // every message the application appended: its id
	tokens  map[chat.Seq]chat.Tokens
	live    map[chat.Seq]bool
	pinned  map[chat.Seq]bool
	last    chat.Seq
	head    *node
	all     []*node
}

type node struct {
	run      RunID
	undo     bool
	before   map[chat.Seq]bool // the view before it
	last     chat.Seq          // the end of the log then
	base     *node             // the head before it
	prev     *node             // the run below it in the line: base, or of an undo, the run that it went back to
	excluded map[chat.Seq]string
}

// inForce returns the runs that make the present view, the latest first.
func (l *line) inForce() []*node {
	var out []*node
	for n := l.head; n != nil; n = n.prev {
		out = append(out, n)
	}
	return out
}

func (l *line) push(n *node) {
	n.before, n.last, n.base = maps.Clone(l.live), l.last, l.head
	if !n.undo {
		n.prev = n.base
	}
	l.head = n
	l.all = append(l.all, n)
}

func (l *line) liveSeqs() []chat.Seq { return slices.Sorted(maps.Keys(l.live)) }

func (l *line) undo(n, by *node) {
	by.prev, by.undo = n.base, true
	l.push(by)
	l.live = maps.Clone(n.before)
	for q := range l.sources {
		if q > n.last {
			l.live[q] = true
		}
	}
}

func TestTheLineOfViewsAgainstAModel(t *testing.T) {
	s := fresh(t)
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		checks++
		k := Key{Session: fmt.Sprint("s", checks)}
		l := &line{sources: map[chat.Seq]string{}, tokens: map[chat.Seq]chat.Tokens{}, live: map[chat.Seq]bool{}, pinned: map[chat.Seq]bool{}}
		write := func(m NewMessage) {
			seqs := add(t, s, k, m)
			l.last++
			if seqs[0] != l.last {
				t.Fatalf("appended as %d, want %d", seqs[0], l.last)
			}
			l.sources[l.last], l.tokens[l.last], l.live[l.last] = m.ID, m.Tokens, true
		}
		fresh := func() NewMessage {
			m := talk(fmt.Sprintf("%d-", l.last+1), 2)[rapid.IntRange(0, 1).Draw(t, "role")]
			return counted(m, chat.Tokens(rapid.IntRange(0, 50).Draw(t, "tokens")))
		}
		for range 4 {
			write(fresh())
		}
		// pick draws some of the seqs that are left and takes them away.
		pick := func(left *[]chat.Seq, most int, what string) chat.Ranges {
			var out []chat.Seq
			for range rapid.IntRange(0, most).Draw(t, what) {
				if len(*left) == 0 {
					break
				}
				at := rapid.IntRange(0, len(*left)-1).Draw(t, "at")
				end := min(len(*left), at+rapid.IntRange(1, 3).Draw(t, "length"))
				out = append(out, (*left)[at:end]...)
				*left = slices.Delete(*left, at, end)
			}
			return chat.RangesOf(out...)
		}
		steps := map[string]func(*rapid.T){
			"append": func(*rapid.T) {
				for range rapid.IntRange(1, 3).Draw(t, "messages") {
					write(fresh())
				}
			},
			"apply": func(t *rapid.T) {
				n := &node{excluded: map[chat.Seq]string{}}
				left := slices.DeleteFunc(l.liveSeqs(), func(q chat.Seq) bool { return l.pinned[q] })
				var out []chat.Seq
				for q := range l.last {
					if !l.live[q+1] {
						out = append(out, q+1)
					}
				}
				var p chat.Plan
				for _, reason := range []string{"truncated", "tool_result"} {
					if x := pick(&left, 2, reason); len(x) > 0 {
						p.Exclude = append(p.Exclude, chat.Exclusion{Reason: reason, Seqs: x})
					}
				}
				for range rapid.IntRange(0, 2).Draw(t, "summaries") {
					if x := pick(&left, 2, "summarized"); len(x) > 0 {
						p.Additions = append(p.Additions, summarize(x, "a summary").Additions...)
					}
				}
				if len(left) > 0 && rapid.Bool().Draw(t, "replacement") {
					p.Additions = append(p.Additions, replacement(chat.Meta{Seq: left[0], Position: left[0]}, "short").Additions...)
				}
				p.Include = pick(&out, 2, "include")
				c := start(t, s, k)
				ch := must(c.change(s, p))(t)
				during := rapid.IntRange(0, 2).Draw(t, "appended during the run")
				for range during {
					write(fresh())
				}
				appended := must(s.Worker.Apply(context.Background(), c.Run, c.Fence, ch))(t)
				if appended.Len() != int64(len(p.Additions)) {
					t.Fatalf("appended %s for %d additions", appended, len(p.Additions))
				}
				n.run = c.Run
				l.push(n)
				for _, x := range p.Exclude {
					for _, q := range x.Seqs.Seqs() {
						delete(l.live, q)
						n.excluded[q] = x.Reason
					}
				}
				for _, a := range p.Additions {
					for _, q := range a.Covers.Seqs() {
						delete(l.live, q)
						n.excluded[q] = a.Reason
					}
					l.last++
					l.live[l.last], l.tokens[l.last] = true, a.Tokens
				}
				for _, q := range p.Include.Seqs() {
					l.live[q] = true
				}
			},
			"undo": func(t *rapid.T) {
				if len(l.all) == 0 {
					t.Skip("nothing to undo")
				}
				n := rapid.SampledFrom(l.all).Draw(t, "run")
				cascade := rapid.Bool().Draw(t, "cascade")
				line := l.inForce()
				at := slices.Index(line, n)
				var later []string
				for _, x := range line[:max(at, 0)] {
					if !x.undo {
						later = append(later, fmt.Sprint(x.run))
					}
				}
				run, err := s.Undo(context.Background(), k, n.run, cascade, "")
				switch {
				case at < 0:
					if !errors.Is(err, ErrNotApplicable) {
						t.Fatalf("undo of run %d, which is undone: %v, want not applicable", n.run, err)
					}
				case len(later) > 0 && !cascade:
					if !errors.Is(err, ErrInUse) || !strings.Contains(fmt.Sprint(err), ": "+strings.Join(later, ", ")) {
						t.Fatalf("undo of run %d under %v: %v, want in use, naming them", n.run, later, err)
					}
				case err != nil:
					t.Fatalf("undo of run %d: %v", n.run, err)
				default:
					l.undo(n, &node{run: run})
				}
			},
			"pin": func(t *rapid.T) {
				q := rapid.SampledFrom(slices.Sorted(maps.Keys(l.sources))).Draw(t, "message")
				do, pinned := s.Pin, l.pinned[q]
				if pinned {
					do = s.Unpin
				}
				noError(t, do(context.Background(), k, l.sources[q]))
				l.pinned[q] = !pinned
			},
			"replace": func(t *rapid.T) {
				view, revision := must2(s.View(context.Background(), k))(t)
				var msgs []NewMessage
				keep := map[chat.Seq]bool{}
				for _, m := range view {
					if rapid.Bool().Draw(t, "keep") {
						msgs = append(msgs, NewMessage{Message: m.Message})
						keep[m.Seq] = true
					}
					if rapid.IntRange(0, 4).Draw(t, "insert") == 0 {
						m := fresh()
						m.ID = fmt.Sprintf("r%d-%d", revision, len(msgs))
						msgs = append(msgs, m)
					}
				}
				if len(msgs) == 0 {
					t.Skip("nothing left")
				}
				run := must(s.Replace(context.Background(), k, revision, msgs, ""))(t)
				n := &node{run: run, excluded: map[chat.Seq]string{}}
				l.push(n)
				for q := range n.before {
					if !keep[q] {
						n.excluded[q] = "replaced"
						delete(l.live, q)
					}
				}
				for _, m := range msgs {
					if strings.HasPrefix(m.ID, fmt.Sprintf("r%d-", revision)) {
						l.last++
						l.sources[l.last], l.tokens[l.last], l.live[l.last] = m.ID, m.Tokens, true
					}
				}
			},
			"": func(t *rapid.T) { l.check(t, s, k) },
		}
		t.Repeat(steps)

		// Back to the first view: all source messages and no others.
		for line := l.inForce(); len(line) > 0; line = l.inForce() {
			line = slices.DeleteFunc(line, func(n *node) bool { return n.undo })
			if len(line) == 0 {
				break
			}
			first := line[len(line)-1]
			run := must(s.Undo(context.Background(), k, first.run, true, ""))(t)
			l.undo(first, &node{run: run})
		}
		l.check(t, s, k)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(l.sources)), slices.Sorted(slices.Values(liveSeqs(t, s, k)))); diff != "" {
			t.Fatalf("undone to the first view, the view is not the log (-log +view):\n%s", diff)
		}
	})
	wantConsistent(t, s)
}

// check compares a session with the model of it.
func (l *line) check(t *rapid.T, s *Store, k Key) {
	msgs := must(s.All(context.Background(), k))(t)
	if len(msgs) != int(l.last) {
		t.Fatalf("%d messages in the log, want %d", len(msgs), l.last)
	}
	force := l.inForce()
	var tokens chat.Tokens
	for _, m := range msgs {
		if m.Included != l.live[m.Seq] {
			t.Fatalf("message %d included: %v, want %v", m.Seq, m.Included, l.live[m.Seq])
		}
		if m.Pinned != l.pinned[m.Seq] {
			t.Fatalf("message %d pinned: %v, want %v", m.Seq, m.Pinned, l.pinned[m.Seq])
		}
		if m.Included {
			tokens += l.tokens[m.Seq]
		}
		var run RunID
		var reason string
		for _, n := range force {
			if r, ok := n.excluded[m.Seq]; ok && !m.Included {
				run, reason = n.run, r
				break
			}
		}
		if m.ExcludedBy != run || m.ExcludeReason != reason {
			t.Fatalf("message %d (%s) is out by run %d, %q; want run %d, %q", m.Seq, m.Kind, m.ExcludedBy, m.ExcludeReason, run, reason)
		}
		if !m.Included && m.Kind == chat.KindSource && reason == "" {
			t.Fatalf("message %d is out and nothing says why", m.Seq)
		}
	}
	row := must(s.Session(context.Background(), k))(t)
	if row.LiveTokens != tokens || row.LiveMessages != int64(len(l.live)) || row.Messages != int64(len(l.sources)) || row.Revision != int64(len(l.all)) {
		t.Fatalf("counters are %+v; want %d tokens, %d of %d messages, revision %d", row, tokens, len(l.live), len(l.sources), len(l.all))
	}
	got := list[RunID](t, s, `SELECT r.id FROM compactor.runs r JOIN compactor.sessions s USING (sid) WHERE s.id = $1 AND in_force ORDER BY r.revision DESC`, k.Session)
	var want []RunID
	for _, n := range force {
		want = append(want, n.run)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("runs in force are %v, want %v", got, want)
	}
}
