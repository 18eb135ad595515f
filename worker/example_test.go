package worker_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
	"github.com/sessionstore/compactor/worker"
	"github.com/sessionstore/compactor/worker/jobs"
)

// keepFirst is a strategy that excludes all but the first groups of a conversation.
type keepFirst struct{ groups int }

// newKeepFirst reads the parameter of the strategy.
func newKeepFirst(args *plan.Args) (plan.Strategy, error) {
	return keepFirst{groups: int(args.Int(plan.Int{Name: "groups", Default: 1, Doc: "groups to keep"}))}, nil
}

// Name implements plan.Strategy.
func (keepFirst) Name() string { return "keep_first" }

// Plan implements plan.Strategy.
func (s keepFirst) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	var out []chat.Seq
	for _, g := range t.Groups()[min(s.groups, len(t.Groups())):] {
		for _, e := range t.Entries[g.Start:g.End] {
			out = append(out, e.Seq)
		}
	}
	return chat.Plan{Exclude: []chat.Exclusion{{Reason: "not_first", Seqs: chat.RangesOf(out...)}}}, nil
}

// A worker with a strategy of its own executes a run that the application has requested.
// It prints the outcome and the messages left in the view: the first two and the newest,
// which no plan excludes. TestExample runs it with a fresh database.
func Example() {
	if err := compactOnce(); err != nil {
		log.Print(err)
	}
}

func compactOnce() error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	st, err := store.Open(ctx, store.Config{URL: os.Getenv("DATABASE_URL")})
	if err != nil {
		return err
	}
	defer st.Close()
	redis, err := jobs.ParseRedis(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}

	// The worker: the strategies, the policy that uses them, and the token counts.
	registry := builtin.Registry()
	if err := registry.Register("keep_first", "Excludes all but the first groups.", newKeepFirst); err != nil {
		return err
	}
	p := policy.Default()
	p.Pipeline = []policy.Step{{Strategy: "keep_first", Params: map[string]any{"groups": 2}}}
	p.StartTokens, p.TargetTokens, p.MinGainTokens = 200, 150, 1
	w := worker.New(st.Worker, &worker.Planner{
		Policy: p, Registry: registry, Window: tokens.Window,
		Counter: func(model string) plan.Counter { return tokens.ForModel(model) },
	}, worker.Config{})

	// The application: a conversation, and a run for it.
	key := store.Key{Session: "chat-1"}
	var msgs []store.NewMessage
	for i := range 6 {
		text := fmt.Sprintf("A message that is long enough to be compacted, number %d.", i+1)
		msgs = append(msgs, store.NewMessage{Message: chat.Message{ID: fmt.Sprintf("m%d", i+1), Role: chat.RoleUser, Content: chat.TextContent(text)}})
	}
	if _, _, err := st.Append(ctx, key, "gpt-4o", msgs); err != nil {
		return err
	}
	run, err := st.Request(ctx, key, store.TriggerApplication, "example", store.Options{})
	if err != nil {
		return err
	}
	name, err := st.Installation(ctx)
	if err != nil {
		return err
	}
	installation := jobs.Installation(name)
	queue := jobs.NewEnqueuer(redis, installation, worker.Default().JobTimeout)
	defer func() { _ = queue.Close() }()
	if err := queue.Enqueue(ctx, store.TriggerApplication, 1, run); err != nil {
		return err
	}

	// A service runs its worker until a signal; this one stops when the run has ended.
	go func() {
		defer stop()
		for backoff.Wait(ctx, 10*time.Millisecond) == nil {
			if row, err := st.Run(ctx, run); err != nil || row.EndedAt != nil {
				return
			}
		}
	}()
	if err := w.Run(ctx, redis, installation); err != nil {
		return err
	}
	row, err := st.Run(context.Background(), run)
	if err != nil {
		return err
	}
	fmt.Println(row.Outcome)
	view, _, err := st.View(context.Background(), key)
	for _, m := range view {
		fmt.Println(m.ID)
	}
	return err
}
