package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/web"
	"github.com/sessionstore/compactor/store"
)

// PagesOptions holds the sizes of the benchmark of the dashboard, with the tags of their flags.
type PagesOptions struct {
	Sessions int    `default:"100" help:"Sessions of the fleet, with as many runs in the last week."`
	Due      int    `default:"2000" help:"Sessions of these that are due; half of them are compacted by a sweep."`
	Messages int    `default:"5000" help:"Messages of the session whose page is read."`
	Reads    int    `default:"9" help:"How often each page is read."`
	Seed     uint64 `default:"1" help:"Seed of the sizes of sessions."`
}

// PagesResult holds the measurements of Pages.
type PagesResult struct {
	Pages []PageCost `json:"pages"`
}

// PageCost is the median time of the answer to a request of a page, and its size without compression.
type PageCost struct {
	Page   string  `json:"page"`
	Millis float64 `json:"ms"`
	Bytes  int     `json:"bytes"`
}

// bigSession is the session whose page is read.
const bigSession = "big"

// Pages measures the pages of the dashboard.
func Pages(ctx context.Context, env Env, o PagesOptions) (r PagesResult, err error) {
	s, closeAll, err := openFleet(ctx, env, o.Seed)
	if err != nil {
		return r, err
	}
	defer closeAll()
	due := min(o.Due, o.Sessions)
	if err := s.fillFleet(ctx, o.Sessions, due/2); err != nil {
		return r, err
	}
	if _, err := s.sweep(ctx); err != nil {
		return r, err
	}
	if err := s.fillFleet(ctx, due-due/2, due-due/2); err != nil {
		return r, err
	}
	run, err := s.fillPages(ctx, o)
	if err != nil {
		return r, err
	}
	c := config.Default()
	c.API.Listen, c.Database.URL, c.Database.Schema = "127.0.0.1:0", config.Secret(env.DatabaseURL), Schema
	server, err := api.Listen(ctx, api.Options{
		Config: c, Store: s.store, Planner: s.planner, Registry: s.planner.Registry, Logger: env.Logger,
		Pages: web.Pages(web.Options{SignOut: time.Hour}),
	})
	if err != nil {
		return r, err
	}
	serving, stop := context.WithCancel(ctx)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return server.Run(serving) })
	g.Go(func() error {
		defer stop()
		for _, page := range pages(run) {
			cost, err := readPage(ctx, "http://"+server.Address(), page, o.Reads)
			if err != nil {
				return err
			}
			r.Pages = append(r.Pages, cost)
		}
		return nil
	})
	return r, g.Wait()
}

// pages returns the addresses that are measured.
func pages(run store.RunID) []string {
	session := url.Values{"tenant": {store.DefaultTenant}, "id": {bigSession}}.Encode()
	return []string{
		"", "?hours=168", "?tenant=" + fleetTenant, "held-back", "sessions", "sessions?due=true", "sessions?tenant=" + fleetTenant,
		"sessions?q=s99", "sessions?quarantined=true", "find?q=big", "session?" + session, "compact?" + session, "runs", "runs?status=failed",
		"runs?tenant=" + fleetTenant, "decisions", fmt.Sprintf("run?run=%d", run), "sweeps", "sweep?sweep=1", "policies",
		"policy?policy=default", "limits", "bulk", "admin",
	}
}

// fillPages adds runs to the ledger, and a session with many messages that was compacted, whose run it returns.
func (s *system) fillPages(ctx context.Context, o PagesOptions) (run store.RunID, err error) {
	const ledger = `
		INSERT INTO runs (sid, trigger, status, outcome, queued_at, started_at, ended_at, tokens_before, tokens_after, messages_before, messages_after)
		SELECT s.sid, 'event', 'skipped', 'below_threshold', at, at, at, live_tokens, live_tokens, live_messages, live_messages
		FROM (SELECT sid, live_tokens, live_messages, now() - interval '7 days' * row_number() OVER (ORDER BY sid DESC) / $1::int AS at
			FROM sessions) s WHERE at < now() ORDER BY at`
	if _, err := s.db.pool.Exec(ctx, ledger, o.Sessions+1); err != nil {
		return 0, fmt.Errorf("fill: %w", err)
	}
	k := store.Key{Tenant: store.DefaultTenant, Session: bigSession}
	if _, _, err := s.store.Import(ctx, k, "job", session(o.Messages, 400, 100, true)); err != nil {
		return 0, err
	}
	err = s.work(ctx, func(ctx context.Context) error {
		if run, err = s.store.Request(ctx, k, store.TriggerOperator, "bench", store.Options{}); err != nil {
			return err
		}
		for {
			row, err := s.store.Run(ctx, run)
			if err != nil || row.Ended() {
				return err
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	if err != nil {
		return 0, err
	}
	if _, err := s.db.pool.Exec(ctx, `VACUUM (ANALYZE) runs`); err != nil { // as autovacuum has done in a ledger that grew in a week
		return 0, fmt.Errorf("fill: %w", err)
	}
	return run, s.db.vacuum(ctx)
}

// readPage reads a page some times.
func readPage(ctx context.Context, at, page string, times int) (PageCost, error) {
	cost := PageCost{Page: page}
	var took []float64
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	for range times {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+api.PagesPath+page, nil)
		if err != nil {
			return cost, err
		}
		begin := time.Now()
		resp, err := client.Do(req)
		if err != nil {
			return cost, err
		}
		raw, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close() // it was read
		if err != nil {
			return cost, err
		}
		if resp.StatusCode >= http.StatusInternalServerError {
			return cost, fmt.Errorf("page %s: %s", page, resp.Status)
		}
		took, cost.Bytes = append(took, millis(time.Since(begin))), len(raw)
	}
	slices.Sort(took)
	cost.Millis = took[len(took)/2]
	return cost, nil
}
