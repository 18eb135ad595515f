package backoff

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDelaysDoubleUpToTheirBound(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		b    Backoff
		want []time.Duration
	}{
		"doubled":            {Backoff{First: 100 * ms, Most: 5000 * ms}, []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 5000 * ms, 5000 * ms}},
		"bound below first":  {Backoff{First: 100 * ms, Most: 50 * ms}, []time.Duration{50 * ms, 50 * ms}},
		"nothing":            {Backoff{}, []time.Duration{0, 0}},
		"nothing up to most": {Backoff{Most: ms}, []time.Duration{0, 0}},
		"no overflow":        {Backoff{First: math.MaxInt64/2 + 2, Most: math.MaxInt64 - 1}, []time.Duration{math.MaxInt64/2 + 2, math.MaxInt64 - 1, math.MaxInt64 - 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []time.Duration
			for i := range c.want {
				got = append(got, c.b.Delay(i))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if got, want := c.b.Delay(math.MaxInt), c.want[len(c.want)-1]; got != want {
				t.Errorf("after very many attempts: %v, want %v", got, want)
			}
			if got := c.b.Delay(-1); got != c.want[0] {
				t.Errorf("before the first attempt: %v", got)
			}
		})
	}
}

// Full jitter: delays are anywhere between nothing and the bound, and differ
// between callers.
func TestJitter(t *testing.T) {
	t.Parallel()
	b := Backoff{First: time.Second, Most: 4 * time.Second, Jitter: true}
	for attempt, bound := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
		least, most, seen := bound, time.Duration(0), map[time.Duration]bool{}
		for range 500 {
			d := b.Delay(attempt)
			least, most, seen[d] = min(least, d), max(most, d), true
		}
		if least < 0 || least > bound/10 || most > bound || most < bound*9/10 || len(seen) < 400 {
			t.Errorf("attempt %d: between %s and %s, %d different, bound %s", attempt, least, most, len(seen), bound)
		}
	}
	if d := (Backoff{Jitter: true}).Delay(3); d != 0 {
		t.Errorf("%s without a bound", d)
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Wait(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if err := Wait(t.Context(), 0); err != nil {
			t.Error(err)
		}
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(reason) })
		began = time.Now()
		if err := Wait(ctx, time.Minute); !errors.Is(err, reason) || time.Since(began) != time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if err := Wait(ctx, 0); !errors.Is(err, reason) {
			t.Errorf("a context that is over: %v", err)
		}
	})
}

func TestAnOutageIsOneLineAtItsBeginAndOneAtItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		o := NewOutage(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})), "database")
		want := func(lines ...string) {
			t.Helper()
			if got := strings.TrimSpace(log.String()); got != strings.Join(lines, "\n") {
				t.Errorf("logged:\n%s\nwant:\n%s", got, strings.Join(lines, "\n"))
			}
			log.Reset()
		}
		const gone, back = `level=WARN msg="database unavailable, retrying" error=refused`, `level=INFO msg="database is back" away=`
		o.Succeeded()
		want()
		for range 50 { // connections drop while others are made
			o.Failed("refused")
			o.Failed("refused")
			<-time.After(20 * time.Millisecond)
			o.Succeeded()
			<-time.After(20 * time.Millisecond)
		}
		want(gone, back+"20ms")
		o.Failed("refused")
		<-time.After(3 * time.Second)
		o.Failed("refused")
		<-time.After(time.Hour)
		o.Failed("refused")
		o.Succeeded()
		want(gone, back+"1h0m3s")
		<-time.After(2 * time.Minute)
		o.Failed("refused")
		want(gone)
	})
}
