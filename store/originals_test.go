package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

func lastSeq(t fataler, s *Store, sid int64) chat.Seq {
	t.Helper()
	return one[chat.Seq](t, s, `SELECT last_seq FROM compactor.sessions WHERE sid = $1`, sid)
}

// originals returns the ids of what messages stand for, after reading them twice, and in brackets
// the texts of the summaries that stand for older ones.
func originals(t fataler, s *Store, k Key, dropped string, most int64, of ...chat.Seq) string {
	t.Helper()
	sid := session(t, s, k).SID
	messages, older, err := s.Originals(context.Background(), sid, lastSeq(t, s, sid), of, dropped, most)
	if err != nil {
		t.Fatalf("originals: %v", err)
	}
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
	t.Parallel()
	s := open(t)
	k := Key{Tenant: "ours", Session: "s"}
	theirs := Key{Tenant: "theirs", Session: "s"}
	want := func(k Key, ids string, of ...chat.Seq) {
		t.Helper()
		if got := originals(t, s, k, "", math.MaxInt64, of...); got != ids {
			t.Errorf("%v stand for %q, want %q", of, got, ids)
		}
	}
	for _, k := range []Key{k, theirs} {
		add(t, s, k, talk(k.Tenant, 6)...)
		apply(t, s, k, summarize(span(1, 4), "one")) // 7
	}
	want(k, "ours1 ours2 ours3 ours4", 7)
	want(theirs, "theirs1 theirs2 theirs3 theirs4", 7)
	want(k, "ours5", 5)
	apply(t, s, k, standIn(chat.Meta{Seq: 6, Position: 6, Role: chat.RoleAssistant}, "short")) // 8
	add(t, s, k, talk("more", 2)...)                                                           // 9, 10
	second := apply(t, s, k, summarize(chat.RangesOf(7, 5, 8, 9), "two"))                      // 11
	want(k, "ours1 ours2 ours3 ours4 ours5 ours6 more1", 11)
	want(k, "ours1 ours2 ours3 ours4 ours5 ours6 more1 more2", 10, 11)

	// A message appended since is none of the run's, whatever number its own addition has.
	sid := session(t, s, k).SID
	last := lastSeq(t, s, sid)
	add(t, s, k, talk("late", 1)...)
	messages, _, err := s.Originals(t.Context(), sid, last, []chat.Seq{10, 12}, "", math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	for m := range messages {
		if m.ID != "more2" {
			t.Errorf("read %s", m.ID)
		}
	}

	// After the undo of the second run, the first summary stands for what it did, and what the
	// second covered is not known.
	must(s.Undo(t.Context(), k, second, false, ""))(t)
	want(k, "ours1 ours2 ours3 ours4", 7)
	want(k, "ours6", 8)
	want(k, "[two]", 11)
	wantConsistent(t, s)
}

// What is in the view again, and what the application took out, is not read.
func TestOriginalsLeaveOutWhatTheApplicationDecidedOn(t *testing.T) {
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 8)...)
	want := func(dropped, ids string, of ...chat.Seq) {
		t.Helper()
		if got := originals(t, s, k, dropped, math.MaxInt64, of...); got != ids {
			t.Errorf("%v stand for %q, want %q", of, got, ids)
		}
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
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
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
		if got := originals(t, s, k, "", most, 8); got != want {
			t.Errorf("up to %d bytes: %q, want %q", most, got, want)
		}
	}
	// What was dropped has no summary.
	if got := originals(t, s, k, "truncated", 2*originalsPage, 8); got != "[two] d e" {
		t.Errorf("with what was dropped: %q", got)
	}
}

// Of words that were purged, what stands for them is all that is left; nothing else is lost.
func TestOriginalsOfPurgedWords(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, c := range map[string]struct {
		first []chat.Plan // whose sources are purged
		want  string
	}{
		"stand-ins": {[]chat.Plan{
			standIn(chat.Meta{Seq: 3, Position: 3, Role: chat.RoleUser}, "third"), standIn(chat.Meta{Seq: 4, Position: 4, Role: chat.RoleAssistant}, "fourth"),
		}, "m1 m2 (third) (fourth) m5 m6 m7 m8"},
		"a summary":               {[]chat.Plan{summarize(span(3, 4), "two")}, "[two] m1 m2 m5 m6 m7 m8"},
		"a summary of a stand-in": {[]chat.Plan{standIn(chat.Meta{Seq: 3, Position: 3, Role: chat.RoleUser}, "third"), summarize(chat.RangesOf(9, 4), "two")}, "[two] m1 m2 m5 m6 m7 m8"},
	} {
		k := Key{Session: name}
		add(t, s, k, talk("m", 8)...)
		for _, p := range c.first {
			apply(t, s, k, p)
		}
		longAgo(t, s)
		must(s.ArchiveSession(t.Context(), k, month))(t)
		byHand(t, s, session(t, s, k).SID, `UPDATE archive_segments SET created_at = now() - interval '2 days'`)
		if n := must(s.PurgeArchive(t.Context(), 24*time.Hour, 24*time.Hour, []string{"default"}, 10))(t); n == 0 {
			t.Fatalf("%s: nothing was purged", name)
		}
		apply(t, s, k, standIn(chat.Meta{Seq: 6, Position: 6, Role: chat.RoleAssistant}, "sixth"))
		var view []chat.Seq
		texts := map[string]string{} // of what is no message of the application
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
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s: the view stands for %q, want %q", name, got, c.want)
		}
	}
}
