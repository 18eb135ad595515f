package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Threshold holds the initial thresholds of sessions whose model has a prefix.
type Threshold struct {
	ModelPrefix    string      `json:"model_prefix"`
	DueTokens      chat.Tokens `json:"due_tokens"`
	EstimateMargin float64     `json:"estimate_margin"`
	// FreeReasoning reports that the models accept signed reasoning whatever precedes it.
	FreeReasoning bool `json:"free_reasoning,omitempty"`
	Counts
}

// Counts are numbers that make a session due, as DueTokens does. Those that are 0 do not.
type Counts struct {
	NewTokens   chat.Tokens `json:"due_new_tokens,omitempty"`    // appended since the last run
	NewMessages int64       `json:"due_messages,omitempty"`      // appended since the last run
	NewTurns    int64       `json:"due_turns,omitempty"`         // messages of the user appended since the last run
	Messages    int64       `json:"due_live_messages,omitempty"` // in the view
	Signals     int         `json:"due_signals,omitempty"`       // bits: one of them was reported
	// Idle is a number of seconds since the last message, which makes a session due whose
	// context is above IdleTokens. From Age on, since the session began, and from SinceRun on,
	// since a run changed the view, IdleTokens counts as DueTokens. Runs do not set them.
	Idle       int64       `json:"due_idle,omitempty"`
	IdleTokens chat.Tokens `json:"due_idle_tokens,omitempty"`
	Age        int64       `json:"due_age,omitempty"`
	SinceRun   int64       `json:"due_since_run,omitempty"`
}

const (
	// queryAddPolicy records a policy by its content. The same content of two tenants belongs
	// to no tenant.
	queryAddPolicy = `INSERT INTO compactor.policies AS p (hash, spec, tenant) VALUES ($1, $2, nullif($3, ''))
		ON CONFLICT (hash) DO UPDATE SET tenant = NULL WHERE p.tenant IS DISTINCT FROM excluded.tenant AND p.tenant IS NOT NULL`
	querySaveThresholds = `SELECT compactor.save_thresholds($1, $2, $3, $4)`
)

// defaultPolicy is the name of the policy of sessions that no other one matches.
const defaultPolicy = "default"

// SavePolicy records the policy of the configuration under its hash and makes its thresholds
// those of new sessions, unless a version of the policy default is in force. RefreshSessions
// updates existing ones. Concurrent calls wait for each other.
func (s Scheduler) SavePolicy(ctx context.Context, hash string, spec json.RawMessage, thresholds []Threshold) error {
	return wrap("save policy", pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var batch pgx.Batch
		batch.Queue(s.q(queryAddPolicy), hash, string(spec), "")
		batch.Queue(s.q(querySaveThresholds), defaultPolicy, 0, hash, thresholds)
		return tx.SendBatch(ctx, &batch).Close()
	}))
}

// SaveThresholds sets the thresholds of a version of a policy. It does nothing if that one
// is no longer in force.
func (s Scheduler) SaveThresholds(ctx context.Context, name string, version int, hash string, thresholds []Threshold) error {
	return execute(ctx, s.Store, "save thresholds of policy "+name, querySaveThresholds, name, version, hash, thresholds)
}

// EnsurePolicy records the policy of a run under its hash. Idempotent. tenant is the one that
// the policy is for, empty for all.
func (s Worker) EnsurePolicy(ctx context.Context, hash, tenant string, spec any) error {
	raw, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("save policy: %w", err)
	}
	return execute(ctx, s.Store, "save policy", queryAddPolicy, hash, string(raw), tenant)
}

// PolicyVersion is one version of a named policy. It never changes.
type PolicyVersion struct {
	Name      string            `json:"name"`
	Version   int               `json:"version"`
	Hash      string            `json:"hash"`
	Spec      json.RawMessage   `json:"spec,omitempty"`
	Match     map[string]string `json:"match"`
	Note      string            `json:"note,omitempty"`
	CreatedBy string            `json:"created_by"`
	CreatedAt time.Time         `json:"created_at"`
	InForce   bool              `json:"in_force"`
	// Extends names the policy from which the version takes the settings that are not in Given,
	// its own keys; BaseHash is the hash of that policy's settings then. Spec has all settings.
	// The three are empty in versions that extend no policy.
	Extends  string   `json:"extends,omitempty"`
	BaseHash string   `json:"base_hash,omitempty"`
	Given    []string `json:"given,omitempty"`
}

const queryPolicies = `
	SELECT v.name, v.version, v.hash, v.spec::text, v.match, v.note, v.created_by, v.created_at, h.version IS NOT NULL,
		v.extends, v.base_hash, ARRAY(SELECT jsonb_array_elements_text(v.given))
	FROM compactor.policy_versions v LEFT JOIN compactor.policy_heads h ON (h.name, h.version) = (v.name, v.version)
	WHERE (v.tenant = (SELECT compactor.bound_tenant())) IS NOT FALSE`

// Policies returns the versions in force, ordered by name. A tenant selects those that its
// sessions may have; empty, all.
func (s *Store) Policies(ctx context.Context, tenant string) ([]PolicyVersion, error) {
	const where = queryPolicies + ` AND h.name IS NOT NULL AND ($1 = '' OR coalesce(v.tenant, $1) = $1) ORDER BY v.name COLLATE "C"`
	return queryRows(ctx, s, "list policies", readPolicy, where, tenant)
}

// PolicyHistory returns all versions of a policy, newest first.
func (s Operator) PolicyHistory(ctx context.Context, name string) ([]PolicyVersion, error) {
	const where = queryPolicies + ` AND v.name = $1 ORDER BY v.version DESC`
	return queryRows(ctx, s.Store, "history of policy "+name, readPolicy, where, name)
}

// Policy returns a version of a policy, that in force for version 0. ErrNotFound: there is
// none.
func (s *Store) Policy(ctx context.Context, name string, version int) (PolicyVersion, error) {
	const where = queryPolicies + ` AND v.name = $1 AND ($2 = 0 AND h.name IS NOT NULL OR v.version = $2)`
	return queryRow(ctx, s, "policy "+PolicyName(name, version), readPolicy, where, name, version)
}

// PolicyName returns "name@version", and the name alone for version 0.
func PolicyName(name string, version int) string {
	if version == 0 {
		return name
	}
	return fmt.Sprintf("%s@%d", name, version)
}

// readPolicy reads a row of queryPolicies.
func readPolicy(row pgx.CollectableRow) (PolicyVersion, error) {
	v, err := pgx.RowToStructByPos[PolicyVersion](row)
	v.CreatedAt = v.CreatedAt.UTC()
	return v, err
}

// DefaultPolicy returns the policy of the configuration that the leading scheduler has saved
// last. ErrNotFound: none has yet, or a version of the policy default is in force.
func (s Operator) DefaultPolicy(ctx context.Context) (spec json.RawMessage, err error) {
	const query = `
		SELECT p.spec::text FROM compactor.thresholds t JOIN compactor.policies p ON p.hash = t.policy_hash
		WHERE t.policy = 'default' AND t.model_prefix = '' AND NOT EXISTS (SELECT FROM compactor.policy_heads WHERE name = 'default')`
	text, err := queryRow(ctx, s.Store, "default policy", pgx.RowTo[string], query)
	return json.RawMessage(text), err
}

// PolicySwitch is a change of the version in force.
type PolicySwitch struct {
	Name      string    `json:"name"`
	Version   int       `json:"version"` // 0: the policy was disabled
	ChangedBy string    `json:"changed_by"`
	ChangedAt time.Time `json:"changed_at"`
}

// PolicySwitches returns which versions of a policy came into force, newest first.
func (s Operator) PolicySwitches(ctx context.Context, name string) ([]PolicySwitch, error) {
	const query = `
		SELECT name, coalesce(version, 0), changed_by, changed_at FROM compactor.policy_changes
		WHERE name = $1 AND (tenant = (SELECT compactor.bound_tenant())) IS NOT FALSE ORDER BY id DESC`
	return queryRows(ctx, s.Store, "history of policy "+name, pgx.RowToStructByPos[PolicySwitch], query, name)
}

// PolicyChange puts a version of a policy in force: a new one if Spec is set, else Version,
// or none, which disables the policy, if that is 0, too.
type PolicyChange struct {
	Name string `json:"name"`
	// Expect is the version in force that the caller has seen, 0 for none.
	Expect     int               `json:"expect"`
	Version    int               `json:"version,omitempty"`
	Spec       json.RawMessage   `json:"spec,omitempty"`
	Hash       string            `json:"hash,omitempty"`
	Match      map[string]string `json:"match,omitempty"`
	Note       string            `json:"note,omitempty"`
	Extends    string            `json:"extends,omitempty"`
	BaseHash   string            `json:"base_hash,omitempty"`
	Given      []string          `json:"given,omitempty"`
	FleetHash  string            `json:"fleet_hash,omitempty"`
	Thresholds []Threshold       `json:"thresholds,omitempty"`
}

// PolicyEffect counts sessions that have one policy and get another one, or the same with
// other settings.
type PolicyEffect struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Sessions int64  `json:"sessions"`
	DueNow   int64  `json:"become_due"`
	NotDue   int64  `json:"no_longer_due"`
}

// effectTimeout bounds the count of the sessions that a change concerns.
const effectTimeout = 10 * time.Minute

// errRollback ends a transaction whose changes are not kept.
var errRollback = errors.New("rolled back")

// PreviewPolicies returns the effects that changes of policies would have on sessions. It makes
// the changes and rolls them back, so the preview is exact; writers of messages do not wait
// meanwhile.
func (s Operator) PreviewPolicies(ctx context.Context, changes []PolicyChange) (effects []PolicyEffect, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		timeout := strconv.FormatInt(effectTimeout.Milliseconds(), 10)
		if _, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', $1, true)`, timeout); err != nil {
			return err
		}
		if _, err := s.changePolicies(ctx, tx, changes, ""); err != nil {
			return err
		}
		const query = `SELECT * FROM compactor.policy_effect()`
		effects, err = collectRows(ctx, s.Store, tx, pgx.RowToStructByPos[PolicyEffect], query)
		return cmp.Or(err, errRollback)
	})
	if errors.Is(err, errRollback) {
		return effects, nil
	}
	return nil, wrap("preview policies", err)
}

// ChangePolicies makes changes, all or none, and returns the versions in force, 0 for a
// disabled policy. ErrStale: another version than Expect is in force.
func (s Operator) ChangePolicies(ctx context.Context, changes []PolicyChange, by string) (versions []int, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		versions, err = s.changePolicies(ctx, tx, changes, by)
		return err
	})
	return versions, wrap("change policies", err)
}

// changePolicies makes changes in a transaction and returns the versions in force.
func (s Operator) changePolicies(ctx context.Context, tx pgx.Tx, changes []PolicyChange, by string) ([]int, error) {
	const query = `SELECT coalesce(in_force, 0) FROM compactor.change_policies($1, $2)`
	return collectRows(ctx, s.Store, tx, pgx.RowTo[int], query, changes, by)
}

// PolicyCount counts the sessions that have a policy.
type PolicyCount struct {
	Name     string
	Sessions int64
	Due      int64
}

// PolicyCounts counts the sessions of a tenant, or of all, by policy. It reads all of them.
func (s Operator) PolicyCounts(ctx context.Context, tenant string) ([]PolicyCount, error) {
	const query = `
		SELECT policy, count(*), count(*) FILTER (WHERE due) FROM compactor.sessions
		WHERE ($1 = '' OR tenant = $1) AND (tenant = (SELECT compactor.bound_tenant())) IS NOT FALSE GROUP BY 1 ORDER BY 1`
	return queryRows(ctx, s.Store, "count sessions", pgx.RowToStructByPos[PolicyCount], query, tenant)
}
