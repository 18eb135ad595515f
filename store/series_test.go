package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/store/storetest"
)

// A reader that keeps the parts that are over finds the same as one that reads all.
func TestASeriesIsTheSameWhenItsPartsAreKept(t *testing.T) {
	s := fresh(t)
	ctx := t.Context()
	for _, k := range []Key{{"acme", "a"}, {"other", "b"}} {
		add(t, s, k, talk(k.Session, 3)...)
	}
	end := func(ago string, outcome string) {
		exec(t, s, `INSERT INTO compactor.runs (sid, trigger, status, outcome, worker, started_at, ended_at)
			SELECT sid, 'event', 'skipped', $2, 'w' || $2, now() - $1::interval, now() - $1::interval FROM compactor.sessions`, ago, outcome)
	}
	var kept SeriesReader
	for _, outcome := range []string{"cooldown", "unchanged", "busy"} {
		for _, ago := range []string{"3 minutes", "0", "1 second"} {
			if outcome != "cooldown" && ago == "3 minutes" {
				continue // no run ends in the past
			}
			end(ago, outcome)
		}
		for _, tenant := range []string{"", "acme"} {
			got := must(kept.Read(ctx, s, tenant, 10*time.Minute, 10))(t)
			want := must(new(SeriesReader).Read(ctx, s, tenant, 10*time.Minute, 10))(t)
			got.To, got.From = want.To, want.From
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("tenant %q, %s (-all +kept):\n%s", tenant, outcome, diff)
			}
		}
	}
	if len(kept.over) != 2 {
		t.Errorf("%d series are kept, want 2", len(kept.over))
	}
}

// A process that goes on has no mark once the time in which it began is over.
func TestAProcessBeginsOnce(t *testing.T) {
	s := fresh(t)
	add(t, s, Key{"acme", "a"}, talk("a", 3)...)
	end := func() {
		exec(t, s, `INSERT INTO compactor.runs (sid, trigger, status, outcome, worker, started_at, ended_at)
			SELECT sid, 'event', 'skipped', 'cooldown', 'w', clock_timestamp(), clock_timestamp() FROM compactor.sessions`)
	}
	end()
	var kept SeriesReader
	from := time.Now()
	storetest.Await(t, "the time of the series has passed", func() bool {
		got := must(kept.Read(t.Context(), s, "", 4*time.Second, 4))(t)
		if len(got.Marks) > 0 && got.Marks[0].At.Sub(from) > time.Second {
			t.Fatalf("it began at %v, and again at %v", from, got.Marks[0].At)
		}
		end()
		return time.Since(from) > 7*time.Second
	})
}
