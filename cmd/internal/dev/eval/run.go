package eval

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// Options selects the measurements of a run.
type Options struct {
	// Budgets are shares of the tokens before a cut, TokenBudgets numbers of tokens.
	Cuts, Budgets, TokenBudgets []float64
	// OwnLimits has policies compact each session as it grows, at their own limits. All must have
	// an Own.
	OwnLimits bool
	Policies  []Policy
	// Counter returns the counter for the tokens of a model's sessions; if nil, a token is
	// four characters.
	Counter func(model string) tokens.Counter
	// Rounds, if above 1, measures sessions compacted in so many rounds too (see Setting).
	Rounds int
	// Compare lists pairs of policy names to compare.
	Compare [][2]string
	// Advise names a policy that all others are compared with, to say which does better, over all
	// sessions and in each corpus; "" for none.
	Advise string
	// Jobs is the number of sessions processed at a time.
	Jobs int
	// Samples is the number of measurable sessions whose kept texts are in the result.
	Samples int
	// State holds earlier measurements; may be nil.
	State *State
	// Progress, if set, is called concurrently with the weight of each completed session.
	Progress func(weight int64)
}

// Run measures all sessions. At most Jobs+1 sessions are in memory at a time, besides a number
// for each distinct identifier and word of all sessions and each use of one. The figures do not depend
// on the order of the sessions, on Jobs or on the state. After an error of ctx or of sessions, the state holds all completed measurements.
func Run(ctx context.Context, sessions iter.Seq2[Session, error], o Options) (*Result, error) {
	r := &runner{Options: o, corpus: retention.NewCorpus(), later: map[int][]func(context.Context) error{}, failures: map[string]error{}}
	for _, p := range r.Policies {
		if o.Advise != "" && p.Name != o.Advise {
			r.Compare = append(r.Compare, [2]string{p.Name, o.Advise})
		}
	}
	whole := ctx
	g, ctx := errgroup.WithContext(ctx)
	type job struct {
		index   int
		session Session
	}
	jobs := make(chan job)
	g.Go(func() error {
		defer close(jobs)
		n := 0
		for s, err := range sessions {
			if err != nil {
				return err
			}
			select {
			case jobs <- job{n, s}:
			case <-ctx.Done():
				return ctx.Err()
			}
			n++
		}
		return nil
	})
	for range max(1, o.Jobs) {
		g.Go(func() error {
			for j := range jobs {
				done, err := r.session(ctx, j.index, &j.session)
				if err != nil {
					return err
				}
				r.mu.Lock()
				r.done = append(r.done, done)
				r.mu.Unlock()
				if o.Progress != nil {
					o.Progress(j.session.Weight)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := r.texts(whole); err != nil {
		return nil, err
	}
	slices.SortFunc(r.done, func(a, b *measured) int { return a.index - b.index })
	result := r.results()
	return result, result.check()
}

// settings returns the settings at a cut, in the order of the results.
func (o *Options) settings(cut float64) []Setting {
	var out []Setting
	add := func(s Setting) {
		s.Cut, s.Rounds = cut, 1
		if out = append(out, s); o.Rounds > 1 {
			s.Rounds = o.Rounds
			out = append(out, s)
		}
	}
	for _, share := range o.Budgets {
		add(Setting{Budget: share})
	}
	for _, n := range o.TokenBudgets {
		add(Setting{BudgetTokens: n})
	}
	if o.OwnLimits {
		out = append(out, Setting{Cut: cut, Rounds: 1})
	}
	return out
}

// runner holds the state of a run.
type runner struct {
	Options
	corpus *retention.Corpus
	mu     sync.Mutex
	done   []*measured
	// sampled holds the lowest indexes of measurable sessions, at most Samples.
	sampled []int
	// later holds functions that produce texts of samples missing in the state. They run
	// at the end, when the sampled sessions are known.
	later map[int][]func(context.Context) error
	// failures maps names of policies to their first error.
	failures map[string]error
}

// measured holds the rows of one session: for each cut those of each setting and policy in
// their order. Cuts without measurable content and rows of failed policies
// are nil.
type measured struct {
	index int
	name  string
	hash  string
	// corpus is that of the session.
	corpus string
	// recorded holds a row for each summary found in the session.
	recorded []Row
	cuts     [][]*Row
	// needs and words hold the identifiers and the words to retain at each measured cut.
	needs, words [][]retention.ID
}

func (r *runner) session(ctx context.Context, index int, s *Session) (*measured, error) {
	var size retention.Sizer
	if r.Counter != nil {
		size.Counter = r.Counter(s.Model)
	}
	n := len(r.Cuts)
	m := &measured{index: index, name: s.Name, hash: s.hash(size), corpus: s.Corpus, cuts: make([][]*Row, n), needs: make([][]retention.ID, n), words: make([][]retention.ID, n)}
	r.corpus.Add(s.Messages)
	for _, x := range retention.RecordedSummaries(s.Messages) {
		m.recorded = append(m.recorded, newRow(x.Case, retention.Detail{Score: x.Score}, size.Total(x.Case.Pre), size.Message(x.Summary)))
	}
	for i, cut := range r.Cuts {
		c := retention.NewCase(s.Messages, cut, s.Facts...)
		if c == nil {
			continue
		}
		var err error
		if m.cuts[i], err = r.cut(ctx, index, s, size, m.hash, cut, c); err != nil {
			return nil, err
		}
		m.needs[i], m.words[i] = c.IDs()
	}
	return m, nil
}

// cut measures a session at one cut.
func (r *runner) cut(ctx context.Context, index int, s *Session, size retention.Sizer, hash string, cut float64, c *retention.Case) ([]*Row, error) {
	var rows []*Row
	for _, setting := range r.settings(cut) {
		for i := range r.Policies {
			p := &r.Policies[i]
			k := key(hash, setting, p)
			measure := func(ctx context.Context) (*Row, error) {
				row, err := r.row(ctx, index, s, size, c, p, setting)
				if err != nil {
					return nil, err
				}
				row.Key = k
				return row, r.State.put(*row)
			}
			if known, ok := r.State.get(k); ok {
				row := &known
				row.Session, row.Policy = s.Name, p.Name
				if row.Text == nil {
					r.remember(index, func(ctx context.Context) error {
						again, err := measure(ctx)
						if err == nil {
							row.Text = again.Text
						}
						return err
					})
				}
				rows = append(rows, row)
				continue
			}
			row, err := measure(ctx)
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case errors.Is(err, errState):
				return nil, err
			case err != nil:
				r.fail(p.Name, err)
			}
			rows = append(rows, row)
		}
	}
	r.wanted(index)
	return rows, nil
}

// remember schedules do for the end of the run while the session is a sample.
func (r *runner) remember(index int, do func(context.Context) error) {
	if !r.wanted(index) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, sampled := slices.BinarySearch(r.sampled, index); sampled {
		r.later[index] = append(r.later[index], do)
	}
}

// texts produces the missing texts of samples. A policy that fails here keeps its figures.
func (r *runner) texts(ctx context.Context) error {
	for _, index := range r.sampled {
		for _, do := range r.later[index] {
			if err := do(ctx); ctx.Err() != nil || errors.Is(err, errState) {
				return errors.Join(ctx.Err(), err)
			}
		}
	}
	return nil
}

func (r *runner) row(ctx context.Context, index int, s *Session, size retention.Sizer, c *retention.Case, p *Policy, setting Setting) (*Row, error) {
	before := size.Total(c.Pre)
	in := Input{Session: s.Name, Model: s.Model, Messages: c.Pre, Budget: setting.tokens(before), Size: size}
	keep := func(ctx context.Context, in Input) (Kept, error) { return p.keep(ctx, in, setting.Rounds) }
	if setting.own() {
		keep = p.Own
	}
	kept, err := keep(ctx, in)
	if err != nil {
		return nil, err
	}
	row := newRow(c, c.Detail(kept.Messages), before, size.Total(kept.Messages))
	row.Session, row.Setting, row.Policy, row.Usage = s.Name, setting, p.Name, kept.Usage
	if r.wanted(index) {
		row.Text = sample(kept.Messages)
	}
	return &row, nil
}

// wanted reports whether a measurable session is among the first Samples so far.
func (r *runner) wanted(index int) bool {
	if r.Samples == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at, found := slices.BinarySearch(r.sampled, index)
	if found {
		return true
	}
	if at >= r.Samples {
		return false
	}
	r.sampled = slices.Insert(r.sampled, at, index)
	if n := len(r.sampled) - 1; n == r.Samples {
		delete(r.later, r.sampled[n])
		r.sampled = r.sampled[:n]
	}
	return true
}

// fail records the first error of a policy.
func (r *runner) fail(policy string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures[policy] == nil {
		r.failures[policy] = err
	}
}

// ErrNothing is returned if no session could be measured.
var ErrNothing = errors.New("no session could be measured")

// check returns an error for a result without figures.
func (r *Result) check() error {
	if r.Sessions == 0 {
		return fmt.Errorf("%w: the input has no sessions", ErrNothing)
	}
	for _, c := range r.Cuts {
		if c.Sessions > 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: none of %d sessions uses an identifier after the cut that occurs before it, or has a fact", ErrNothing, r.Sessions)
}
