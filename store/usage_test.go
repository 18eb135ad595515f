package store

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
)

// usage holds the parts of a session's context estimate: the report, the messages
// after it, and the changes of runs and undos since.
type usage struct {
	known    bool
	reported int64
	at       chat.Seq
	moved    int64
}

func (u usage) estimate(tokens []int64) int64 {
	sum := u.reported + u.moved
	for i, n := range tokens {
		if chat.Seq(i+1) > u.at {
			sum += n
		}
	}
	return sum
}

func TestTheContextEstimateIsWhatWasReportedAndWhatHappenedSince(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 500, 0, false, Counts{}})
	cases := 0
	rapid.Check(t, func(t *rapid.T) {
		cases++
		k := Key{Tenant: fmt.Sprint("t", cases), Session: fmt.Sprint("s", cases)} // reports of others teach nothing
		var tokens []int64                                                        // of the log, by seq; 0 for messages of runs
		var u usage
		var runs []RunID
		live := func() int64 {
			return one[int64](t, s, `SELECT live_tokens FROM compactor.sessions WHERE id = $1`, k.Session)
		}
		// changed adds the effect of a run or an undo on the size of the view.
		changed := func(do func()) {
			before := live()
			do()
			u.moved += live() - before
		}
		appends := func(t *rapid.T) {
			for _, n := range rapid.SliceOfN(rapid.Int64Range(0, 200), 1, 6).Draw(t, "tokens") {
				add(t, s, k, counted(assistant("", "x"), chat.Tokens(n))) // none that a run must keep
				tokens = append(tokens, n)
			}
		}
		appends(t)
		t.Repeat(map[string]func(*rapid.T){
			"append": appends,
			"report": func(t *rapid.T) {
				n := rapid.Int64Range(0, 1000).Draw(t, "prompt tokens")
				at := chat.Seq(rapid.IntRange(0, len(tokens)+2).Draw(t, "seq"))
				if must(s.ReportUsage(context.Background(), k, chat.Tokens(n), at))(t) {
					last := chat.Seq(len(tokens))
					if at == 0 || at > last {
						at = last
					}
					u = usage{true, n, at, 0}
				}
			},
			"run": func(t *rapid.T) {
				seqs := liveSeqs(t, s, k)
				if len(seqs) == 0 {
					t.Skip("nothing is in the view")
				}
				i := rapid.IntRange(0, len(seqs)-1).Draw(t, "from")
				gone := chat.RangesOf(seqs[i:rapid.IntRange(i, len(seqs)).Draw(t, "to")]...)
				plan := exclude(gone)
				if len(gone) == 0 {
					plan = chat.Plan{}
				} else if rapid.Bool().Draw(t, "summary") {
					plan = summarize(gone, "x")
				}
				changed(func() { runs = append(runs, apply(t, s, k, plan)) })
				tokens = append(tokens, make([]int64, len(plan.Additions))...)
			},
			"undo": func(t *rapid.T) {
				if len(runs) == 0 {
					t.Skip("no run")
				}
				changed(func() {
					if undo, err := s.Undo(context.Background(), k, rapid.SampledFrom(runs).Draw(t, "run"), true, ""); err == nil {
						runs = append(runs, undo)
					}
				})
			},
			"": func(t *rapid.T) {
				row := must(s.Session(context.Background(), k))(t)
				want := live()
				if u.known {
					want = max(0, u.estimate(tokens))
				}
				if int64(row.ContextTokens) != want {
					t.Fatalf("the context estimate is %d, want %d (%+v of %v)", row.ContextTokens, want, u, tokens)
				}
				if row.Due && want <= int64(row.DueTokens) && !row.Suspect {
					t.Fatalf("due at %d of %d tokens", want, row.DueTokens)
				}
			},
		})
	})
	wantConsistent(t, s)
}
