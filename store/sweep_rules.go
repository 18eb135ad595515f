package store

import (
	"context"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// SessionKind identifies sessions that are compacted alike: their model and their policy, as in
// Session.
type SessionKind struct {
	Policy       string `json:"policy"`
	Version      int    `json:"version"`
	PolicyTenant string `json:"tenant"`
	Model        string `json:"model"`
}

// Truncation is the rule by which the database truncates sessions of a kind by itself. Those of a
// kind without a Metric take runs.
type Truncation struct {
	SessionKind
	Metric string `json:"metric,omitempty"` // messages or tokens
	// Views larger than Most are truncated to Leave; nil is the size after the policy's target.
	Most          *int64      `json:"most,omitempty"`
	Leave         *int64      `json:"leave,omitempty"`
	Window        chat.Tokens `json:"window_tokens"`
	Start         chat.Tokens `json:"start"`
	Target        chat.Tokens `json:"target"`
	DueTokens     chat.Tokens `json:"due_tokens"` // of sessions afterwards
	MinGain       chat.Tokens `json:"min_gain"`
	MinGainShare  float64     `json:"min_gain_share"`
	Margin        float64     `json:"margin"` // on estimated counts
	FreeReasoning bool        `json:"free_reasoning"`
	Hash          string      `json:"hash"`
	FleetHash     string      `json:"fleet_hash"`
}

// SweptPage is the result of SweepTogether.
type SweptPage struct {
	// Queued are the runs that the caller enqueues, and Ended the number of those that have ended.
	Queued []Delivery
	Ended  int
	// Unknown are kinds of sessions that the rules lack. With any, nothing was done.
	Unknown []SessionKind
	Done    bool
}

// SweepTogether queues runs as SweepPage does, except those of sessions that the database
// truncates by itself, by rules: their runs have ended, under the name of worker. With nil
// rules, all runs are queued.
func (s Scheduler) SweepTogether(
	ctx context.Context, sweep int64, limit int, grace time.Duration, rules []Truncation, worker string,
) (p SweptPage, err error) {
	const query = `SELECT runs, ended, unknown, status IS DISTINCT FROM 'open' FROM compactor.sweep_page($1, $2, $3, $4, $5)`
	var arg any // NULL without rules
	if rules != nil {
		arg = rules
	}
	var runs, ended []RunID
	err = s.pool.QueryRow(ctx, s.q(query), sweep, limit, grace, arg, worker).Scan(&runs, &ended, &p.Unknown, &p.Done)
	if err != nil {
		return p, wrap("sweep", err)
	}
	for _, run := range ended {
		s.ended.add(run)
	}
	for _, run := range runs {
		p.Queued = append(p.Queued, Delivery{Run: run, Attempt: 1, Trigger: TriggerNightly})
	}
	p.Ended = len(ended)
	return p, nil
}
