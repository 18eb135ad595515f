package redislimit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/strategies/llm/redislimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func connect(t *testing.T, server *miniredis.Miniredis) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// The script is the same law as llm.Bucket, for both limits at once.
func TestScriptIsTheBucket(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	limiter := redislimit.Patient(connect(t, server), slog.New(slog.DiscardHandler))
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		limits := [2]int{rapid.IntRange(0, 50).Draw(rt, "requests"), rapid.IntRange(0, 3000).Draw(rt, "tokens")}
		now := began
		full := [2]int64{now.UnixMicro() - 60e6, now.UnixMicro() - 60e6}
		for i := range rapid.IntRange(1, 25).Draw(rt, "calls") {
			now = now.Add(time.Duration(rapid.IntRange(0, 30_000_000).Draw(rt, "pause")) * time.Microsecond)
			server.SetTime(now)
			take := llm.Take{
				Key: fmt.Sprint(run), RequestsPerMinute: limits[0], TokensPerMinute: limits[1],
				Tokens: rapid.IntRange(0, 4000).Draw(rt, "n"), MaxWait: time.Duration(rapid.IntRange(0, 120).Draw(rt, "most")) * time.Second,
			}
			units := [2]int{1, take.Tokens}
			start := now.UnixMicro()
			for i, limit := range limits {
				if limit > 0 {
					start = max(start, llm.NewBucket(limit).Start(now.UnixMicro(), full[i], units[i]))
				}
			}
			want := time.Duration(start-now.UnixMicro()) * time.Microsecond
			if want <= take.MaxWait {
				for i, limit := range limits {
					if limit > 0 {
						full[i] = llm.NewBucket(limit).Full(start, full[i], units[i])
					}
				}
			}
			got, err := limiter.Reserve(t.Context(), take)
			if err != nil || got != want {
				rt.Fatalf("call %d: wait %s, error %v, want %s", i, got, err, want)
			}
		}
	})
}

// Several workers, each with many calls at a time and the clock running: in no minute
// more than the limits begins, and nearly all of the limits is used.
func TestWorkersShareTheLimits(t *testing.T) {
	t.Parallel()
	const requests, tokens, workers = 30, 9000, 4
	server := miniredis.RunT(t)
	var clock sync.RWMutex // a call knows its time
	now := began
	server.SetTime(now)
	type call struct {
		at     time.Time
		tokens int
	}
	var mu sync.Mutex
	var calls []call
	var wg sync.WaitGroup
	for range workers {
		limiter := redislimit.Patient(connect(t, server), slog.New(slog.DiscardHandler))
		for range 5 {
			wg.Go(func() {
				for range 60 {
					n := 1 + rand.IntN(600)
					clock.RLock()
					wait, err := limiter.Reserve(t.Context(), llm.Take{Key: "m", RequestsPerMinute: requests, TokensPerMinute: tokens, Tokens: n, MaxWait: 40 * time.Second})
					at := now.Add(wait)
					clock.RUnlock()
					if err != nil {
						t.Error(err)
						return
					}
					if wait <= 40*time.Second {
						mu.Lock()
						calls = append(calls, call{at, n})
						mu.Unlock()
						continue
					}
					clock.Lock()
					now = now.Add(time.Second)
					server.SetTime(now)
					clock.Unlock()
				}
			})
		}
	}
	wg.Wait()
	slices.SortFunc(calls, func(a, b call) int { return a.at.Compare(b.at) })
	if len(calls) < 60 {
		t.Fatalf("only %d calls", len(calls))
	}
	for i, first := range calls {
		n, sum := 0, 0
		for _, c := range calls[i:] {
			if c.at.Sub(first.at) >= time.Minute {
				break
			}
			n, sum = n+1, sum+c.tokens
		}
		if n > requests || sum > tokens {
			t.Fatalf("the minute from call %d on: %d requests, %d tokens", i, n, sum)
		}
	}
	took := calls[len(calls)-1].at.Sub(calls[0].at).Minutes()
	if rate := float64(len(calls)) / took; rate < 0.7*requests {
		t.Errorf("%.1f calls a minute of %d", rate, requests)
	}
}

func TestOnARealServer(t *testing.T) {
	t.Parallel()
	options, err := redis.ParseURL(storetest.RealRedis(t))
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	var log bytes.Buffer
	limiter := redislimit.Patient(client, slog.New(slog.NewTextHandler(&log, nil)))
	take := llm.Take{Key: "k", RequestsPerMinute: 1, TokensPerMinute: 1000, Tokens: 200, MaxWait: time.Minute}
	for i, want := range []time.Duration{0, time.Minute, 2 * time.Minute, 2 * time.Minute} { // the last two are not taken
		wait, err := limiter.Reserve(t.Context(), take)
		if err != nil || wait > want || wait < want-20*time.Second {
			t.Errorf("call %d: wait %s, error %v, want %s", i, wait, err, want)
		}
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
}

func TestStateEndsByItself(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	server.SetTime(began)
	limiter := redislimit.Patient(connect(t, server), slog.New(slog.DiscardHandler))
	if _, err := limiter.Reserve(t.Context(), llm.Take{Key: "k", RequestsPerMinute: 10, TokensPerMinute: 100, Tokens: 50}); err != nil {
		t.Fatal(err)
	}
	keys := server.Keys()
	if want := []string{"compactor:llm:{k}:requests", "compactor:llm:{k}:tokens"}; !slices.Equal(keys, want) {
		t.Fatalf("keys %q", keys)
	}
	for _, k := range keys {
		if ttl := server.TTL(k); ttl < time.Minute || ttl > 2*time.Minute {
			t.Errorf("%s lives for %s", k, ttl)
		}
	}
	server.FastForward(2 * time.Minute)
	if left := server.Keys(); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}

func TestScriptIsLoadedOnceAndAgainWhenFlushed(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	server.SetTime(began)
	client := connect(t, server)
	limiter := redislimit.Patient(client, slog.New(slog.DiscardHandler))
	take := llm.Take{Key: "k", RequestsPerMinute: 1, MaxWait: time.Second}
	for i, want := range []time.Duration{0, time.Minute, time.Minute} {
		if i == 2 {
			if err := client.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if wait, err := limiter.Reserve(t.Context(), take); err != nil || wait != want {
			t.Errorf("wait %s, error %v, want %s", wait, err, want)
		}
	}
}

func TestRedisGoesAway(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	server := miniredis.RunT(t)
	limiter := redislimit.New(connect(t, server), slog.New(slog.NewTextHandler(&log, nil)))
	server.Close()
	take := llm.Take{Key: "k", RequestsPerMinute: 5, MaxWait: time.Second}
	waits := map[bool]int{}
	for range 5 {
		wait, err := limiter.Reserve(t.Context(), take)
		if err != nil {
			t.Fatal(err)
		}
		waits[wait > take.MaxWait]++
	}
	if waits[false] != 1 || waits[true] != 4 { // a burst of one, one each minute after it
		t.Errorf("waits %v: the limit does not hold for this process", waits)
	}
	if n := strings.Count(log.String(), "unavailable"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
}

// scripter is a Redis that can be away, on the clock of a bubble.
type scripter struct {
	redis.Scripter

	away  bool
	asked int
}

func (s *scripter) EvalSha(ctx context.Context, _ string, _ []string, _ ...any) *redis.Cmd {
	s.asked++
	cmd := redis.NewCmd(ctx)
	if s.away {
		cmd.SetErr(errors.New("connection refused"))
	} else {
		cmd.SetVal("0")
	}
	return cmd
}

func TestRedisComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		server := &scripter{away: true}
		limiter := redislimit.New(server, slog.New(slog.NewTextHandler(&log, nil)))
		ask := func(asked int) {
			t.Helper()
			if _, err := limiter.Reserve(t.Context(), llm.Take{Key: "k", RequestsPerMinute: 1000}); err != nil {
				t.Fatal(err)
			}
			if server.asked != asked {
				t.Errorf("asked %d times, want %d", server.asked, asked)
			}
		}
		ask(1)
		ask(1) // it is left alone for a while
		<-time.After(6 * time.Second)
		ask(2)
		server.away = false
		ask(2)
		<-time.After(6 * time.Second)
		ask(3)
		ask(4)
		if got := log.String(); strings.Count(got, "unavailable") != 1 || strings.Count(got, "is back") != 1 {
			t.Error(got)
		}
		// A caller that gives up says nothing about Redis.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		server.away = true
		if _, err := limiter.Reserve(ctx, llm.Take{Key: "k", RequestsPerMinute: 1}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		server.away = false
		ask(6)
		if strings.Count(log.String(), "unavailable") != 1 {
			t.Error(log.String())
		}
	})
}

// Two clients, as of two workers, share one limit: a call of one makes a call of the other
// wait or fail.
func TestClientsShareTheLimits(t *testing.T) {
	t.Parallel()
	redisServer, models := miniredis.RunT(t), llmtest.New()
	url, err := models.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer models.Close()
	client := func(rpm int) *llm.Client {
		c := llm.Default()
		c.Models = []llm.Profile{{Name: "m", BaseURL: url, Window: 10_000, RequestsPerMinute: rpm}}
		c.Retry.Wait = time.Millisecond
		c.Cooldown.Transient = -1
		out, err := llm.New(c, llm.Deps{Limiter: redislimit.New(connect(t, redisServer), slog.New(slog.DiscardHandler))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(out.Close)
		return out
	}
	asked := 0
	for i, c := range []*llm.Client{client(2), client(2), client(2)} {
		_, err := c.Complete(t.Context(), llm.Call{System: "Sum it up.", User: "Well.", MaxTokens: 100})
		failed, refused := errors.AsType[*llm.Error](err)
		if refused && failed.Class != llm.RateLimited || !refused && err != nil {
			t.Errorf("client %d: %v", i, err)
		}
		if !refused {
			asked++
		}
	}
	if asked != 1 || models.Calls() != 1 {
		t.Errorf("%d clients asked, %d requests came, want one", asked, models.Calls())
	}
}
