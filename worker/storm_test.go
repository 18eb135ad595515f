package worker

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/worker/jobs"
)

var stormTime = flag.Duration("storm", 0, "time that TestStorm writes, compacts and kills; 0 skips it")

// stormQuiet is the longest time after which all runs have to be ended, and a run that an
// operator waits for, with a wide margin for a busy machine.
const stormQuiet = 3 * time.Minute

const stormConfig = `
policy:
  start_tokens: 3000
  target_tokens: 1500
  min_gain_tokens: 50
  cooldown: 2s
  cron: "@every 1m"
  debounce: 100ms
  max_delay: 1s
  summary: {size: {min_tokens: 200}, cooldown: 1s, cooldown_no_model: 2s}
llm:
  models: [{name: m, base_url: %q, window_tokens: 32000, price_per_million: {input: 1, output: 2}}]
  deadline: {min: 5s, max: 10s} # one call that hangs does not hold a session for a minute
  retry: {base: 10ms, max: 100ms}
  cooldown: {transient: 1s, no_provider: 2s}
worker: {concurrency: 8, lease: 5s, heartbeat: 1s, drain_timeout: 5s}
scheduler: {redeliver_after: 5s, leader_ttl: 3s, reconcile_interval: 2s}
metrics: {listen: "off"}
log: {format: json}
`

// storm is two installations on one Redis and one database, each with two processes of the
// program that ships, with writers and operators of two tenants, while processes die.
type storm struct {
	t       *testing.T
	binary  string
	dsn     string
	redis   string
	folder  string
	counted stormCounts

	installations []*installation
}

// installation is one of them.
type installation struct {
	*storm
	schema string
	config string
	store  *store.Store  // of writers and operators
	pool   *pgxpool.Pool // of the checks
	serves []*serve

	mu       sync.Mutex // of sessions while the storm lasts
	sessions []*stormSession
	forks    []*stormFork
	logs     []*lockedBuffer // of all processes
}

// stormCounts counts what happened.
type stormCounts struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *stormCounts) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[what]++
}

func (c *stormCounts) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, k := range slices.Sorted(maps.Keys(c.n)) {
		out = append(out, fmt.Sprintf("%s %d", k, c.n[k]))
	}
	return strings.Join(out, ", ")
}

// TestStorm runs for the time of -storm, and a few minutes at most until all is quiet. What is
// left is compared with what was acknowledged, and with queries over the log and the ledger.
func TestStorm(t *testing.T) {
	if *stormTime == 0 {
		t.Skip("-storm 1m runs it")
	}
	s := newStorm(t)
	other := newOtherProgram(t, s.asynq())
	other.enqueue(foreignTasks, mail, nil, "default", "bulk")
	seed := rand.Uint64()
	t.Logf("seed %d; the times of processes are not repeated by it", seed)

	ctx, cancel := context.WithTimeout(t.Context(), *stormTime)
	defer cancel()
	var all sync.WaitGroup
	for i, in := range s.installations {
		for w := range stormWriters {
			mine := make([]*stormSession, stormSessions)
			for j := range mine {
				mine[j] = in.newSession()
			}
			all.Go(func() { in.write(ctx, rand.New(rand.NewPCG(seed, uint64(10*i+w))), mine) })
		}
		for w := range 2 {
			all.Go(func() { in.operate(ctx, rand.New(rand.NewPCG(seed, uint64(100+10*i+w)))) })
		}
		all.Go(func() { in.govern(ctx, rand.New(rand.NewPCG(seed, uint64(500+i)))) })
		all.Go(func() { in.kill(ctx, rand.New(rand.NewPCG(seed, uint64(1000+i)))) })
	}
	all.Wait()
	for _, in := range s.installations {
		in.lastWords()
	}
	for _, in := range s.installations {
		in.settle()
	}
	for _, in := range s.installations {
		in.stop()
		in.verify()
		in.rewind()
		in.query()
	}
	left := 0
	for _, queue := range []string{"default", "bulk"} {
		info := must(other.inspector.GetQueueInfo(queue))(t)
		left += info.Pending
	}
	if left != foreignTasks {
		t.Errorf("%d of %d tasks of another program are left", left, foreignTasks)
	}
	t.Log(&s.counted)
}

func newStorm(t *testing.T) *storm {
	t.Helper()
	s := &storm{t: t, dsn: database(t), redis: storetest.RealRedis(t), folder: t.TempDir(), counted: stormCounts{n: map[string]int{}}}
	s.binary = filepath.Join(s.folder, "compactor")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", s.binary, "../cmd/compactor").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	steps := []llmtest.Step{{Times: 12}}
	for _, b := range llmtest.Behaviours() {
		steps = append(steps, llmtest.Step{Behaviour: b, Delay: 500 * time.Millisecond}, llmtest.Step{Times: 3})
	}
	server := llmtest.Script{Steps: steps, Loop: true}.Server()
	url := must(server.Start())(t)
	t.Cleanup(func() { _ = server.Close() })
	config := filepath.Join(s.folder, "compactor.yaml")
	noError(t, os.WriteFile(config, fmt.Appendf(nil, stormConfig, url), 0o600))
	for _, schema := range []string{migrations.DefaultSchema, "second"} {
		must(migrations.UpPartitioned(t.Context(), s.dsn, schema, storetest.Partitions()))(t)
		in := &installation{storm: s, schema: schema, config: config}
		in.store = must(store.Open(t.Context(), store.Config{URL: s.dsn, Schema: schema, MaxConns: 8}))(t)
		t.Cleanup(in.store.Close)
		in.pool = must(pgxpool.New(t.Context(), s.dsn))(t)
		t.Cleanup(in.pool.Close)
		for i := range 2 {
			in.serves = append(in.serves, in.start(i))
		}
		t.Cleanup(in.stop)
		s.installations = append(s.installations, in)
	}
	return s
}

func (s *storm) asynq() asynq.RedisConnOpt {
	o, err := jobs.ParseRedis(s.redis)
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

func (s *storm) client() *redis.Client {
	o, err := redis.ParseURL(s.redis)
	if err != nil {
		s.t.Fatal(err)
	}
	return redis.NewClient(o)
}

// settle waits until no run is queued or running, and no session waits for one.
func (in *installation) settle() {
	in.t.Helper()
	query := in.q(`SELECT concat_ws(', ',
		(SELECT 'runs ' || string_agg(concat_ws(' ', id, status, attempts, failures, error_code), '; ') FROM @schema@.runs WHERE status IN ('queued', 'running')),
		(SELECT 'sessions in the outbox ' || string_agg(s.id, ' ') FROM @schema@.outbox o JOIN @schema@.sessions s USING (sid) WHERE s.due),
		(SELECT 'due sessions ' || string_agg(concat_ws(' ', id, cooldown_until), '; ') FROM @schema@.sessions WHERE due),
		(SELECT 'bulk recompactions ' || string_agg(id::text, ' ') FROM @schema@.bulk_operations WHERE kind = 'compact' AND status = 'open'),
		(SELECT 'policies' FROM @schema@.policy_refresh WHERE reached < wanted))`)
	begin, busy, said := time.Now(), "", 0
	for quiet := 0; quiet < 3; {
		noError(in.t, backoff.Wait(in.t.Context(), 200*time.Millisecond))
		if n := int(time.Since(begin) / (5 * time.Second)); n > said && busy != "" {
			said = n
			in.t.Logf("%s: after %v: %s", in.schema, time.Since(begin).Round(time.Second), busy)
			// A session whose summary failed waits for a time that doubles with each failure in a row, as the model goes on
			// failing: that time passes at once here.
			must(in.pool.Exec(in.t.Context(), in.q(`UPDATE @schema@.sessions SET cooldown_until = now() WHERE due AND cooldown_until > now() + interval '10 s'`)))(in.t)
			must(in.store.Scheduler.FireTick(in.t.Context(), "nightly", time.Now().UTC().Truncate(time.Second), "storm"))(in.t)
		}
		noError(in.t, in.pool.QueryRow(in.t.Context(), query).Scan(&busy))
		if quiet++; busy != "" {
			quiet = 0
		}
		if time.Since(begin) > stormQuiet {
			in.t.Fatalf("%s: not done %v after the last write: %s\n%s", in.schema, stormQuiet, busy, in.serves[0].tail()+in.serves[1].tail())
		}
	}
	in.t.Logf("%s: quiet after %v", in.schema, time.Since(begin).Round(time.Second))
}

//go:embed testdata/storm.sql
var stormChecks string

func (in *installation) q(sql string) string { return strings.ReplaceAll(sql, "@schema@", in.schema) }

// query asks the database by the checks of storm.sql.
func (in *installation) query() {
	in.t.Helper()
	for _, check := range strings.Split(stormChecks, "-- check: ")[1:] {
		name, sql, _ := strings.Cut(check, "\n")
		var n int64
		var sample *string
		if err := in.pool.QueryRow(in.t.Context(), in.q(sql)).Scan(&n, &sample); err != nil {
			in.t.Errorf("%s: %s: %v", in.schema, name, err)
		}
		if n > 0 {
			in.t.Errorf("%s: %q does not hold %d times, for example at %s", in.schema, name, n, *sample)
		}
	}
}

// verify compares what is stored with what was acknowledged, and the views with the rules of
// providers.
func (in *installation) verify() {
	in.t.Helper()
	ctx := in.t.Context()
	if _, err := in.store.Scheduler.LoseCalls(ctx, 1_000_000); err != nil { // the scheduler does it every ten minutes
		in.t.Fatal(err)
	}
	in.query()
	in.verifyErased()
	findings := must(in.store.Admin.Audit(ctx))(in.t)
	for _, f := range findings {
		in.t.Errorf("%s: doctor finds against %q: %s", in.schema, f.Check, f)
	}
	for _, s := range in.sessions {
		row := must(in.store.Session(ctx, s.key))(in.t)
		must(in.store.Admin.Restore(ctx, s.key))(in.t)
		stored := must(in.log(ctx, row.SID))(in.t)
		for seq, m := range stored {
			if done, asked := s.erased[s.said[seq].ID]; asked {
				if done && strings.Contains(words(m), s.owner) {
					in.t.Errorf("%s: %s #%d was erased and is %s", in.schema, s.key, seq, words(m))
				}
				continue
			}
			if said, ok := s.said[seq]; !ok || words(said) != words(m) {
				in.t.Errorf("%s: %s #%d is %s, %s was said", in.schema, s.key, seq, words(m), words(said))
			}
			in.counted.add("messages")
		}
		if len(stored) != len(s.said) {
			in.t.Errorf("%s: %s has %d messages, %d were acknowledged", in.schema, s.key, len(stored), len(s.said))
		}
		view := must(in.store.Operator.ViewMetas(ctx, row.SID))(in.t)
		if faults := chat.Check(view); len(faults) > 0 && s.lastUser > s.replaced {
			in.t.Errorf("%s: the view of %s is not valid: %v", in.schema, s.key, faults)
		}
		if user := s.lastUser; user > 0 && !slices.ContainsFunc(view, func(m chat.Meta) bool { return m.Seq == user }) {
			in.t.Errorf("%s: the last user message of %s, #%d, is not in the view", in.schema, s.key, user)
		}
	}
	in.verifyForks()
	rows := must(in.store.Operator.Runs(ctx, store.RunFilter{Limit: 1_000_000}))(in.t)
	for _, r := range rows {
		in.counted.add("runs " + r.Outcome)
		switch {
		case r.Status != "failed" || r.Outcome == "superseded":
		case r.Failures >= store.MaxFailures: // each of its workers died, or lost the database
			in.counted.add("runs given up after the last attempt")
		default:
			in.t.Errorf("%s: run %d failed: %s %s", in.schema, r.ID, r.ErrorCode, r.Error)
		}
		if r.Attempts > 1 {
			in.counted.add("runs taken over or repeated")
		}
	}
}

// log returns the messages of a session that were said, as they are stored.
func (in *installation) log(ctx context.Context, sid int64) (map[chat.Seq]chat.Message, error) {
	rows, err := in.pool.Query(ctx, in.q(`SELECT seq, body FROM @schema@.message_log JOIN @schema@.message_body USING (sid, seq) WHERE sid = $1 AND kind = 'm'`), sid)
	if err != nil {
		return nil, err
	}
	out := map[chat.Seq]chat.Message{}
	var seq chat.Seq
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&seq, &body}, func() error {
		var m chat.Message
		err := json.Unmarshal(body, &m)
		out[seq] = m
		return err
	})
	return out, err
}

// rewind undoes all runs of all sessions: the views hold what was said, and nothing else (I1), but
// for what no provider takes: an undo repairs such a view by a run of its own.
func (in *installation) rewind() {
	in.t.Helper()
	ctx := in.t.Context()
	for _, s := range in.sessions {
		for {
			runs := must(in.store.Operator.Runs(ctx, store.RunFilter{Key: s.key, Status: "applied", Limit: 1_000_000}))(in.t)
			runs = slices.DeleteFunc(runs, func(r store.RunRow) bool { return !r.InForce || r.Kind == "undo" || r.Kind == "erase" || atOnce(r) })
			if len(runs) == 0 {
				break
			}
			must(in.store.Undo(ctx, s.key, runs[len(runs)-1].ID, true, "storm"))(in.t)
		}
		all := must(in.store.All(ctx, s.key))(in.t)
		repaired := map[chat.Seq]bool{}
		for _, m := range all {
			repaired[m.Seq] = slices.Contains(repairReasons, m.ExcludeReason)
		}
		// Reasoning that was written on another view stays out of this one (I15).
		got, want := map[chat.Seq]string{}, map[chat.Seq]string{}
		for _, m := range all {
			if _, asked := s.erased[m.ID]; !asked && m.Included {
				got[m.Seq] = words(m.WithoutReasoning())
			}
		}
		for seq, m := range s.said {
			if _, asked := s.erased[m.ID]; !asked && !repaired[seq] {
				want[seq] = words(m.WithoutReasoning())
			}
		}
		if !maps.Equal(got, want) {
			in.t.Errorf("%s: with all runs of %s undone the view has %d messages, %d can be in it", in.schema, s.key, len(got), len(want))
		}
	}
}
