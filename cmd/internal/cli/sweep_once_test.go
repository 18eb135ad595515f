package cli

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/sessionstore/compactor/store"
)

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

func TestASweepRunsEverySessionOnce(t *testing.T) {
	t.Parallel()
	const sessions = 1000
	p := newPlant(t)
	p.config.Worker.Concurrency, p.config.Policy.Pipeline = 32, pipelines["a run unclaimed"]
	p.fleet(sessions, "acme", "globex")
	// While sessions are due that nothing else would run, the reconciler looks for such, and so do events.
	p.start(schedules, works)
	p.start(schedules, works)
	p.sweep()
	for i := range 60 {
		k := store.Key{Tenant: "acme", Session: fmt.Sprintf("f%d", sessions-2*i)}
		if _, _, err := p.store.Append(t.Context(), k, "", transcript("later", "ua")); err != nil {
			t.Fatal(err)
		}
	}
	p.awaitRest()
	if n := p.number(twice); n != 0 {
		t.Errorf("%d sessions were run twice", n)
	}
	if n := p.number(`SELECT count(*) FROM compactor.sessions WHERE revision = 0`); n != 0 {
		t.Errorf("%d sessions were not compacted", n)
	}
	if n := p.number(`SELECT queued FROM compactor.sweeps`); n < sessions-60 {
		t.Errorf("the sweep queued %d runs of %d", n, sessions)
	}
}
