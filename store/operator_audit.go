package store

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// AuditCheck is a statement about the data that Audit checks.
type AuditCheck struct {
	Name   string
	Advice string // the remedy for a finding that Fix cannot repair
	fields []string
}

const (
	adviceLog     = "restore it from a backup: nothing else has what was said"
	adviceErase   = "erase them again: compactor erase message or compactor erase session"
	adviceSegment = "nothing reads or erases it: restore the session from a backup, or delete the segment by hand"
	adviceLedger  = "the ledger was changed by hand: restore the rows from a backup, or undo the runs from there on"
	adviceAbove   = "it follows from what is wrong with the log or the runs: restore that first"
	adviceTrigger = "the owner of the tables executes ALTER TABLE … ENABLE TRIGGER, or compactor doctor --fix as that login"
	adviceUp      = "compactor migrate up, as the owner of the tables, sets it"
)

// AuditChecks lists the checks of Audit, in the order of a report. The fields of findings are
// columns of the session, of a message, of a run or of an exclusion, or name something missing.
var AuditChecks = []AuditCheck{
	{"the log is complete", adviceLog, []string{"message missing"}},
	{"messages are as they were appended", adviceLog, []string{
		"message digest", "message body", "message token_count", "segment checksum", "segment words", "segment purged_after",
		"session archived",
	}},
	{"erased words are nowhere", adviceErase, []string{"message erased", "segment erased"}},
	{"segments of the archive belong to a session", adviceSegment, []string{"segment session"}},
	{"facts about messages follow from them", adviceAbove, []string{
		"message role_code", "message calls", "message flags", "message cumulative_tokens",
	}},
	{"counters follow from the log and the view", adviceAbove, []string{
		"session last_seq", "session last_source_seq", "session messages", "session turns", "session total_tokens",
		"session live_messages", "session live_tokens", "session live_estimated_tokens", "session open_calls",
		"session open_answered", "session tail_start_seq", "session due", "session pinned", "session hold_seq",
		"session cooldown_until",
	}},
	{"the view is that of the latest run", adviceLedger, []string{
		"session live", "session reasoning_out", "session revision", "session head_run",
	}},
	{"parents are of the same tenant, and in no circle", "compactor set-parent SESSION takes the parent away", []string{"session parent"}},
	{"runs form one line of views", adviceLedger, []string{
		"run revision", "run base_run", "run restores", "run live_before", "run live_after", "run in_force",
	}},
	{"excluded messages name a run and a reason", adviceLedger, []string{"message exclusion", "exclusion run"}},
	{"summaries and what they cover name each other", adviceLedger, []string{"message summary_of", "exclusion summary_seq"}},
	{"protected messages are in the view", "compactor compact SESSION brings them back", []string{"message view"}},
	{"what was said is protected by triggers", adviceTrigger, []string{"trigger state"}},
	{"no role may do more or less than it should", adviceUp, []string{"right privilege"}},
	{"row-level security keeps tenants apart", adviceUp, []string{"fence state"}},
	{"no run is past its lease for long", "is a scheduler running?", []string{"run lease_until"}},
	{"no run waits in the queue for more than an hour", "is a worker running, and are there enough workers?", []string{"run queued_at"}},
}

// Finding is a stored value that differs from the log or the ledger.
type Finding struct {
	Check string `json:"check"` // the Name of an AuditCheck
	// Tenant and Session are empty for a finding about no session.
	Tenant  string `json:"tenant,omitempty"`
	Session string `json:"session,omitempty"`
	Row     string `json:"row,omitempty"` // such as message 7 or run 3; empty for the session's
	Field   string `json:"field"`
	Stored  string `json:"stored"`
	Want    string `json:"want"`
	// Derived reports whether Fix can repair it.
	Derived bool `json:"derived"`
}

// String returns one line without the check.
func (f Finding) String() string {
	if f.Field == "missing" {
		return fmt.Sprintf("%s is missing: should be %s", f.where(), f.Want)
	}
	return fmt.Sprintf("%s: %s is %s, should be %s", f.where(), f.Field, shorten(f.Stored), shorten(f.Want))
}

// Change returns one line about the repair that Fix made.
func (f Finding) Change() string {
	return fmt.Sprintf("%s: %s from %s to %s", f.where(), f.Field, shorten(f.Stored), shorten(f.Want))
}

func (f Finding) where() string {
	if f.Session == "" {
		return f.Row
	}
	return strings.TrimSpace(fmt.Sprintf("%s/%s %s", f.Tenant, f.Session, f.Row))
}

// shorten returns a value for a line of text: ranges can be long.
func shorten(s string) string {
	if s == "" {
		return "not set"
	}
	if digest.MatchString(s) {
		return s[:12] + "…"
	}
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return s
}

var digest = regexp.MustCompile(`^([0-9a-f]{32}){1,2}$`)

// readFinding reads a row of (kind, at, tenant, session, row, field, stored, want, derived).
func readFinding(row pgx.CollectableRow) (f Finding, err error) {
	var kind string
	var at int64
	err = row.Scan(&kind, &at, &f.Tenant, &f.Session, &f.Row, &f.Field, &f.Stored, &f.Want, &f.Derived)
	if err != nil {
		return f, err
	}
	return newFinding(kind, at, f), nil
}

// selectFindings selects the columns of readFinding from rows f of the composite type finding,
// about a session s.
const selectFindings = `
	SELECT f.kind, coalesce(f.at, 0), s.tenant, s.id, '', f.field, coalesce(f.stored, ''), coalesce(f.want, ''), f.derived
	FROM compactor.sessions s CROSS JOIN LATERAL `

// newFinding completes a finding about a row of a kind.
func newFinding(kind string, at int64, f Finding) Finding {
	switch {
	case kind == "session" || f.Row != "":
	case kind == "exclusion":
		f.Row = fmt.Sprintf("exclusion by run %d", at)
	default:
		f.Row = fmt.Sprintf("%s %d", kind, at)
	}
	i := slices.IndexFunc(AuditChecks, func(c AuditCheck) bool { return slices.Contains(c.fields, kind+" "+f.Field) })
	f.Check = AuditChecks[i].Name
	return f
}

// Audited is a session that was checked.
type Audited struct {
	SessionRow
	Findings []Finding
}

// auditPage is the number of sessions of one query, which bounds the age of its snapshot.
const auditPage = 50

// AuditSessions checks sessions, or a random sample of them unless it is 0, and yields each
// in order of creation. It holds one page of sessions in memory and reads all rows of each,
// which takes minutes on a large store. It can run while the system works. The first error
// ends it.
func (s Admin) AuditSessions(ctx context.Context, sample int) iter.Seq2[Audited, error] {
	return func(yield func(Audited, error) bool) {
		const pick = `SELECT sid FROM (SELECT sid FROM compactor.sessions ORDER BY random() LIMIT $1) s ORDER BY sid`
		const page = querySessions + ` WHERE sid > $1 ORDER BY sid LIMIT $2`
		const these = querySessions + ` WHERE sid = ANY($1) ORDER BY sid`
		var sids []int64
		var err error
		if sample > 0 {
			sids, err = queryRows(ctx, s.Store, "sample sessions", pgx.RowTo[int64], pick, sample)
		}
		for after := int64(0); err == nil; {
			query, args := page, []any{after, auditPage}
			if sample > 0 {
				n := min(auditPage, len(sids))
				query, args = these, []any{sids[:n]}
				sids = sids[n:]
			}
			var rows []SessionRow
			rows, err = queryRows(ctx, s.Store, "list sessions", pgx.RowToStructByPos[SessionRow], query, args...)
			if err == nil && len(rows) == 0 {
				return
			}
			var audited []Audited
			if err == nil {
				audited, err = s.audit(ctx, rows)
			}
			for _, a := range audited {
				if !yield(a, nil) {
					return
				}
				after = a.SID
			}
		}
		yield(Audited{}, err)
	}
}

// AuditSession checks one session.
func (s Admin) AuditSession(ctx context.Context, k Key) (Audited, error) {
	row, err := s.Session(ctx, k)
	if err != nil {
		return Audited{}, err
	}
	audited, err := s.audit(ctx, []SessionRow{row})
	if err != nil {
		return Audited{}, err
	}
	return audited[0], nil
}

// audit checks sessions, which are in order of their SIDs. With an error it returns none.
func (s Admin) audit(ctx context.Context, rows []SessionRow) ([]Audited, error) {
	const query = selectFindings + `compactor.audit_session(s.tenant, s.id) f WHERE s.sid = ANY($1)`
	out := make([]Audited, len(rows))
	sids := make([]int64, len(rows))
	for i, r := range rows {
		out[i].SessionRow, sids[i] = r, r.SID
	}
	// Reading long sessions may exceed StatementTimeout.
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil {
			return err
		}
		findings, err := collectRows(ctx, s.Store, tx, readFinding, query, sids)
		if err != nil {
			return err
		}
		for _, f := range findings {
			i := slices.IndexFunc(out, func(a Audited) bool { return a.Tenant == f.Tenant && a.Session == f.Session })
			out[i].Findings = append(out[i].Findings, f)
		}
		return s.auditSegments(ctx, tx, out, sids)
	})
	if err != nil {
		return nil, wrap("audit sessions", err)
	}
	return out, nil
}

// auditSegments unpacks the segments of sessions and compares all bodies, also those that were
// restored since, with the digests of the messages.
func (s Admin) auditSegments(ctx context.Context, tx pgx.Tx, out []Audited, sids []int64) error {
	const query = `SELECT a.id, s.sid, s.erased::text FROM compactor.archive_segments a JOIN compactor.sessions s ON s.sid = a.sid
		WHERE a.sid = ANY($1) AND a.data IS NOT NULL AND a.checksum = sha256(a.data) ORDER BY 1`
	type row struct {
		id, sid int64
		erased  chat.Ranges
	}
	list, err := collectRows(ctx, s.Store, tx, func(r pgx.CollectableRow) (x row, err error) {
		return x, r.Scan(&x.id, &x.sid, rangesText{&x.erased})
	}, query, sids)
	if err != nil {
		return err
	}
	for _, x := range list {
		a := &out[slices.Index(sids, x.sid)]
		found := func(field, stored string) {
			f := Finding{Tenant: a.Tenant, Session: a.Session, Field: field, Stored: stored, Want: "what was said and is not erased"}
			a.Findings = append(a.Findings, newFinding("segment", x.id, f))
		}
		g, err := loadSegment(ctx, s.Store, tx, x.id)
		if err != nil {
			return err
		}
		all := segment{ID: g.ID, Seqs: chat.Ranges{{Lo: 1, Hi: chat.Open}}, Checksum: g.Checksum, Data: g.Data}
		bodies, err := all.unpack(all.Seqs)
		if err != nil {
			found("words", "not to be read")
			continue
		}
		seqs, texts := split(bodies)
		var bad []chat.Seq
		if err := tx.QueryRow(ctx, s.q(`SELECT compactor.forged_words($1, $2, $3)`), x.id, seqs, texts).Scan(&bad); err != nil {
			return err
		}
		forged := chat.RangesOf(bad...)
		if erased := forged.Intersect(x.erased); len(erased) > 0 {
			found("erased", "the words of messages "+erased.String())
		}
		if other := forged.Minus(x.erased).Union(g.Seqs.Minus(chat.RangesOf(seqs...))); len(other) > 0 {
			found("words", "others for messages "+other.String())
		}
	}
	return nil
}

// Fix repairs the stored values of a session that follow from its log and its ledger, and
// returns them in the order of repair. It changes no message and no exclusion. ErrInUse: a run
// is being executed on the session; ErrBusy: its lock is held.
func (s Admin) Fix(ctx context.Context, k Key) ([]Finding, error) {
	const query = `
		SELECT f.kind, coalesce(f.at, 0), $1, $2, '', f.field, coalesce(f.stored, ''), coalesce(f.want, ''), f.derived
		FROM compactor.fix_session($1, $2) f`
	return queryRows(ctx, s.Store, fmt.Sprintf("fix session %s", k), readFinding, query, k.tenant(), k.Session)
}

// protections are the triggers that protect the log and the ledger, of each partition too.
const protections = `(SELECT c.oid, c.relname AS relation, w.name
	FROM (VALUES ('message_log', 'append_only'), ('message_log', 'keep_digest'), ('message_body', 'append_only'),
		('message_body', 'archived_only'), ('message_body', 'keep_body'), ('forked_from', 'append_only'),
		('archive_segments', 'keep_segment'), ('exclusions', 'append_only'), ('runs', 'keep_applied')) w(relation, name)
	JOIN pg_class c ON c.oid = ('compactor.' || w.relation)::regclass
		OR c.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = ('compactor.' || w.relation)::regclass)) w`

// AuditDatabase performs the checks of the database and of the queue, which concern no single
// session.
func (s Admin) AuditDatabase(ctx context.Context) ([]Finding, error) {
	const query = `
		SELECT 'trigger', 0::bigint, '', '', 'trigger ' || w.name || ' of ' || w.relation, 'state',
			CASE WHEN t.oid IS NULL THEN 'missing' ELSE 'disabled' END, 'enabled', t.oid IS NOT NULL
		FROM ` + protections + ` LEFT JOIN pg_trigger t ON t.tgrelid = w.oid AND t.tgname = w.name
		WHERE coalesce(t.tgenabled NOT IN ('O', 'A'), true)
		UNION ALL SELECT 'right', 0, '', '', object, 'privilege', stored, want, false FROM compactor.rights_amiss(false)
		UNION ALL SELECT 'fence', 0, '', '', object, 'state', stored, want, false FROM compactor.fences_amiss(false)
		UNION ALL
		SELECT 'segment', a.id, '', '', '', 'session', a.sid::text, 'one that exists', false FROM compactor.archive_segments a
		WHERE NOT EXISTS (SELECT FROM compactor.sessions s WHERE s.sid = a.sid)
		UNION ALL
		SELECT 'run', r.id, s.tenant, s.id, '', CASE r.status WHEN 'running' THEN 'lease_until' ELSE 'queued_at' END,
			coalesce(CASE r.status WHEN 'running' THEN r.lease_until ELSE r.queued_at END::text, ''),
			CASE r.status WHEN 'running' THEN 'within the last 5 minutes or the next hour' ELSE 'within the last hour' END, false
		FROM compactor.runs r JOIN compactor.sessions s ON s.sid = r.sid
		WHERE r.status = 'running' AND ` + leaseIsOver + `
				AND (r.lease_until BETWEEN now() - interval '5 minutes' AND now()) IS NOT TRUE
			OR r.status = 'queued' AND r.queued_at < now() - interval '1 hour'
		ORDER BY 1, 2, 5 LIMIT 1000`
	return queryRows(ctx, s.Store, "audit", readFinding, query)
}

// EnableTriggers enables the triggers that protect the log and the ledger. Only the owner of
// the tables may: ErrForbidden.
func (s Admin) EnableTriggers(ctx context.Context) error {
	const query = `SELECT format('ALTER TABLE compactor.%I ENABLE TRIGGER %I', w.relation, w.name)
		FROM ` + protections + ` JOIN pg_trigger t ON t.tgrelid = w.oid AND t.tgname = w.name
		WHERE t.tgenabled NOT IN ('O', 'A')`
	statements, err := queryRows(ctx, s.Store, "triggers", pgx.RowTo[string], query)
	for _, sql := range statements {
		if err == nil {
			_, err = s.pool.Exec(ctx, sql)
		}
	}
	return wrap("enable triggers", err)
}

// Audit checks everything and returns all findings.
func (s Admin) Audit(ctx context.Context) ([]Finding, error) {
	findings, err := s.AuditDatabase(ctx)
	for a, failed := range s.AuditSessions(ctx, 0) {
		if failed != nil {
			return nil, failed
		}
		findings = append(findings, a.Findings...)
	}
	return findings, err
}
