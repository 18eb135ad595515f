package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/builtin"
)

// roleCommand is a command like serve that runs.
type roleCommand struct {
	p    *plant
	url  string // of its listener
	stop context.CancelFunc
	done chan struct{} // closed when it has ended
	code int
}

// run starts a command of roles in the installation, with a free port for its listener. It
// ends with the test.
func (p *plant) run(dsn, redis config.Secret, args ...string) *roleCommand {
	p.t.Helper()
	return p.runIn([]string{"DATABASE_URL=" + dsn.Reveal(), "REDIS_URL=" + redis.Reveal()}, args...)
}

// runIn is run with the connections in an environment.
func (p *plant) runIn(environ []string, args ...string) *roleCommand {
	p.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(p.t.Context()))
	c := &roleCommand{p: p, stop: stop, done: make(chan struct{})}
	logs, lines := logPipe(p.t)
	address := make(chan string, 1)
	var reading sync.WaitGroup
	reading.Go(func() {
		for line := range lines {
			var l struct{ Msg, Address string }
			if json.Unmarshal([]byte(line), &l) == nil && l.Address != "" {
				address <- l.Address
			}
		}
	})
	args = append(args, "--log-format=json", "--metrics-listen=127.0.0.1:0", "--policy-debounce=0s", "--policy-min-gain-tokens=50",
		"--policy-start-tokens=600", "--policy-target-tokens=300", "--scheduler-leader-ttl=2s", "--wait-timeout=20s")
	go func() {
		defer close(c.done)
		c.code = Main(ctx, args, os.Stdout, logs, environ, builtin.Registry())
		_ = logs.Close()
		reading.Wait()
	}()
	p.t.Cleanup(func() {
		stop()
		<-c.done
		if c.code != 0 {
			p.t.Errorf("%v ended with %d", args, c.code)
		}
	})
	select {
	case a := <-address:
		c.url = "http://" + a
	case <-c.done:
		p.t.Fatalf("%v ended with %d", args, c.code)
	}
	return c
}

// get requests a path of the command's listener; the status is 0 without an answer.
func (c *roleCommand) get(path string) (status int, body string) {
	c.p.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	response, err := client.Get(c.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		c.p.t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

// metric returns the value of a metric, given with its labels as Prometheus has them. It is
// not ok if there is none.
func (c *roleCommand) metric(series string) (value float64, ok bool) {
	c.p.t.Helper()
	_, body := c.get("/metrics")
	found := regexp.MustCompile(`(?m)^compactor_` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(body)
	if found == nil {
		return 0, false
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		c.p.t.Fatal(err)
	}
	return value, true
}

func TestServeShowsWhatItHasDone(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	names := p.backlog(3)
	c := p.run(p.config.Database.URL, p.config.Redis.URL, "serve")
	p.written("written")
	p.await("the event run has ended", func() bool { return p.session("written").Revision == 1 })
	p.sweep()
	p.awaitRest()
	var before, after int64
	for _, name := range append(names, "written") {
		for _, r := range p.runs(name) {
			if r.Status == store.StatusApplied {
				before, after = before+r.TokensBefore, after+r.TokensAfter
			}
		}
	}
	// The ledger has a run before the process that wrote it counts it.
	sum := func(name string) (all float64) {
		for _, trigger := range []string{"nightly", "event"} {
			n, _ := c.metric(fmt.Sprintf(name, trigger))
			all += n
		}
		return all
	}
	p.await("all runs are counted", func() bool { return sum(`runs_total{outcome="applied",status="applied",trigger=%q}`) == 4 })
	if got := sum(`view_tokens_before_total{trigger=%q}`); got != float64(before) {
		t.Errorf("%v tokens before, the ledger has %d", got, before)
	}
	if got := sum(`view_tokens_after_total{trigger=%q}`); got != float64(after) || after == 0 {
		t.Errorf("%v tokens after, the ledger has %d", got, after)
	}
	for series, least := range map[string]float64{
		`run_seconds_count{result="applied"}`: 4, `run_plan_seconds_count`: 4, `run_gain_ratio_count`: 4, `event_seconds_count`: 1, `scheduler_leading`: 1,
		`database_seconds_count{kind="batch"}`: 4, `database_seconds_count{kind="query"}`: 1, `redis_seconds_count`: 4,
		`database_connections_max`: 20, `runs_enqueued_total{reason="event"}`: 1,
	} {
		if got, _ := c.metric(series); got < least {
			t.Errorf("%s %v, want %v or more", series, got, least)
		}
	}
	if n := sum(`run_queue_seconds_count{trigger=%q}`); n < 4 {
		t.Errorf("%v runs waited in the queue", n)
	}
	_, body := c.get("/metrics")
	for _, secret := range append(names, "written") {
		if strings.Contains(body, secret+`"`) {
			t.Errorf("session %s is named", secret)
		}
	}
}

func TestTheLeadingSchedulerShowsTheFleet(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.backlog(5)
	first := p.run(p.config.Database.URL, p.config.Redis.URL, "scheduler")
	p.await("the first leads", func() bool { n, _ := first.metric("scheduler_leading"); return n == 1 })
	second := p.run(p.config.Database.URL, p.config.Redis.URL, "scheduler")
	for series, want := range map[string]float64{
		`due_sessions{cause="size"}`: 5, `debt_tokens`: 5 * 700, `debt_tokens_smoothed`: 5 * 700, `tenant_debt_tokens{tenant="default"}`: 5 * 700, `outbox_sessions`: 0,
	} {
		if got, ok := first.metric(series); got != want || !ok {
			t.Errorf("%s %v (%t), want %v", series, got, ok, want)
		}
		if got, ok := second.metric(series); ok {
			t.Errorf("standing by, %s is %v", series, got)
		}
	}
	first.stop()
	<-first.done
	p.await("the second shows the fleet", func() bool { n, _ := second.metric("debt_tokens"); return n == 5*700 })
}

func TestReadinessFollowsTheServers(t *testing.T) {
	t.Parallel()
	server := newRedisServer(t)
	p := newPlantOn(t, "redis://"+server.addr+"/0")
	gate := newGate(t, p.config.Database.URL.Reveal())
	c := p.run(gate.dsn, p.config.Redis.URL, "serve", "--worker-drain-timeout=20s")
	state := func(want int, parts ...string) {
		t.Helper()
		what := fmt.Sprintf("/readyz is %d with %q", want, parts)
		p.await(what, func() bool {
			status, body := c.get("/readyz")
			for _, part := range parts {
				if !strings.Contains(body, part) {
					return false
				}
			}
			if strings.Contains(body, "postgres://") {
				t.Errorf("the body names the connection:\n%s", body)
			}
			return status == want
		})
		if status, _ := c.get("/healthz"); status != http.StatusOK {
			t.Errorf("/healthz is %d", status)
		}
	}
	// What a supervisor without a client of HTTP asks.
	health := func(code int, out string, args ...string) {
		t.Helper()
		invoke(t, nil, append([]string{"health", "--metrics-listen=" + strings.TrimPrefix(c.url, "http://")}, args...)...).want(t, code, out)
	}
	state(http.StatusServiceUnavailable, "starting")
	health(exitInternal, "status starting", "--ready")
	gate.open()
	state(http.StatusOK, `"ready"`, `"database"`, `"schema"`, `"redis"`)
	health(0, "alive")
	_, port, _ := strings.Cut(strings.TrimPrefix(c.url, "http://"), ":")
	health(0, "ready", "--ready", "--metrics-listen=0.0.0.0:"+port) // as the process was given it
	health(0, `"status": "ready"`, "--ready", "--json")
	gate.shut()
	state(http.StatusServiceUnavailable, `"not_ready"`, `"error": "database: `)
	gate.open()
	state(http.StatusOK)
	server.kill()
	state(http.StatusServiceUnavailable, "connection refused")
	health(0, "alive")
	health(exitInternal, "redis: ", "--ready")
	server.start()
	state(http.StatusOK)

	// A run holds up the end.
	release := p.hold(p.backlog(1)...)
	p.sweep()
	p.awaitBlocked(1)
	c.stop()
	state(http.StatusServiceUnavailable, "stopping")
	release()
	<-c.done
	if status, body := c.get("/readyz"); status != 0 {
		t.Errorf("after the end: %d %s", status, body)
	}
	health(exitInternal, "connection refused")
	health(exitUsage, "there is no listener", "--metrics-listen=off")
}

// The API answers from Postgres alone, and its requests must not go nowhere while Redis is away.
func TestTheAPIAloneIsReadyWithoutRedis(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	c := p.run(p.config.Database.URL, "redis://127.0.0.1:1", "api", "--api-listen=127.0.0.1:0")
	p.await("it is ready", func() bool {
		status, body := c.get("/readyz")
		return status == http.StatusOK && !strings.Contains(body, "redis")
	})
}

func TestABusyAddressIsToldAndEndsNothingUnlessConfigured(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	c := config.Default()
	c.Metrics.Listen = taken.Addr().String() // with the origin of a default
	logs := &logLines{}
	m, err := startMonitor(t.Context(), c, slog.New(logs))
	if err != nil || m.metrics != nil || !logs.has("no metrics and health checks") || !logs.has("in_use=true") {
		t.Errorf("%+v, %v, %v", m, err, logs.all())
	}
	if err := m.close(); err != nil {
		t.Error(err)
	}
	servers := []string{"DATABASE_URL=postgres://127.0.0.1:1/x", "REDIS_URL=redis://127.0.0.1:1"}
	invoke(t, servers, "worker", "--metrics-listen="+c.Metrics.Listen).
		want(t, exitUsage, "metrics.listen: "+c.Metrics.Listen+": another process uses this address")
	invoke(t, servers, "worker", "--metrics-listen=192.0.2.1:1").want(t, exitUsage, "metrics.listen: 192.0.2.1:1: ")
	invoke(t, servers, "worker", "--metrics-listen=:9464").want(t, exitUsage, "host:port, such as 127.0.0.1:9464")
}

func TestTheListenerCanBeTurnedOffOrOpened(t *testing.T) {
	t.Parallel()
	for listen, part := range map[string]string{"off": "", "0.0.0.0:0": "open to other machines", "127.0.0.1:0": "serving metrics"} {
		c, err := config.Load(config.LoadOptions{Flags: map[string]string{"metrics.listen": listen}, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		logs := &logLines{}
		m, err := startMonitor(t.Context(), c, slog.New(logs))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(logs.all(), "\n"); !strings.Contains(got, part) || part == "" && got != "" {
			t.Errorf("%s: %s", listen, got)
		}
		if err := m.close(); err != nil {
			t.Error(err)
		}
	}
}
