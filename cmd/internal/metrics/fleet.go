package metrics

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sessionstore/compactor/store"
)

// Store holds the methods of store.Operator whose results are metrics.
type Store interface {
	Fleet(ctx context.Context, tenant string, tenants int) (store.Fleet, error)
	HeldBack(ctx context.Context, tenant string) ([]store.Held, error)
	PoolStats() store.PoolStats
}

const (
	// fleetAge is how long the state of the fleet is used again, at least.
	fleetAge = 10 * time.Second
	// fleetShare is how often the duration of reading it has to pass as well: a large fleet
	// must not keep the database busy with counting.
	fleetShare = 20
	// fleetTimeout bounds the reading of the fleet.
	fleetTimeout = 8 * time.Second
	// smoothing is the time constant of the smoothed debt: of a step, 63 % is seen after it.
	smoothing = 5 * time.Minute
)

// fleet collects the metrics that the store computes: of its connections and, while this
// process leads, of the fleet. Nothing is read without a request.
type fleet struct {
	m       *Metrics
	store   Store
	tenants int
	now     func() time.Time

	mu       sync.Mutex
	state    store.Fleet
	held     map[string]int64 // sessions by reason; nil: not known
	at, next time.Time        // of the last success, and of the next attempt
	took     time.Duration
	byTenant map[string]store.TenantDue // by label
	debt     map[string]smoothed        // by label, "" for all tenants
	failures int

	connections, maxConnections, waits, waited                         *prometheus.Desc
	age, reading, errors                                               *prometheus.Desc
	due, heldBack, oldestDue, allDebt, allSmoothed                     *prometheus.Desc
	tenantDue, tenantDebt, tenantSmoothed                              *prometheus.Desc
	outbox, oldestOutbox, active, oldestQueued, swept, unswept, sweeps *prometheus.Desc
}

// Watch adds the metrics of a store. They name at most so many tenants.
func (m *Metrics) Watch(st Store, tenants int) { m.register.MustRegister(m.newFleet(st, tenants)) }

func (m *Metrics) newFleet(st Store, tenants int) *fleet {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	return &fleet{
		m: m, store: st, tenants: tenants, now: time.Now,

		connections:    m.desc(gauge, "database_connections", "Connections of this process to Postgres, by state: busy, idle.", "state"),
		maxConnections: m.desc(gauge, "database_connections_max", "Limit of these connections (database.max_conns)."),
		waits:          m.desc(counter, "database_connection_waits_total", "Statements that waited for a connection."),
		waited:         m.desc(counter, "database_connection_wait_seconds_total", "Sum of these waits."),

		age:     m.desc(gauge, "fleet_age_seconds", "Age of the metrics below, which only the leading scheduler has."),
		reading: m.desc(gauge, "fleet_read_seconds", "Time it took to read them from Postgres."),
		errors:  m.desc(counter, "fleet_read_errors_total", "Attempts to read them that failed."),

		due: m.desc(gauge, "due_sessions",
			"Sessions that are due, by cause: size (over their start), repair (a view that may be invalid), cooldown (due, but waiting for its end).", "cause"),
		heldBack: m.desc(gauge, "held_back_sessions",
			"Sessions that are due, or would be, and do not run, by reason (as in stats; a session may have several). "+
				"Where no scheduler leads (no_leader), these metrics are missing.", "reason"),
		oldestDue:   m.desc(gauge, "oldest_due_seconds", "Longest time for which a session may have been due, cooldowns left out."),
		allDebt:     m.desc(gauge, "debt_tokens", "Compaction debt: the tokens by which sessions that are due are over their start."),
		allSmoothed: m.desc(gauge, "debt_tokens_smoothed", "Compaction debt, smoothed over five minutes."),
		tenantDue: m.desc(gauge, "tenant_due_sessions",
			"Sessions that are due, by tenant: those with most debt (metrics.tenants), the rest as other.", "tenant"),
		tenantDebt:     m.desc(gauge, "tenant_debt_tokens", "Compaction debt by tenant.", "tenant"),
		tenantSmoothed: m.desc(gauge, "tenant_debt_tokens_smoothed", "Compaction debt by tenant, smoothed over five minutes.", "tenant"),

		outbox:       m.desc(gauge, "outbox_sessions", "Sessions that were written to and are due, which have no run yet."),
		oldestOutbox: m.desc(gauge, "oldest_outbox_seconds", "Time since the oldest of these writes."),
		active: m.desc(gauge, "runs_active",
			"Runs that have not ended, by trigger and status (queued, running).", "trigger", "status"),
		oldestQueued: m.desc(gauge, "oldest_queued_seconds", "Time since the oldest queued run was requested, by trigger.", "trigger"),
		sweeps:       m.desc(gauge, "sweep_seconds", "Time since the start of an open sweep, by entry of the schedule.", "entry"),
		swept:        m.desc(gauge, "sweep_queued_runs", "Runs that the open sweeps of an entry have queued.", "entry"),
		unswept: m.desc(gauge, "sweep_left_sessions",
			"Sessions that are due and that the open sweeps of an entry have not come to.", "entry"),
	}
}

// Describe implements prometheus.Collector. It describes nothing: the metrics depend on
// the lead.
func (*fleet) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (f *fleet) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	pool := f.store.PoolStats()
	gauge(f.connections, float64(pool.Busy), "busy")
	gauge(f.connections, float64(pool.Idle), "idle")
	gauge(f.maxConnections, float64(pool.Max))
	ch <- prometheus.MustNewConstMetric(f.waits, prometheus.CounterValue, float64(pool.Waits))
	ch <- prometheus.MustNewConstMetric(f.waited, prometheus.CounterValue, pool.Waited.Seconds())

	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.m.leads.Load() {
		f.at, f.next, f.debt, f.held = time.Time{}, time.Time{}, nil, nil // another scheduler has the present ones
		return
	}
	f.refresh()
	ch <- prometheus.MustNewConstMetric(f.errors, prometheus.CounterValue, float64(f.failures))
	if f.at.IsZero() {
		return
	}
	gauge(f.age, f.now().Sub(f.at).Seconds())
	gauge(f.reading, f.took.Seconds())
	f.collectDue(gauge)
	f.collectQueues(gauge)
}

// refresh reads the state of the fleet within fleetTimeout, unless the last one is new enough. A value that
// cannot be read stays as it is; the age of the state or the number of errors shows it.
func (f *fleet) refresh() {
	began := f.now()
	if began.Before(f.next) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), fleetTimeout)
	defer cancel()
	defer func() { f.next = f.now().Add(max(fleetAge, fleetShare*f.now().Sub(began))) }()
	state, err := f.store.Fleet(ctx, "", f.tenants)
	if err != nil {
		f.failures++
		return
	}
	now := f.now()
	f.state, f.at, f.took = state, now, now.Sub(began)
	if held, err := f.store.HeldBack(ctx, ""); err != nil {
		f.failures++
	} else {
		f.held = map[string]int64{}
		for _, h := range held {
			f.held[h.Reason] += h.Sessions
		}
	}
	f.byTenant = byLabel(state.Tenants)
	debt := map[string]smoothed{"": f.debt[""].add(float64(state.Due().Debt), now)}
	for tenant, due := range f.byTenant {
		debt[tenant] = f.debt[tenant].add(float64(due.Debt), now)
	}
	f.debt = debt
}

// byLabel returns tenants by their label. One that is called other is among the others.
func byLabel(tenants []store.TenantDue) map[string]store.TenantDue {
	out := map[string]store.TenantDue{}
	for _, t := range tenants {
		label := t.Tenant
		if t.Others {
			label = other
		}
		sum := out[label]
		sum.Sessions, sum.Debt = sum.Sessions+t.Sessions, sum.Debt+t.Debt
		out[label] = sum
	}
	return out
}

func (f *fleet) collectDue(gauge func(d *prometheus.Desc, v float64, labels ...string)) {
	all := f.state.Due()
	gauge(f.due, float64(all.Sessions-all.Cooling-all.Repairs), "size")
	gauge(f.due, float64(all.Repairs), "repair")
	gauge(f.due, float64(all.Cooling), "cooldown")
	for _, r := range store.HeldReasons {
		if f.held != nil {
			gauge(f.heldBack, float64(f.held[r.Reason]), r.Reason)
		}
	}
	gauge(f.oldestDue, all.OldestSeconds)
	gauge(f.allDebt, float64(all.Debt))
	gauge(f.allSmoothed, f.debt[""].value)
	for tenant, due := range f.byTenant {
		gauge(f.tenantDue, float64(due.Sessions), tenant)
		gauge(f.tenantDebt, float64(due.Debt), tenant)
		gauge(f.tenantSmoothed, f.debt[tenant].value, tenant)
	}
}

func (f *fleet) collectQueues(gauge func(d *prometheus.Desc, v float64, labels ...string)) {
	gauge(f.outbox, float64(f.state.Outbox))
	gauge(f.oldestOutbox, f.state.OldestOutboxSeconds)
	for _, r := range f.state.Active {
		gauge(f.active, float64(r.Queued), r.Trigger, "queued")
		gauge(f.active, float64(r.Running), r.Trigger, "running")
		gauge(f.oldestQueued, r.OldestQueuedSeconds, r.Trigger)
	}
	entries := map[string]store.SweepProgress{}
	for _, s := range f.state.Sweeps {
		label := f.m.entries.label(s.Entry)
		sum := entries[label]
		sum.Queued, sum.Left, sum.Seconds = sum.Queued+s.Queued, max(sum.Left, s.Left), max(sum.Seconds, s.Seconds)
		entries[label] = sum
	}
	for entry, sum := range entries {
		gauge(f.sweeps, sum.Seconds, entry)
		gauge(f.swept, float64(sum.Queued), entry)
		gauge(f.unswept, float64(sum.Left), entry)
	}
}

// smoothed is an exponential average over time.
type smoothed struct {
	value float64
	at    time.Time
}

// add returns the average with a new value. The first one is taken as it is.
func (s smoothed) add(value float64, now time.Time) smoothed {
	if s.at.IsZero() {
		return smoothed{value, now}
	}
	weight := 1 - math.Exp(-now.Sub(s.at).Seconds()/smoothing.Seconds())
	return smoothed{s.value + weight*(value-s.value), now}
}
