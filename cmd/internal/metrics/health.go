package metrics

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Check is a condition of readiness.
type Check struct {
	Name string
	// Run returns why the condition does not hold. Its text must hold no secrets.
	Run func(ctx context.Context) error
}

const (
	// checkTimeout bounds the checks.
	checkTimeout = 2 * time.Second
	// checkAge is how long results are used again, so that frequent probes cost nothing.
	checkAge = time.Second
)

// Health reports whether a process is ready for work. It is starting until Start, and no
// longer ready after Stop. Safe for concurrent use.
type Health struct {
	mu     sync.Mutex // of state and checks
	state  string
	checks []Check

	reading sync.Mutex // of last and at
	last    readiness
	at      time.Time
}

// The values of readiness.Status.
const (
	starting = "starting"
	ready    = "ready"
	notReady = "not_ready"
	stopping = "stopping"
)

// readiness is the body of /readyz.
type readiness struct {
	Status string        `json:"status"`
	Checks []checkResult `json:"checks,omitempty"`
}

type checkResult struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

// Start ends the start of the process: from now on it is ready if all checks pass.
func (h *Health) Start(checks ...Check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != stopping {
		h.state, h.checks = ready, checks
	}
}

// Stop reports that the process takes no more work.
func (h *Health) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state = stopping
}

// read returns the state of the process.
func (h *Health) read(ctx context.Context) readiness {
	h.mu.Lock()
	state, checks := h.state, h.checks
	h.mu.Unlock()
	if state != ready {
		return readiness{Status: cmp.Or(state, starting)}
	}
	return h.check(ctx, checks)
}

// check runs the checks, one caller at a time.
func (h *Health) check(ctx context.Context, checks []Check) readiness {
	h.reading.Lock()
	defer h.reading.Unlock()
	if time.Since(h.at) < checkAge {
		return h.last
	}
	// A caller that goes away does not decide the answer to others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	r := readiness{Status: ready, Checks: make([]checkResult, len(checks))}
	var running sync.WaitGroup
	for i, c := range checks {
		running.Go(func() {
			r.Checks[i] = checkResult{Name: c.Name, OK: true}
			if err := c.Run(ctx); err != nil {
				r.Checks[i].OK, r.Checks[i].Error = false, err.Error()
			}
		})
	}
	running.Wait()
	if slices.ContainsFunc(r.Checks, func(c checkResult) bool { return !c.OK }) {
		r.Status = notReady
	}
	h.last, h.at = r, time.Now()
	return r
}

// ServeHTTP implements http.Handler: 200 with the checks if the process is ready,
// otherwise 503.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	state := h.read(r.Context())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if state.Status != ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	_ = out.Encode(state) // the client has gone
}
