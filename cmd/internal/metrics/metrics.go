// Package metrics holds the metrics of a process, and serves them and its health over HTTP:
// /metrics for Prometheus, /healthz and /readyz for supervisors.
//
// It alone imports the Prometheus client. The worker, the scheduler and the store know
// interfaces of their own, which a Metrics implements. deploy/metrics.md lists all metrics;
// a test compares it with this package.
package metrics

import (
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/worker"
)

// Metrics holds the metrics of a process, in a registry of its own. It implements
// worker.Observer and scheduler.Observer. Safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	register prometheus.Registerer // adds the name of the database, if there are several
	catalog  []Entry

	runs, tokensBefore, tokensAfter *prometheus.CounterVec
	gain                            prometheus.Histogram
	runSeconds, queueSeconds        *prometheus.HistogramVec
	planSeconds, eventSeconds       prometheus.Histogram
	unfinished                      *prometheus.CounterVec

	modelCalls, modelRequests, modelTokens, modelCost *prometheus.CounterVec
	modelSeconds                                      *prometheus.HistogramVec
	rejected                                          *prometheus.CounterVec

	leading prometheus.Gauge
	taken   *prometheus.CounterVec

	archived, purged prometheus.Counter
	archivedBytes    *prometheus.CounterVec
	disk, diskBudget *prometheus.GaugeVec

	databaseSeconds *prometheus.HistogramVec
	databaseErrors  *prometheus.CounterVec
	redisSeconds    prometheus.Histogram
	redisErrors     *prometheus.CounterVec

	requests       *prometheus.CounterVec
	requestSeconds *prometheus.HistogramVec

	// leads reports whether this process is the leading scheduler.
	leads atomic.Bool

	triggers, codes, models, entries names
}

var (
	_ worker.Observer    = (*Metrics)(nil)
	_ scheduler.Observer = (*Metrics)(nil)
)

// Buckets of histograms. Runs take from less than a millisecond to half an hour with a
// model; a run may wait for hours.
var (
	shortSeconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	longSeconds  = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
	waitSeconds  = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 28800}
	shares       = []float64{.05, .1, .2, .3, .4, .5, .6, .7, .8, .9}
)

// New returns the metrics of a process of a version of the program.
func New(version, revision string) *Metrics { return NewFleet(version, revision, []string{""})[0] }

// NewFleet is New for a process with several databases: one Metrics for each, in one registry.
// The names become the label database, unless they are empty.
func NewFleet(version, revision string, databases []string) []*Metrics {
	process := &Metrics{registry: prometheus.NewRegistry()}
	process.register = process.registry
	process.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	process.gauges("build_info", "Always 1; the labels describe the binary.", "version", "revision", "go_version").
		WithLabelValues(version, revision, runtime.Version()).Set(1)
	out := make([]*Metrics, len(databases))
	for i, name := range databases {
		register := process.register
		if name != "" {
			register = prometheus.WrapRegistererWith(prometheus.Labels{"database": name}, register)
		}
		out[i] = newMetrics(process, register)
	}
	return out
}

// newMetrics returns the metrics of a database in the registry of a process.
func newMetrics(process *Metrics, register prometheus.Registerer) *Metrics {
	m := &Metrics{registry: process.registry, register: register, catalog: slices.Clone(process.catalog)}
	m.runs = m.counters("runs_total",
		"Runs that ended in this process, by trigger, status (applied, skipped, failed) and outcome.", "trigger", "status", "outcome")
	m.tokensBefore = m.counters("view_tokens_before_total", "Tokens of the views that runs were applied to, before.", "trigger")
	m.tokensAfter = m.counters("view_tokens_after_total", "Tokens of the views that runs were applied to, after.", "trigger")
	m.gain = m.histogram("run_gain_ratio", "Share of its view's tokens that an applied run saved.", shares)
	m.runSeconds = m.histograms("run_seconds",
		"Duration of attempts at runs, by result (applied, skipped, failed, retried, postponed, lost).", longSeconds, "result")
	m.planSeconds = m.histogram("run_plan_seconds", "Time from the start of an attempt to its plan, calls of models included.", longSeconds)
	m.queueSeconds = m.histograms("run_queue_seconds", "Time from the request for a run to its first attempt.", waitSeconds, "trigger")
	m.eventSeconds = m.histogram("event_seconds",
		"Time from the write that made a session due to the commit of the run that was applied for it, debounce included.", waitSeconds)
	m.unfinished = m.counters("runs_unfinished_total",
		"Attempts after which a run goes on: retried after a failure, postponed, or lost to another worker, by the code of the reason.", "result", "code")

	m.modelCalls = m.counters("model_calls_total",
		"Calls of models for summaries; code is answered or that of the failure.", "model", "code")
	m.modelRequests = m.counters("model_requests_total", "HTTP requests of these calls.", "model")
	m.modelTokens = m.counters("model_tokens_total", "Tokens of these calls; input includes cached.", "model", "kind")
	m.modelCost = m.counters("model_cost_total", "Cost of these calls, in the unit of the configured prices.", "model")
	m.modelSeconds = m.histograms("model_call_seconds", "Duration of answered calls, attempts and waits included.", longSeconds, "model")
	m.rejected = m.counters("summaries_rejected_total", "Answers that were no valid summary, by the code of the check.", "code")

	m.leading = m.gauges("scheduler_leading", "1 while this process is the leading scheduler, otherwise 0.").WithLabelValues()
	m.taken = m.counters("runs_enqueued_total",
		"Runs that the leading scheduler took from Postgres to enqueue them: sweep, bulk, event, "+
			"delivery (requested in SQL, postponed, retried, lost), orphaned, forgotten.", "reason")
	m.archived = m.counters("archived_messages_total",
		"Messages whose words the leading scheduler has moved to the archive.").WithLabelValues()
	m.archivedBytes = m.counters("archived_bytes_total",
		"Their size: stored, of their rows, and archived, of the segments they became.", "as")
	m.purged = m.counters("purged_segments_total",
		"Segments of the archive whose words are gone, as policies say (retention.purge_after).").WithLabelValues()
	m.disk = m.gauges("disk_bytes",
		"Size of the tables on the disk, with indexes, as the leading scheduler measures it every ten minutes "+
			"for scheduler.disk_budget: used, and freed by it for other words.", "of")
	m.diskBudget = m.gauges("disk_budget_bytes", "That budget; not there without one.")

	m.databaseSeconds = m.histograms("database_seconds", "Round trips to Postgres, by kind: query, batch, connect.", shortSeconds, "kind")
	m.databaseErrors = m.counters("database_errors_total",
		"Round trips to Postgres that failed, by code: unavailable, busy, timeout, not_migrated, forbidden, refused, other.", "code")
	m.redisSeconds = m.histogram("redis_seconds", "Round trips to Redis.", shortSeconds)
	m.redisErrors = m.counters("redis_errors_total", "Round trips to Redis that failed, by code: unavailable, timeout, refused.", "code")
	m.requests = m.counters("http_requests_total", "Requests to the HTTP API, by the pattern of the route and the status.", "route", "status")
	m.requestSeconds = m.histograms("http_request_seconds", "Duration of requests to the HTTP API; streams of events until their end.", shortSeconds, "route")
	return m
}

// Attempted implements worker.Observer.
func (m *Metrics) Attempted(a worker.Attempt) {
	trigger := m.triggers.label(a.Trigger)
	code := m.codes.label(a.Code)
	switch a.Result {
	case store.StatusApplied:
		m.tokensBefore.WithLabelValues(trigger).Add(float64(a.TokensBefore))
		m.tokensAfter.WithLabelValues(trigger).Add(float64(a.TokensAfter))
		if a.TokensBefore > 0 {
			m.gain.Observe(float64(a.TokensBefore-a.TokensAfter) / float64(a.TokensBefore))
		}
		if a.SinceWrite > 0 {
			m.eventSeconds.Observe(a.SinceWrite.Seconds())
		}
		fallthrough
	case store.StatusSkipped, store.StatusFailed:
		m.runs.WithLabelValues(trigger, a.Result, code).Inc()
	default:
		m.unfinished.WithLabelValues(a.Result, code).Inc()
	}
	if a.Took == 0 {
		return // the run was not loaded
	}
	m.runSeconds.WithLabelValues(a.Result).Observe(a.Took.Seconds())
	if a.Planned > 0 {
		m.planSeconds.Observe(a.Planned.Seconds())
	}
	if a.First {
		m.queueSeconds.WithLabelValues(trigger).Observe(max(0, a.Waited.Seconds())) // of two clocks
	}
}

// Called implements worker.Observer.
func (m *Metrics) Called(c worker.ModelCall) {
	model := m.models.label(c.Model)
	code := "answered"
	if c.Code != "" {
		code = m.codes.label(c.Code)
	} else {
		m.modelSeconds.WithLabelValues(model).Observe(c.Took.Seconds())
	}
	m.modelCalls.WithLabelValues(model, code).Inc()
	m.modelRequests.WithLabelValues(model).Add(float64(c.Requests))
	m.modelCost.WithLabelValues(model).Add(float64(c.CostMicros) / 1e6)
	for kind, n := range map[string]int64{"input": c.Input, "cached": c.Cached, "output": c.Output} {
		m.modelTokens.WithLabelValues(model, kind).Add(float64(n))
	}
}

// Requested counts a request to the HTTP API.
func (m *Metrics) Requested(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.requestSeconds.WithLabelValues(route).Observe(took.Seconds())
}

// Rejected implements worker.Observer.
func (m *Metrics) Rejected(code string) { m.rejected.WithLabelValues(m.codes.label(code)).Inc() }

// Leading implements scheduler.Observer.
func (m *Metrics) Leading(leading bool) {
	m.leads.Store(leading)
	if leading {
		m.leading.Set(1)
	} else {
		m.leading.Set(0)
		m.disk.Reset() // another scheduler measures it now
		m.diskBudget.Reset()
	}
}

// Took implements scheduler.Observer.
func (m *Metrics) Took(reason string, runs int) {
	m.taken.WithLabelValues(reason).Add(float64(runs))
}

// Truncated implements scheduler.Observer.
func (m *Metrics) Truncated(runs int) {
	if runs > 0 {
		m.runs.WithLabelValues(store.TriggerNightly, store.StatusApplied, worker.OutcomeApplied).Add(float64(runs))
	}
}

// Expired implements scheduler.Observer.
func (m *Metrics) Expired(runs int) {
	if runs > 0 {
		m.runs.WithLabelValues(unknown, store.StatusFailed, store.OutcomeNotAttempted).Add(float64(runs))
	}
}

// Archived implements scheduler.Observer.
func (m *Metrics) Archived(a store.ArchiveStats) {
	m.archived.Add(float64(a.Messages))
	m.archivedBytes.WithLabelValues("stored").Add(float64(a.Stored))
	m.archivedBytes.WithLabelValues("archived").Add(float64(a.Archived))
}

// DiskUsed implements scheduler.Observer.
func (m *Metrics) DiskUsed(use store.DiskUse, budget policy.Bytes) {
	m.disk.WithLabelValues("used").Set(float64(use.Bytes - use.Freed))
	m.disk.WithLabelValues("freed").Set(float64(use.Freed))
	m.diskBudget.WithLabelValues().Set(float64(budget))
}

// Purged implements scheduler.Observer.
func (m *Metrics) Purged(segments int64) { m.purged.Add(float64(segments)) }

// Database is a store.ObserveFunc.
func (m *Metrics) Database(kind string, took time.Duration, err error) {
	m.databaseSeconds.WithLabelValues(kind).Observe(took.Seconds())
	if code := databaseCode(err); code != "" {
		m.databaseErrors.WithLabelValues(code).Inc()
	}
}
