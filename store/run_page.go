package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// maxPageView is the number of messages of the largest view that LoadPage loads. It bounds the
// memory for a page.
const maxPageView = 5000

// LoadPage loads runs with their sessions' views by one statement, in which several columns
// share an aggregate. It leaves out those that Load refuses, those whose worker is gone, and
// those with large views: execute them one by one.
func (s Worker) LoadPage(ctx context.Context, runs []RunID) ([]*Claim, error) {
	const query = `SELECT r.id, v.names, v.positions, v.sizes, ` + selectRun + `
		FROM compactor.runs r JOIN compactor.sessions s ON s.sid = r.sid ` + joinPolicy + joinCalibration + `
		CROSS JOIN LATERAL (SELECT array_agg((m.seq << 16) | (m.role_code::int << 8) | m.kind::int) AS names,
			array_agg(m.position) AS positions,
			array_agg((m.token_count::bigint << 32) | (m.calls::int << 16) | m.flags) AS sizes
			FROM (SELECT) one ` + joinView + `) v
		WHERE r.id = ANY($1) AND r.status = 'queued' AND s.live_messages <= $2`
	rows, err := s.pool.Query(ctx, s.q(query), runs, maxPageView)
	if err != nil {
		return nil, wrap("load a page of runs", err)
	}
	var loaded []*Claim
	for rows.Next() {
		c := &Claim{}
		var names, positions, sizes []int64
		if readRun(rows, c, &c.Run, &names, &positions, &sizes) != nil {
			continue // an error of the connection is that of rows, too
		}
		c.View = make([]chat.Meta, len(names))
		for i, n := range names {
			s := sizes[i]
			//nolint:gosec // the query has packed them so
			r := metaRow{n >> 16, positions[i], int32(s >> 32), int16(s >> 16), int16(s), byte(n >> 8), byte(n)}
			c.View[i] = r.meta()
		}
		slices.SortFunc(c.View, chat.Compare)
		loaded = append(loaded, c)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap("load a page of runs", err)
	}
	for _, c := range loaded {
		if err := s.completeView(ctx, c); err != nil {
			return nil, wrap("load a page of runs", err)
		}
	}
	return loaded, nil
}

// RunChange is the change that a run makes.
type RunChange struct {
	Run    RunID
	SID    int64
	Change Change
}

// plain reports whether a change only excludes messages, and leaves the session to be due again by
// its thresholds alone.
func (c *Change) plain() bool {
	p, s := &c.Plan, &c.PostRunState
	return len(p.Additions)+len(p.Include)+len(p.DropReasoning)+len(s.Unholdable) == 0 && len(p.Exclude) > 0 &&
		s.State == "" && s.HoldCode == "" && s.CooldownSeconds == 0 && !s.Ineffective && !s.AwaitsLoop && !s.Checked
}

// pageRecord is a run in the JSON argument of end_runs.
type pageRecord struct {
	endRecord
	Run      RunID    `json:"run"`
	SID      int64    `json:"sid"`
	Revision int64    `json:"revision"`
	Snapshot chat.Seq `json:"snapshot"`
	Exclude  string   `json:"exclude"`
	Reasons  []string `json:"reasons"`
	Seqs     []string `json:"seqs"`
}

// ApplyPage applies the changes of runs that LoadPage has loaded, each as Apply does, in one
// transaction and by one statement for all, and returns those that it has applied. It leaves
// out those that do more than exclude messages, and those whose view has changed since: execute
// them one by one.
func (s Worker) ApplyPage(ctx context.Context, changes []RunChange) (applied []RunID, err error) {
	var page []pageRecord
	for i := range changes {
		c := &changes[i].Change
		if !c.plain() {
			continue
		}
		r := pageRecord{
			endRecord: c.record(), Run: changes[i].Run, SID: changes[i].SID,
			Revision: c.Revision, Snapshot: c.SnapshotSeq, Exclude: c.Plan.Gone().String(),
		}
		for _, x := range c.Plan.Exclude {
			r.Reasons, r.Seqs = append(r.Reasons, x.Reason), append(r.Seqs, x.Seqs.String())
		}
		page = append(page, r)
	}
	if len(page) == 0 {
		return nil, nil
	}
	applied, err = queryRow(ctx, s.Store, "apply a page of runs", pgx.RowTo[[]RunID], `SELECT compactor.end_runs($1)`, page)
	for _, run := range applied {
		s.ended.add(run)
	}
	return applied, err
}
