package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

func lastSeq(t fataler, s *Store, sid int64) chat.Seq {
	t.Helper()
	return one[chat.Seq](t, s, `SELECT last_seq FROM compactor.sessions WHERE sid = $1`, sid)
}

// originals returns the ids of the originals of messages, after reading them twice, and in brackets
// the texts of the summaries that stand for older ones.
func originals(t fataler, s *Store, k Key, dropped string, most int64, of ...chat.Seq) string {
	t.Helper()
	sid := session(t, s, k).SID
	messages, older := must2(s.Worker.Originals(context.Background(), sid, lastSeq(t, s, sid), of, dropped, most))(t)
	var rounds [2][]string
	for n := range rounds {
		for _, m := range older {
			rounds[n] = append(rounds[n], "["+m.Content.String()+"]")
		}
		for m, err := range messages {
			if err != nil {
				t.Fatalf("originals: %v", err)
			}
			rounds[n] = append(rounds[n], m.ID)
		}
	}
	if !slices.Equal(rounds[0], rounds[1]) {
		t.Fatalf("read again: %v, then %v", rounds[0], rounds[1])
	}
	return strings.Join(rounds[0], " ")
}

func TestOriginalsOfASummaryOfSummaries(t *testing.T) {
	s := fresh(t)
	k := Key{Tenant: "ours", Session: "s"}
	theirs := Key{Tenant: "theirs", Session: "s"}
	want := func(k Key, ids string, of ...chat.Seq) {
		t.Helper()
		equal(t, ids, originals(t, s, k, "", math.MaxInt64, of...), "%v stand for", of)
	}
	for _, k := range []Key{k, theirs} {
		add(t, s, k, talk(k.Tenant, 6)...)
		apply(t, s, k, summarize(span(1, 4), "one")) // 7
	}
	want(k, "ours1 ours2 ours3 ours4", 7)
	want(theirs, "theirs1 theirs2 theirs3 theirs4", 7)
	want(k, "ours5", 5)
	apply(t, s, k, replacement(chat.Meta{Seq: 6, Position: 6, Role: chat.RoleAssistant}, "short")) // 8
	add(t, s, k, talk("more", 2)...)                                                               // 9, 10
	second := apply(t, s, k, summarize(chat.RangesOf(7, 5, 8, 9), "two"))                          // 11
	want(k, "ours1 ours2 ours3 ours4 ours5 ours6 more1", 11)
	want(k, "ours1 ours2 ours3 ours4 ours5 ours6 more1 more2", 10, 11)

	// A message appended since is none of the run's, whatever number its own addition has.
	sid := session(t, s, k).SID
	last := lastSeq(t, s, sid)
	add(t, s, k, talk("late", 1)...)
	messages, _ := must2(s.Worker.Originals(t.Context(), sid, last, []chat.Seq{10, 12}, "", math.MaxInt64))(t)
	for m := range messages {
		equal(t, "more2", m.ID, "read")
	}

	// After the undo of the second run, the first summary stands for the same messages as before, and those that the
	// second covered are not known.
	must(s.Undo(t.Context(), k, second, false, ""))(t)
	want(k, "ours1 ours2 ours3 ours4", 7)
	want(k, "ours6", 8)
	want(k, "[two]", 11)
	wantConsistent(t, s)
}

// Messages that are in the view again, or that the application took out, are not read.
func TestOriginalsLeaveOutWhatTheApplicationDecidedOn(t *testing.T) {
	s, k := freshTalk(t, 8)
	want := func(dropped, ids string, of ...chat.Seq) {
		t.Helper()
		equal(t, ids, originals(t, s, k, dropped, math.MaxInt64, of...), "%v stand for", of)
	}
	// view returns the view without some messages.
	view := func(without ...string) (msgs []NewMessage, revision int64) {
		all, revision := must2(s.View(t.Context(), k))(t)
		for _, m := range all {
			if !slices.Contains(without, m.ID) {
				msgs = append(msgs, NewMessage{Message: m.Message})
			}
		}
		return msgs, revision
	}
	replace := func(without ...string) {
		t.Helper()
		msgs, revision := view(without...)
		must(s.Replace(t.Context(), k, revision, msgs, ""))(t)
	}
	replace("m2")                                            // before the summary
	apply(t, s, k, summarize(chat.RangesOf(1, 3, 4), "one")) // 9
	want("", "m1 m3 m4", 9)
	apply(t, s, k, chat.Plan{Include: span(3, 3)}) // as for a pin
	want("", "m1 m4", 9)
	want("", "m1 m3 m4", 3, 9)
	replace("m3") // since the summary
	want("", "m1 m4", 9)

	apply(t, s, k, exclude(span(5, 5)))
	want("", "m1 m4 m6", 6, 9)
	want("truncated", "m1 m4 m5 m6", 6, 9)
	want("truncated", "m5 m6", 6)
	replace("m8")
	want("truncated", "m1 m4 m6", 6, 9)
	wantConsistent(t, s)
}

func TestOriginalsAreReadInPagesUpToALimit(t *testing.T) {
	s, k := freshSession(t)
	long := strings.Repeat("x", originalsPage*2/3)
	for _, id := range []string{"a", "b", "c", "d"} {
		add(t, s, k, user(id, long))
	}
	apply(t, s, k, summarize(span(1, 2), "one"))            // 5
	apply(t, s, k, summarize(chat.RangesOf(5, 3), "two"))   // 6
	add(t, s, k, user("e", long))                           // 7
	apply(t, s, k, summarize(chat.RangesOf(6, 4), "three")) // 8
	apply(t, s, k, exclude(span(7, 7)))
	for most, want := range map[int64]string{
		1:                 "[three]",
		originalsPage:     "[two] d",
		2 * originalsPage: "[one] c d",
		3 * originalsPage: "a b c d",
	} {
		equal(t, want, originals(t, s, k, "", most, 8), "up to %d bytes", most)
	}
	// Messages that were dropped have no summary.
	equal(t, "[two] d e", originals(t, s, k, "truncated", 2*originalsPage, 8), "with what was dropped")
}

// Of purged messages, their summaries and replacements are left; nothing else is lost.
func TestOriginalsOfPurgedWords(t *testing.T) {
	s := fresh(t)
	for name, c := range map[string]struct {
		first []chat.Plan // whose sources are purged
		want  string
	}{
		"stand-ins": {[]chat.Plan{
			replacement(chat.Meta{Seq: 3, Position: 3, Role: chat.RoleUser}, "third"), replacement(chat.Meta{Seq: 4, Position: 4, Role: chat.RoleAssistant}, "fourth"),
		}, "m1 m2 (third) (fourth) m5 m6 m7 m8"},
		"a summary":               {[]chat.Plan{summarize(span(3, 4), "two")}, "[two] m1 m2 m5 m6 m7 m8"},
		"a summary of a stand-in": {[]chat.Plan{replacement(chat.Meta{Seq: 3, Position: 3, Role: chat.RoleUser}, "third"), summarize(chat.RangesOf(9, 4), "two")}, "[two] m1 m2 m5 m6 m7 m8"},
	} {
		k := Key{Session: name}
		add(t, s, k, talk("m", 8)...)
		for _, p := range c.first {
			apply(t, s, k, p)
		}
		longAgo(t, s)
		must(s.Admin.ArchiveSession(t.Context(), k, month))(t)
		byHand(t, s, session(t, s, k).SID, `UPDATE archive_segments SET created_at = now() - interval '2 days'`)
		if n := must(s.Scheduler.PurgeArchive(t.Context(), 24*time.Hour, 24*time.Hour, []string{"default"}, 10))(t); n == 0 {
			t.Fatalf("%s: nothing was purged", name)
		}
		apply(t, s, k, replacement(chat.Meta{Seq: 6, Position: 6, Role: chat.RoleAssistant}, "sixth"))
		var view []chat.Seq
		texts := map[string]string{} // of summaries and replacements
		for _, m := range must(s.All(t.Context(), k))(t) {
			if m.ExcludedBy == 0 {
				view = append(view, m.Seq)
			}
			if m.Seq > 8 {
				texts[m.ID] = "(" + m.Content.String() + ")"
			}
		}
		got := strings.Fields(originals(t, s, k, "", math.MaxInt64, view...))
		for i, id := range got {
			got[i] = cmp.Or(texts[id], id)
		}
		equal(t, c.want, strings.Join(got, " "), "%s: the view stands for", name)
	}
}

// The first entry for a message counts.
func TestCoversOfCellsThatOverlap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seq := rapid.Map(rapid.Int64Range(1, 30), func(n int64) chat.Seq { return chat.Seq(n) })
		said := rapid.SliceOf(rapid.Custom(func(t *rapid.T) cell {
			lo := seq.Draw(t, "lo")
			return cell{chat.Range{Lo: lo, Hi: lo + seq.Draw(t, "length")}, rapid.SampledFrom([]chat.Seq{noCover, 0, 31, 32, 62}).Draw(t, "by")}
		})).Draw(t, "said")
		c := newCovers(said)
		for q := chat.Seq(1); q <= 60; q++ {
			want := noCover
			if i := slices.IndexFunc(said, func(x cell) bool { return x.Lo <= q && q < x.Hi }); i >= 0 {
				want = said[i].by
			}
			for by, covered := range c.of {
				if covered.Has(q) != (by == want) {
					t.Fatalf("%d is in what %d covers, want %d", q, by, want)
				}
			}
			if got := c.by(q); got != max(want, 0) || want >= 0 && c.of[want] == nil {
				t.Fatalf("%d covers %d, want %d", got, q, want)
			}
		}
		reached := chat.RangesOf(seq.Draw(t, "of"), 62)
		want := reached
		for range c.of {
			for by, covered := range c.of {
				if want.Has(by) {
					want = want.Union(covered)
				}
			}
		}
		if got := c.closure(reached); got.String() != want.String() {
			t.Fatalf("closure %s, want %s", got, want)
		}
	})
}

// BenchmarkOriginalsGrowth reads the originals of the view where every second message has a
// replacement, and the replacements have a summary.
func BenchmarkOriginalsGrowth(b *testing.B) {
	growth.Report(b, 2000, 8, func(n int) func() {
		said := []cell{{chat.Range{Lo: chat.Seq(3*n + 1), Hi: chat.Open}, noCover}, {chat.Range{Lo: chat.Seq(2*n + 1), Hi: chat.Seq(3*n + 1)}, chat.Seq(3*n + 1)}}
		var log []logged
		for i := range n {
			q := chat.Seq(2*i + 1)
			said = append(said, cell{chat.Range{Lo: q, Hi: q + 1}, chat.Seq(2*n + 1 + i)})
			log = append(log, logged{q, 100, 'm'})
		}
		return func() {
			c := newCovers(said)
			if got := c.closure(chat.RangesOf(chat.Seq(3*n + 1))); got.Len() != int64(2*n+1) {
				b.Fatalf("%d messages, want %d", got.Len(), 2*n+1)
			}
			if out, _ := c.newest(log, math.MaxInt64); len(out) != n {
				b.Fatalf("%d messages of the log, want %d", len(out), n)
			}
		}
	})
}
