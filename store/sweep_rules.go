package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// SessionKind is what of a session decides how it is compacted: its model and its policy, as in Session.
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
	// Views larger than Most are truncated to Leave; nil is what the policy's target leaves them.
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

// SweptPage is what SweepTogether has done.
type SweptPage struct {
	// Queued are the runs that the caller enqueues, and Ended the number of those that have ended.
	Queued []Delivery
	Ended  int
	// Unknown are kinds of sessions that the rules lack. With any, nothing was done.
	Unknown []SessionKind
	Done    bool
}

// SweepTogether is SweepPage for sessions of which the database truncates some by itself, by
// rules: their runs have ended, as those of a worker with a name. Without rules, nil, all are
// queued.
func (s Scheduler) SweepTogether(ctx context.Context, sweep int64, limit int, grace time.Duration, rules []Truncation, worker string) (p SweptPage, err error) {
	if rules == nil {
		return s.sweepPage(ctx, sweep, limit, grace, nil, worker)
	}
	raw, err := json.Marshal(rules)
	if err != nil {
		return p, fmt.Errorf("sweep: %w", err)
	}
	return s.sweepPage(ctx, sweep, limit, grace, string(raw), worker)
}

// sweepPage calls the SQL function sweep_page; rules may be nil.
func (s Scheduler) sweepPage(ctx context.Context, sweep int64, limit int, grace time.Duration, rules any, worker string) (p SweptPage, err error) {
	const query = `SELECT runs, ended, unknown::text, status IS DISTINCT FROM 'open' FROM compactor.sweep_page($1, $2, $3, $4, $5)`
	var runs, ended []RunID
	var unknown *string
	if err := s.pool.QueryRow(ctx, s.q(query), sweep, limit, grace, rules, worker).Scan(&runs, &ended, &unknown, &p.Done); err != nil {
		return p, wrap("sweep", err)
	}
	if unknown != nil {
		if err := json.Unmarshal([]byte(*unknown), &p.Unknown); err != nil {
			return p, fmt.Errorf("sweep: kinds of sessions: %w", err)
		}
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
