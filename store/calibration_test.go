package store

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
)

// provider simulates the usage that a provider reports for prompts: with a tokenizer of its own, an
// overhead that is not of stored messages, noise of ± 3 %, and now and then a report that
// counts something else.
type provider struct {
	rand            *rand.Rand
	overhead, scale float64
}

func newProvider(seed uint64) *provider {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a simulation
	return &provider{r, 30_000, 0.8 + 0.9*r.Float64()}
}

// reports returns n reports on a session that grows from 5,000 to 150,000 counted tokens,
// the newest first.
func (p *provider) reports(n int) (counted, reported []int64) {
	wrong := p.rand.IntN(n)
	for i := range n {
		size := 5000 + 145_000*float64(i+1)/float64(n)
		c := math.Floor(size * (0.8 + 0.2*p.rand.Float64()))
		r := p.overhead + p.scale*c*(0.97+0.06*p.rand.Float64())
		if i == wrong {
			r *= 0.6
		}
		counted, reported = append(counted, int64(c)), append(reported, int64(r))
	}
	slices.Reverse(counted)
	slices.Reverse(reported)
	return counted, reported
}

// off returns the relative error of a line in views of the sizes at which compaction is
// decided.
func (p *provider) off(l Line) (worst float64) {
	for _, counted := range []chat.Tokens{60_000, 100_000, 150_000} {
		truth := p.overhead + p.scale*float64(counted)
		worst = max(worst, math.Abs(float64(l.Tokens(counted))-truth)/truth)
	}
	return worst
}

// fit returns the line for a window of which 150,000 tokens are the start.
func fit(t *testing.T, s *Store, counted, reported []int64) Line {
	t.Helper()
	rows, _ := s.pool.Query(t.Context(), `SELECT overhead, scale FROM compactor.fit_usage($1, $2, 150000)`, counted, reported)
	l := must(pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Line]))(t)
	return l
}

func TestTenReportsTeachTheSizeOfPromptsWithinFivePercent(t *testing.T) {
	s := fresh(t)
	worst := 0.0
	for seed := range uint64(200) {
		p := newProvider(seed)
		counted, reported := p.reports(10)
		l := fit(t, s, counted, reported)
		worst = max(worst, p.off(l))
		if p.off(l) > 0.05 {
			t.Errorf("seed %d: %+v is off by %.1f %%, the truth is %.0f and %.3f", seed, l, 100*p.off(l), p.overhead, p.scale)
		}
	}
	t.Logf("off by %.1f %% at most", 100*worst)
}

// An application's next version has more tools, or a longer prompt that it does not store.
func TestALineFollowsAChangeOfTheOverhead(t *testing.T) {
	s := fresh(t)
	var off []float64
	for seed := range uint64(100) {
		p := newProvider(seed)
		counted, reported := p.reports(20)
		p.overhead = []float64{50_000, 10_000}[seed%2]
		c, r := p.reports(10)
		counted, reported = slices.Concat(c, counted)[:20], slices.Concat(r, reported)[:20]
		off = append(off, p.off(fit(t, s, counted, reported)))
	}
	slices.Sort(off)
	t.Logf("off by %.1f %% in the median, %.1f %% at most", 100*off[50], 100*off[99])
	if off[50] > 0.03 || off[90] > 0.10 {
		t.Errorf("off by %.1f %% in the median, %.1f %% in one of ten cases", 100*off[50], 100*off[90])
	}
}

func TestALineIsBounded(t *testing.T) {
	s := fresh(t)
	for name, tt := range map[string]struct {
		counted, reported []int64
		want              Line
	}{
		"a steep one":                  {[]int64{10_000, 20_000, 30_000, 40_000, 50_000}, []int64{50_000, 100_000, 150_000, 200_000, 250_000}, Line{60_000, 3}},
		"a flat one":                   {[]int64{10_000, 20_000, 30_000, 40_000, 50_000}, []int64{9000, 9000, 9000, 9000, 9000}, Line{0, 0.5}},
		"no overhead below 0":          {[]int64{10_000, 20_000, 30_000, 40_000, 50_000}, []int64{5000, 20_000, 35_000, 50_000, 65_000}, Line{0, 1.1667}},
		"nor above half of the start":  {[]int64{10_000, 20_000, 30_000, 40_000, 50_000}, []int64{150_000, 160_000, 170_000, 180_000, 190_000}, Line{75_000, 1}},
		"all reports of one size":      {[]int64{1000, 1000, 1000, 1000, 1000}, []int64{1500, 1500, 1501, 1499, 1500}, Line{500, 1}},
		"nearly all of one size":       {[]int64{50_000, 50_500, 50_250, 49_750, 49_500}, []int64{85_000, 65_000, 75_000, 72_500, 77_500}, Line{24_750, 1}},
		"small ones, with noise":       {[]int64{500, 1000, 1500, 2000, 2500}, []int64{31_000, 29_000, 33_000, 30_000, 35_000}, Line{30_500, 1}},
		"one size, fewer than counted": {[]int64{1000, 1000, 1000, 1000, 1000}, []int64{800, 800, 800, 800, 800}, Line{0, 0.8}},
	} {
		equal(t, tt.want, fit(t, s, tt.counted, tt.reported), "%s", name)
	}
}

// Reports are untrusted: whatever they say, they move the size at which sessions are due
// by a bounded factor.
func TestNoReportsMakeALineOutOfBounds(t *testing.T) {
	s := fresh(t)
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(5, 20).Draw(rt, "reports")
		counted := rapid.SliceOfN(rapid.Int64Range(1, 1<<40), n, n).Draw(rt, "counted")
		reported := rapid.SliceOfN(rapid.Int64Range(1, 999_999_999), n, n).Draw(rt, "reported")
		if l := fit(t, s, counted, reported); l.Scale < 0.5 || l.Scale > 3 || l.Overhead < 0 || l.Overhead > 75_000 {
			rt.Fatalf("%+v", l)
		}
	})
}

// teach reports prompts of one session: 20,000 and 1.5 for each counted token.
func teach(t *testing.T, s *Store, k Key, model string, n int) {
	t.Helper()
	for i := range n {
		_, _, err := s.Append(t.Context(), k, model, []NewMessage{counted(user("", "hello"), 2000)})
		if err == nil {
			_, err = s.ReportUsage(t.Context(), k, chat.Tokens(20_000+3000*(i+1)), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func calibrations(t *testing.T, s *Store) []string {
	t.Helper()
	all := must(s.Operator.Calibrations(t.Context(), "", "", 100))(t)
	out := []string{}
	for _, c := range all {
		out = append(out, fmt.Sprintf("%s %s: %d reports, %d + %g", c.Tenant, c.Model, c.Reports, c.Line.Overhead, c.Line.Scale))
	}
	return out
}

func TestASessionWithoutAReportIsDueByThoseOfOthers(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{DueTokens: 80_000, EstimateMargin: 0.5})
	teach(t, s, Key{Session: "taught"}, "openai/Model-1", 4)
	// 20,000 + 1.5 × 40,000 is not above 80,000.
	size := func(k Key, model string, first chat.Tokens) (was, is SessionRow) {
		t.Helper()
		must2(s.Append(t.Context(), k, model, []NewMessage{counted(user("", "long"), first)}))(t)
		was = session(t, s, k)
		must2(s.Append(t.Context(), k, model, []NewMessage{counted(user("", "one more"), 1)}))(t)
		return was, session(t, s, k)
	}
	if was, is := size(Key{Session: "early"}, "model-1", 70_000); was.Due || is.Due || is.ContextTokens != 70_001 {
		t.Errorf("four reports are too few to teach anything: %+v", is)
	}
	teach(t, s, Key{Session: "taught 2"}, "model-1", 1)
	for _, k := range []Key{{Session: "new"}, {Session: "of another case"}} {
		was, is := size(k, map[string]string{"new": "model-1", "of another case": "azure/MODEL-1"}[k.Session], 40_000)
		if was.Due || was.ContextTokens != 80_000 || !is.Due || is.ContextTokens != 80_002 {
			t.Errorf("%s: due %t with %d, then %t with %d", k.Session, was.Due, was.ContextTokens, is.Due, is.ContextTokens)
		}
	}
	for _, k := range []Key{{Session: "other model"}, {Tenant: "other", Session: "s"}} {
		model := map[string]string{"other": "model-1"}[k.Tenant]
		if was, is := size(k, model, 70_000); was.Due || is.Due || is.ContextTokens != 70_001 {
			t.Errorf("%s learned from another tenant or model: %+v", k, is)
		}
	}
	want := []string{"default model-1: 5 reports, 20000 + 1.5"}
	if diff := cmp.Diff(want, calibrations(t, s)); diff != "" {
		t.Error(diff)
	}
	if c := start(t, s, Key{Session: "new"}).Session; c.Line != (Line{20_000, 1.5}) {
		t.Errorf("a run is planned with %+v", c.Line)
	}
	if c := start(t, s, Key{Session: "other model"}).Session; c.Line != (Line{}) {
		t.Errorf("a run of another model is planned with %+v", c.Line)
	}
	wantConsistent(t, s)
}

func TestAReportTeachesWhatItsPromptHeld(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{DueTokens: 100_000})
	k := Key{Session: "s"}
	for _, tokens := range []chat.Tokens{4000, 3000, 2000} {
		must2(s.Append(t.Context(), k, "m", []NewMessage{counted(user("", "x"), tokens)}))(t)
	}
	for _, report := range []struct{ tokens, seq int64 }{
		{13_000, 0},
		{11_000, 2},
		{5000, 1},
		// Values that no line within the bounds explains: too few, none, and too many above the start.
		{1999, 1},
		{0, 1},
		{112_001, 1},
		{112_000, 1},
		{2000, 1},
	} {
		must(s.ReportUsage(t.Context(), k, chat.Tokens(report.tokens), chat.Seq(report.seq)))(t)
	}
	want := "{4000,4000,4000,7000,9000} {2000,112000,5000,11000,13000}"
	equal(t, want, one[string](t, s, `SELECT counted::text || ' ' || reported::text FROM compactor.calibrations`), "learned")
}

func TestHalfOfTheStartIsLeftToMessages(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{DueTokens: 30_000, EstimateMargin: 0})
	teach(t, s, Key{Session: "s"}, "m", 15) // 20,000 + 1.5 × counted
	equal(t, 15_000, one[int64](t, s, `SELECT overhead FROM compactor.calibrations`), "the overhead")
}

// The start of the policy bounds reports.
func TestAReportThatCannotTeachIsStillTheSessions(t *testing.T) {
	s := fresh(t)
	teach(t, s, Key{Session: "before the first policy"}, "m", 5)
	none(t, calibrations(t, s), "learned")
	if row := session(t, s, Key{Session: "before the first policy"}); row.ContextTokens != 35_000 {
		t.Errorf("%d tokens in context", row.ContextTokens)
	}
}

// Learning is left out rather than that a report waits for the transaction of another
// session's, or fails by it.
func TestReportsDoNotWaitForEachOther(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{DueTokens: 100_000})
	teach(t, s, Key{Session: "a"}, "m", 1)
	teach(t, s, Key{Session: "b"}, "m", 1)
	report := `SELECT compactor.report_usage('default', $1, 2500)`
	tx := begin(t, s, report, "a")
	teach(t, s, Key{Session: "new"}, "another", 1)
	must(s.ReportUsage(t.Context(), Key{Session: "b"}, 2600, 0))(t) // would wait for ever
	strict := must(s.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.Serializable}))(t)
	defer strict.Rollback(t.Context()) //nolint:errcheck // ends a failed test
	must(strict.Exec(t.Context(), `SELECT count(*) FROM compactor.calibrations`))(t)
	noError(t, tx.Commit(t.Context()))
	wantError(t, second(strict.Exec(t.Context(), report, "b")), nil, "a report failed by that of another session")
	noError(t, strict.Commit(t.Context()))
	want := []string{"default m: 3 reports, 0 + 0", "default another: 1 reports, 0 + 0"}
	if diff := cmp.Diff(want, calibrations(t, s)); diff != "" {
		t.Error(diff)
	}
}

func TestABusyModelLearnsFromOneReportASecond(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{DueTokens: 100_000})
	k := Key{Session: "s"}
	teach(t, s, k, "m", 20)
	for want, age := range map[string]string{"default m: 20 reports, 20000 + 1.5": "-1 hour", "default m: 21 reports, 20000 + 1.5": "1 hour"} {
		exec(t, s, `UPDATE compactor.calibrations SET reports = 20, updated_at = clock_timestamp() - $1::text::interval`, age)
		must(s.ReportUsage(t.Context(), k, 50_001, 0))(t)
		equal(t, []string{want}, calibrations(t, s), "calibrations")
	}
	equal(t, 20, one[int](t, s, `SELECT cardinality(counted) FROM compactor.calibrations`), "reports are kept")
}

func TestTheDatabaseKnowsTheSameEstimates(t *testing.T) {
	s := fresh(t)
	for _, counter := range []string{"bytes/3", "chars/4", "o200k_base*1.5", "cl100k_base*1", "o200k_base", "cl100k_base", "application", ""} {
		equal(t, chat.Estimates(counter), one[bool](t, s, `SELECT compactor.estimates($1)`, counter), "%q is an estimate", counter)
	}
	m := counted(user("m", "hello"), 10)
	m.Counter = "o200k_base*1.5"
	add(t, s, Key{Session: "s"}, m)
	equal(t, 10, one[int](t, s, `SELECT live_estimated_tokens FROM compactor.sessions`), "tokens are estimated")
}
