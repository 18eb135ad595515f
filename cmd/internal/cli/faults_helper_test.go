package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hibiken/asynq"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/worker/jobs"
)

// plant is an installation as serve wires it, on a database and a Redis of its
// own, with the intervals of a day shrunk to a test's.
type plant struct {
	t      *testing.T
	config config.Config
	// wrapRedis, if set, stands between the worker and its Redis.
	wrapRedis func(asynq.RedisConnOpt) asynq.RedisConnOpt

	db    *pgxpool.Pool // for the test's own statements
	store *store.Store
	queue redis.UniversalClient
	logs  *logLines
	sums  map[string]string // of the source messages a session began with
	seqs  map[string]chat.Seq
}

// Two pipelines, as runs take two ways: one that reads content is worth a claim,
// one that needs metadata alone is not.
var pipelines = map[string][]policy.Step{
	"a claimed run":   policy.Default().Pipeline,
	"a run unclaimed": {{Strategy: "truncation"}},
}

func newPlant(t *testing.T) *plant {
	t.Helper()
	return newPlantOn(t, storetest.RealRedis(t))
}

func newPlantOn(t *testing.T, redisURL string) *plant {
	t.Helper()
	return newPlantIn(t, redisURL, migratedDB(t), migrations.DefaultSchema)
}

// migratedDB returns the DSN of a database of the test's own.
func migratedDB(t *testing.T) string {
	t.Helper()
	return storetest.DB(t, "cli-"+migrations.Fingerprint(), func(ctx context.Context, dsn string) error {
		_, err := migrations.Up(ctx, dsn, migrations.DefaultSchema)
		return err
	})
}

// newPlantIn makes an installation in a migrated schema.
func newPlantIn(t *testing.T, redisURL, dsn, schema string) *plant {
	t.Helper()
	logging.Disable() // as run does
	c := config.Default()
	c.Database.URL, c.Database.Schema, c.Redis.URL = config.Secret(dsn), schema, config.Secret(redisURL)
	c.Policy.StartTokens, c.Policy.TargetTokens, c.Policy.MinGainTokens = 600, 300, 50
	c.Policy.Debounce = 0
	c.Worker.Concurrency = 4
	c.Worker.Lease, c.Worker.Heartbeat = 2*time.Second, 500*time.Millisecond
	c.Worker.CheckInterval, c.Worker.DrainTimeout = 10*time.Millisecond, 3*time.Second
	c.Scheduler.RelayInterval, c.Scheduler.RedeliverAfter = 10*time.Millisecond, time.Second
	c.Scheduler.LeaderTTL, c.Scheduler.ReconcileInterval = 2*time.Second, time.Second
	p := &plant{t: t, config: c, logs: &logLines{}, sums: map[string]string{}, seqs: map[string]chat.Seq{}}
	var err error
	if p.db, err = pgxpool.New(t.Context(), c.Database.URL.Reveal()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.db.Close)
	if p.store, err = store.Open(t.Context(), StoreConfig(c)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.store.Close)
	o, err := ParseRedis(c)
	if err != nil {
		t.Fatal(err)
	}
	p.queue = newRedis(o)
	t.Cleanup(func() { _ = p.queue.Close() })
	// New sessions get the policy's thresholds from the start.
	app, err := NewApp(t.Context(), c, slog.New(slog.DiscardHandler), AppOptions{Registry: builtin.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := app.Scheduler()
	if err == nil {
		err = s.SyncPolicy(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the system:\n%s", strings.Join(p.logs.all(), "\n"))
		}
	})
	return p
}

// role is a part of serve.
type role string

const (
	schedules role = "scheduler"
	works     role = "worker"
)

// start runs roles in one process's worth of wiring until the returned function
// is called, or the test ends.
func (p *plant) start(roles ...role) (stop func()) {
	p.t.Helper()
	return p.startWith(p.config, roles...)
}

func (p *plant) startWith(c config.Config, roles ...role) (stop func()) {
	p.t.Helper()
	app, err := NewApp(p.t.Context(), c, slog.New(p.logs), AppOptions{Registry: builtin.Registry(), Wait: 20 * time.Second})
	if err != nil {
		p.t.Fatal(err)
	}
	if p.wrapRedis != nil {
		app.Redis = p.wrapRedis(app.Redis)
	}
	var parts []Role
	if slices.Contains(roles, schedules) {
		r, err := app.SchedulerRole()
		if err != nil {
			p.t.Fatal(err)
		}
		parts = append(parts, r)
	}
	if slices.Contains(roles, works) {
		parts = append(parts, app.WorkerRole())
	}
	app.checkRedis(p.t.Context())
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- RunRoles(ctx, parts...) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			p.t.Errorf("%v ended: %v", roles, err)
		}
		if err := app.Close(); err != nil {
			p.t.Error(err)
		}
	})
	p.t.Cleanup(stop)
	return stop
}

// transcript is messages of 100 tokens each, one per letter: s u a for a role, c
// for an assistant's call, whose result t is.
func transcript(prefix, letters string) []store.NewMessage {
	var msgs []store.NewMessage
	for i, r := range letters {
		m := chat.Message{ID: fmt.Sprintf("%s-%d", prefix, i), Content: chat.TextContent(fmt.Sprintf("message %s %d", prefix, i))}
		switch r {
		case 's':
			m.Role = chat.RoleSystem
		case 'u':
			m.Role = chat.RoleUser
		case 'a':
			m.Role = chat.RoleAssistant
		case 'c':
			m.Role = chat.RoleAssistant
			m.ToolCalls = []chat.ToolCall{{ID: "call", Type: "function", Name: "look", Arguments: "{}"}}
		case 't':
			m.Role, m.ToolCallID = chat.RoleTool, "call"
		}
		msgs = append(msgs, store.NewMessage{Message: m, Tokens: 100, Counter: "test"})
	}
	return msgs
}

const overStart = "suauctauauaua"

// backlog imports n sessions that are due and returns their names. It
// enqueues no run.
func (p *plant) backlog(n int) []string {
	p.t.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("s%02d", i)
		p.remember(names[i], func(k store.Key, msgs []store.NewMessage) ([]chat.Seq, error) {
			seqs, _, err := p.store.Import(p.t.Context(), k, "", msgs)
			return seqs, err
		})
	}
	return names
}

// written appends a session that is due, as an application does.
func (p *plant) written(name string) {
	p.t.Helper()
	p.remember(name, func(k store.Key, msgs []store.NewMessage) ([]chat.Seq, error) {
		seqs, _, err := p.store.Append(p.t.Context(), k, "", msgs)
		return seqs, err
	})
}

func (p *plant) remember(name string, write func(store.Key, []store.NewMessage) ([]chat.Seq, error)) {
	p.t.Helper()
	msgs := transcript(name, overStart)
	seqs, err := write(store.Key{Session: name}, msgs)
	if err != nil {
		p.t.Fatal(err)
	}
	p.seqs[name] = slices.Max(seqs)
	p.sums[name] = p.sum(name)
}

func (p *plant) session(name string) store.SessionRow {
	p.t.Helper()
	row, err := p.store.Session(p.t.Context(), store.Key{Session: name})
	if err != nil {
		p.t.Fatal(err)
	}
	return row
}

func (p *plant) sum(name string) string {
	p.t.Helper()
	sum, _, err := p.store.Admin.Checksum(p.t.Context(), p.session(name).SID, p.seqs[name])
	if err != nil {
		p.t.Fatal(err)
	}
	return sum
}

// sweep starts a sweep, which the leading scheduler works off.
func (p *plant) sweep() {
	p.t.Helper()
	fired, err := p.store.Scheduler.FireTick(p.t.Context(), scheduler.EntryNightly, time.Now().Truncate(time.Second), "test")
	if err != nil || !fired {
		p.t.Fatalf("sweep started: %t, %v", fired, err)
	}
}

// runs returns the ledger of a session, oldest first.
func (p *plant) runs(name string) []store.RunRow {
	p.t.Helper()
	rows, err := p.store.Operator.Runs(p.t.Context(), store.RunFilter{Key: store.Key{Session: name}, Limit: 1000})
	if err != nil {
		p.t.Fatal(err)
	}
	slices.Reverse(rows)
	return rows
}

// hold keeps sessions locked, as a writer in a long transaction does: runs of
// theirs wait before they apply. It ends by the function returned.
func (p *plant) hold(names ...string) (release func()) {
	p.t.Helper()
	ctx := context.WithoutCancel(p.t.Context())
	tx, err := p.db.Begin(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `SELECT FROM compactor.sessions WHERE id = ANY($1) ORDER BY sid FOR NO KEY UPDATE`, names); err != nil {
		p.t.Fatal(err)
	}
	release = sync.OnceFunc(func() { _ = tx.Rollback(ctx) })
	p.t.Cleanup(release)
	return release
}

func (p *plant) installation() jobs.Installation {
	p.t.Helper()
	name, err := installation(p.t.Context(), p.config, p.store)
	if err != nil {
		p.t.Fatal(err)
	}
	return name
}

// keys returns the start of the keys of the queue of events in Redis.
func (p *plant) keys() string {
	p.t.Helper()
	return "asynq:{" + p.installation().QueueFor(store.TriggerEvent) + "}:"
}

// pending returns how many tasks wait in Redis.
func (p *plant) pending() (n int64) {
	p.t.Helper()
	for queue := range p.installation().Queues() {
		n += p.queue.LLen(p.t.Context(), "asynq:{"+queue+"}:pending").Val()
	}
	return n
}

// leaveInRedis writes a session whose run no worker takes until Redis has lost what it has.
func (p *plant) leaveInRedis(name string) {
	p.t.Helper()
	o, err := ParseRedis(p.config)
	if err != nil {
		p.t.Fatal(err)
	}
	inspector := asynq.NewInspector(o)
	defer func() { _ = inspector.Close() }()
	if err := inspector.PauseQueue(p.installation().QueueFor(store.TriggerEvent)); err != nil {
		p.t.Fatal(err)
	}
	p.written(name)
	p.await("its task waits in Redis", func() bool { return p.pending() > 0 })
}

// number returns the count that a query selects.
func (p *plant) number(query string, args ...any) (n int) {
	p.t.Helper()
	if err := p.db.QueryRow(p.t.Context(), query, args...).Scan(&n); err != nil {
		p.t.Fatal(err)
	}
	return n
}

// awaitBlocked waits until n statements wait for the lock of hold.
func (p *plant) awaitBlocked(n int) {
	p.t.Helper()
	p.await("runs are blocked", func() bool { return p.blocked() >= n })
}

func (p *plant) blocked() int {
	p.t.Helper()
	return p.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
}

// await tries until it is so.
func (p *plant) await(what string, so func() bool) {
	p.t.Helper()
	storetest.Await(p.t, what, so)
}

// pass lets time pass: outages have a length.
func (p *plant) pass(d time.Duration) { <-time.After(d) }

// awaitRest waits until nothing is due, queued or under way.
func (p *plant) awaitRest() {
	p.t.Helper()
	p.await("everything has ended", func() bool {
		return p.number(`SELECT (SELECT count(*) FROM compactor.sessions WHERE due) + (SELECT count(*) FROM compactor.outbox)
			+ (SELECT count(*) FROM compactor.sweeps WHERE ended_at IS NULL)
			+ (SELECT count(*) FROM compactor.runs WHERE status IN ('queued', 'running'))`) == 0
	})
}

// wantOneEffect checks that each session was compacted exactly once, and everything
// that must hold besides.
func (p *plant) wantOneEffect() {
	p.t.Helper()
	for name := range p.sums {
		row := p.session(name)
		applied := 0
		for _, r := range p.runs(name) {
			if r.Status == "applied" {
				applied++
			} else if r.Status != "skipped" {
				p.t.Errorf("session %s: run %d %s: %s %s", name, r.ID, r.Status, r.ErrorCode, r.Error)
			}
		}
		if row.Revision != 1 || applied != 1 || row.ContextTokens > 300 {
			p.t.Errorf("session %s: revision %d, %d runs applied, %d tokens: want one run with effect", name, row.Revision, applied, row.ContextTokens)
		}
	}
	p.wantSound()
}

// wantSound checks the invariants that hold after any fault.
func (p *plant) wantSound() {
	p.t.Helper()
	for name, sum := range p.sums {
		if got := p.sum(name); got != sum {
			p.t.Errorf("session %s: its source messages have changed: checksum %s, was %s", name, got, sum)
		}
		metas, err := p.store.Operator.ViewMetas(p.t.Context(), p.session(name).SID)
		if err != nil {
			p.t.Fatal(err)
		}
		if faults := chat.Check(metas); len(faults) > 0 {
			p.t.Errorf("session %s: the view is not valid: %v", name, faults)
		}
	}
	findings, err := p.store.Admin.Audit(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range findings {
		p.t.Errorf("broken: %s: %s", f.Check, f)
	}
}

// wantFewLogLines checks that an outage was told, and not over and over.
func (p *plant) wantFewLogLines(most int, parts ...string) {
	p.t.Helper()
	lines := p.logs.loud()
	p.t.Logf("%d lines of level warn and above", len(lines))
	if len(lines) > most {
		p.t.Errorf("%d lines of level warn and above, want at most %d", len(lines), most)
	}
	all := strings.Join(p.logs.all(), "\n")
	for _, part := range parts {
		if !strings.Contains(all, part) {
			p.t.Errorf("no line says %q", part)
		}
	}
}

// wantRun compares the relevant fields of a run's row.
func wantRun(t *testing.T, got store.RunRow, status, code string, failures, snoozes int) {
	t.Helper()
	type row struct {
		Status, Code      string
		Failures, Snoozes int
	}
	if diff := cmp.Diff(row{status, code, failures, snoozes}, row{got.Status, got.ErrorCode, got.Failures, got.Snoozes}); diff != "" {
		t.Errorf("run %d (-want +got):\n%s", got.ID, diff)
	}
}

// twice counts the sessions that were run a second time without a message in between.
const twice = `SELECT count(*) FROM (SELECT FROM compactor.runs GROUP BY sid, snapshot_seq HAVING count(*) FILTER (WHERE outcome <> 'paused') > 1) x`

// fleet imports n sessions that are due, each of a tenant of tenants in turn.
func (p *plant) fleet(n int, tenants ...string) {
	p.t.Helper()
	var msgs []json.RawMessage
	for _, m := range transcript("", overStart) {
		m.ID = ""
		raw, err := m.MarshalJSON()
		if err != nil {
			p.t.Fatal(err)
		}
		msgs = append(msgs, fmt.Appendf(nil, `%s,"token_count":100}`, raw[:len(raw)-1]))
	}
	raw, err := json.Marshal(msgs)
	if err != nil {
		p.t.Fatal(err)
	}
	const query = `
		WITH quiet AS MATERIALIZED (SELECT set_config('compactor.quiet', 'on', true))
		SELECT count(compactor.append(($2::text[])[1 + n % cardinality($2)], 'f' || n, $3)) FROM quiet, generate_series(1, $1) n`
	if n := p.number(query, n, tenants, string(raw)); n == 0 {
		p.t.Fatal("no session was made")
	}
}
