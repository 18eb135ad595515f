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
)

// Options say what is measured and how.
type Options struct {
	Cuts, Budgets []float64
	Policies      []Policy
	// Compare are pairs of names of policies.
	Compare [][2]string
	// Jobs is how many sessions are worked on at a time.
	Jobs int
	// Samples is of how many sessions the kept texts are in the result: the first
	// ones that could be measured.
	Samples int
	// State may be nil.
	State *State
	// Progress is told the weight of each session that is done; may be nil. It is
	// called concurrently.
	Progress func(weight int64)
}

// Run measures all sessions, of which no more than Jobs and one are in memory at a
// time, and rows of numbers of all the others. The figures depend on the sessions
// alone, not on their order, on Jobs, or on what the state knew. After an error,
// that of ctx or one that sessions yielded, what was measured is in the state.
func Run(ctx context.Context, sessions iter.Seq2[Session, error], o Options) (*Result, error) {
	r := &runner{Options: o, later: map[int][]func(context.Context) error{}, failures: map[string]error{}}
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
	result := r.result()
	return result, result.check()
}

// runner is a run under way.
type runner struct {
	Options
	mu   sync.Mutex
	done []*measured
	// sampled are the lowest places of sessions that could be measured, at most Samples.
	sampled []int
	// later are what is to do at the end for the texts of these that the state does not
	// hold: by then it is known which sessions they are.
	later map[int][]func(context.Context) error
	// failures are the first errors of policies, by name.
	failures map[string]error
}

// measured is one session: for each cut the rows of each budget and policy, in the
// order of the options. Cuts at which nothing could be measured are nil, and so are
// rows of a policy that failed.
type measured struct {
	index int
	name  string
	hash  string
	// recorded are the summaries that were found in the session.
	recorded []Row
	cuts     [][]*Row
}

func (r *runner) session(ctx context.Context, index int, s *Session) (*measured, error) {
	m := &measured{index: index, name: s.Name, hash: s.hash(), cuts: make([][]*Row, len(r.Cuts))}
	for _, x := range retention.RecordedSummaries(s.Messages) {
		m.recorded = append(m.recorded, newRow(x.Case, x.Score))
	}
	for i, cut := range r.Cuts {
		rows, err := r.cut(ctx, index, s, m.hash, cut)
		if err != nil {
			return nil, err
		}
		m.cuts[i] = rows
	}
	return m, nil
}

// cut measures a session at one cut.
func (r *runner) cut(ctx context.Context, index int, s *Session, hash string, cut float64) ([]*Row, error) {
	rows := make([]*Row, 0, len(r.Budgets)*len(r.Policies))
	newCase := sync.OnceValue(func() *retention.Case { return retention.NewCase(s.Messages, cut) })
	for _, budget := range r.Budgets {
		for i := range r.Policies {
			p := &r.Policies[i]
			k := key(hash, cut, budget, p)
			measure := func(ctx context.Context) (*Row, error) {
				row, err := r.row(ctx, index, s, newCase(), p, budget)
				if err != nil {
					return nil, err
				}
				row.Key, row.Cut = k, cut
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
			if newCase() == nil {
				return nil, nil
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

// remember has something done at the end if the session is a sample then.
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

// texts makes the texts of samples that are missing. A policy that fails now leaves
// its figures as they were.
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

func (r *runner) row(ctx context.Context, index int, s *Session, c *retention.Case, p *Policy, budget float64) (*Row, error) {
	kept, err := p.Keep(ctx, Input{Model: s.Model, Messages: c.Pre, Budget: budget * c.Tokens})
	if err != nil {
		return nil, err
	}
	row := newRow(c, c.Score(kept.Messages))
	row.Session, row.Budget, row.Policy, row.Usage = s.Name, budget, p.Name, kept.Usage
	if r.wanted(index) {
		row.Text = sample(kept.Messages)
	}
	return &row, nil
}

// wanted reports whether the session, which can be measured, is one of the samples,
// as far as is known: a lower one may take its place.
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

// fail takes down why a policy could not compact a session.
func (r *runner) fail(policy string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures[policy] == nil {
		r.failures[policy] = err
	}
}

// ErrNothing is the error for sessions of which none could be measured.
var ErrNothing = errors.New("no session could be measured")

// check is the error for a result without figures.
func (r *Result) check() error {
	if r.Sessions == 0 {
		return fmt.Errorf("%w: there is none", ErrNothing)
	}
	for _, c := range r.Cuts {
		if c.Sessions > 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: of %d sessions none uses an identifier behind the cut that stood before it", ErrNothing, r.Sessions)
}
