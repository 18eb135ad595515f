package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

const sectionData = "data"

// maxListed bounds the sessions with findings that a check lists, maxKept the findings that --json has of it.
const (
	maxListed = 10
	maxKept   = 1000
)

func (x *doctorReport) data(ctx context.Context, st *store.Store, c *doctorCmd) error {
	b, err := st.Scheduler.Backlog(ctx)
	if err != nil {
		return err
	}
	sample := c.Sample
	if sample == 0 && !c.Deep && b.Sessions > sampleSize {
		sample = sampleSize
	}
	x.audit(ctx, st, b.Sessions, sample, c.Fix)
	x.add("work", "backlog", checkOK, fmt.Sprintf("%s, %s due, %s queued, %s running, %s in the outbox",
		plural(b.Sessions, "session"), term.Count(b.Due), term.Count(b.Queued), term.Count(b.Running), term.Count(b.Outbox)), "")
	if b.Queued > 0 {
		status := checkOK
		if b.OldestQueued > 10*time.Minute {
			status = checkWarn
		}
		x.add("work", "oldest queued run", status, term.Duration(b.OldestQueued), "is a worker running, and are there enough workers?")
	}
	return nil
}

// keys checks that servers with this login accept the keys of the API.
func (x *doctorReport) keys(ctx context.Context, st *store.Store) error {
	keys, err := st.Admin.Keys(ctx, "", false)
	if err != nil {
		return err
	}
	bound, err := st.MayBeOperator(ctx)
	if err != nil {
		return err
	}
	ofOne := 0
	for _, k := range keys {
		if k.Tenant != nil {
			ofOne++
		}
	}
	text := fmt.Sprintf("%d in force, %d of them of one tenant", len(keys), ofOne)
	if ofOne == 0 || bound {
		x.add("api", "keys", checkOK, text, "")
		return nil
	}
	x.add("api", "keys", checkWarn, text+", which a server with this login refuses: it may not take the role operator",
		"`compactor migrate up` creates the role; grant it to the login, and start the servers again")
	return nil
}

// erasures finds those that were confirmed and have not ended.
func (x *doctorReport) erasures(ctx context.Context, st *store.Store) error {
	all, err := st.Admin.Erasures(ctx, "", maxListed)
	if err != nil {
		return err
	}
	for _, e := range all {
		switch {
		case e.ConfirmedAt.IsZero() || !e.EndedAt.IsZero():
		case e.Session != "":
			x.add("work", fmt.Sprintf("erasure %d", e.ID), checkFail,
				fmt.Sprintf("of session %s of tenant %s has not ended: the archive has words of it", term.Clean(e.Session), term.Clean(e.Tenant)),
				"repeat the erase command: SQL alone does not take the archive apart")
		default:
			x.add("work", fmt.Sprintf("erasure %d", e.ID), checkWarn, fmt.Sprintf("of tenant %s has not ended", term.Clean(e.Tenant)),
				fmt.Sprintf("if none is at work on it, `compactor erase confirm %d --tenant %s%s` goes on", e.ID, term.Clean(e.Tenant), x.env.at()))
		}
	}
	return nil
}

// audit collects the findings of one pass over sessions.
type audit struct {
	report *doctorReport
	st     *store.Store
	fix    bool
	counts map[string]int // findings by check

	valid, waiting, views int // views that are valid, that a run will repair, and that neither holds for
	badView               string
}

// audit checks the sessions, or a sample of them unless it is 0, and the database as a whole.
func (x *doctorReport) audit(ctx context.Context, st *store.Store, sessions int64, sample int, fix bool) {
	total := sessions
	if sample > 0 {
		total = min(total, int64(sample))
	}
	a := &audit{report: x, st: st, fix: fix, counts: map[string]int{}}
	progress := x.env.Err.Progress("checking, sessions", total)
	err := a.database(ctx)
	checked := int64(0)
	if err == nil {
		for s, failed := range st.Admin.AuditSessions(ctx, sample) {
			if err = failed; err == nil {
				err = a.session(ctx, s)
			}
			if err != nil {
				break
			}
			checked++
			progress.Add(1)
		}
	}
	progress.Done("")
	status, detail := checkOK, fmt.Sprintf("%s of %s", term.Count(checked), term.Count(max(sessions, checked)))
	switch {
	case err != nil:
		x.add(sectionData, "sessions checked", checkFail, detail+", then: "+err.Error(), "")
	case checked < sessions:
		status = checkSkip
		fallthrough
	default:
		x.add(sectionData, "sessions checked", status, detail, "a sample; --deep checks all")
	}
	for _, c := range store.AuditChecks {
		switch n := a.counts[c.Name]; {
		case n > 0 && len(x.causes[c.Name]) == 0:
			x.add(sectionData, c.Name, checkFail, plural(n, "finding")+", listed above with what they may follow from", "")
		case n > 0:
			x.add(sectionData, c.Name, checkFail, plural(n, "finding"), "")
		case err == nil:
			x.add(sectionData, c.Name, checkOK, "", "")
		}
	}
	a.viewCheck()
}

func (a *audit) database(ctx context.Context) error {
	findings, err := a.st.Admin.AuditDatabase(ctx)
	if err != nil {
		return err
	}
	disabled := func(f store.Finding) bool { return f.Derived }
	if a.fix && slices.ContainsFunc(findings, disabled) {
		if err := a.st.Admin.EnableTriggers(ctx); err == nil {
			for _, f := range findings {
				if f.Derived {
					a.fixed(f)
				}
			}
			findings = slices.DeleteFunc(findings, disabled)
		} else if !errors.Is(err, store.ErrForbidden) && !errors.Is(err, store.ErrBusy) {
			return err
		}
	}
	a.found(findings)
	return nil
}

func (a *audit) session(ctx context.Context, s store.Audited) error {
	k := store.Key{Tenant: s.Tenant, Session: s.Session}
	if a.fix && slices.ContainsFunc(s.Findings, func(f store.Finding) bool { return f.Derived }) {
		fixed, err := a.st.Admin.Fix(ctx, k)
		switch {
		case err == nil:
			for _, f := range fixed {
				a.fixed(f)
			}
			if s, err = a.st.Admin.AuditSession(ctx, k); err != nil {
				return err
			}
		case errors.Is(err, store.ErrInUse), errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrForbidden):
			a.report.env.note("not fixed: %v", err)
		default:
			return err
		}
	}
	a.found(s.Findings)
	if slices.ContainsFunc(s.Findings, func(f store.Finding) bool { return !f.Derived }) {
		return nil // what is wrong with the view may follow from that
	}
	return a.view(ctx, k, s.SID)
}

// cause is a finding with those of the same field that follow it.
type cause struct {
	store.Finding
	last store.Finding
	more int
}

// String returns one line without the check.
func (c cause) String() string {
	if c.more == 0 {
		return c.Finding.String()
	}
	return fmt.Sprintf("%s, and %s up to %s", c.Finding, term.Plural(c.more, "more", "more"),
		strings.TrimSpace(cmp.Or(c.last.Row, c.last.Session)))
}

// firstWord returns the role or the kind of object that begins a row.
func firstWord(row string) string {
	word, _, _ := strings.Cut(row, " ")
	return word
}

// found keeps the findings about a session, or about none, in the order of the checks: earlier
// ones explain later ones.
func (a *audit) found(findings []store.Finding) {
	at := func(f store.Finding) int {
		return slices.IndexFunc(store.AuditChecks, func(c store.AuditCheck) bool { return c.Name == f.Check })
	}
	slices.SortStableFunc(findings, func(f, g store.Finding) int { return at(f) - at(g) })
	var causes []cause
	for _, f := range findings {
		if a.counts[f.Check]++; a.counts[f.Check] <= maxKept {
			a.report.findings = append(a.report.findings, f)
		}
		if n := len(causes) - 1; n >= 0 && causes[n].Check == f.Check && causes[n].Field == f.Field && causes[n].Derived == f.Derived &&
			(f.Session != "" || f.Stored == causes[n].Stored && f.Want == causes[n].Want && firstWord(f.Row) == firstWord(causes[n].Row)) {
			causes[n].last, causes[n].more = f, causes[n].more+1
			continue
		}
		causes = append(causes, cause{Finding: f})
	}
	for len(causes) > 0 {
		n := 1 // what concerns no session has a line under each check
		for n < len(causes) && (causes[n].Check == causes[0].Check || causes[0].Session != "" && causes[n].Session == causes[0].Session) {
			n++
		}
		a.report.causes[causes[0].Check] = append(a.report.causes[causes[0].Check], causes[:n])
		causes = causes[n:]
	}
}

// fixed reports a finding that was fixed.
func (a *audit) fixed(f store.Finding) {
	if a.report.env.JSON {
		a.report.fixed = append(a.report.fixed, f)
		return
	}
	a.report.env.say("fixed %s", term.Clean(f.Change()))
}

// listFindings writes the findings of a check and those that follow from them, each with its remedy;
// those that --fix can set as warnings.
func (x *doctorReport) listFindings(check string, marks map[string]string) {
	for n, causes := range x.causes[check] {
		if n == maxListed {
			x.env.say("      … and %s more: --json has them", term.Count(len(x.causes[check])-n))
			break
		}
		explained := ""
		for _, c := range causes {
			mark, advice := marks[checkWarn], "compactor doctor --fix sets it"
			if !c.Derived {
				i := slices.IndexFunc(store.AuditChecks, func(a store.AuditCheck) bool { return a.Name == c.Check })
				mark, advice = marks[checkFail], store.AuditChecks[i].Advice
				if explained != "" && explained != c.Check {
					advice = "it may follow from the line above"
				}
				explained = cmp.Or(explained, c.Check)
			}
			x.env.say("      %s %s%s", mark, term.Clean(c.String()), x.env.Out.Dim(" ("+advice+")"))
		}
	}
}

// view checks that a provider would accept a view. That of a session that is due may be
// invalid, as its next run repairs it.
func (a *audit) view(ctx context.Context, k store.Key, sid int64) error {
	faults, err := a.st.Admin.Violations(ctx, sid)
	if err != nil {
		return err
	}
	if len(faults) == 0 {
		a.valid++
		return nil
	}
	r, err := a.st.Session(ctx, k) // as of now: an append may have made the view invalid
	if err != nil {
		return err
	}
	if r.Due || r.Suspect {
		a.waiting++
		return nil
	}
	if a.views++; a.badView == "" {
		a.badView = fmt.Sprintf("%s: %s", k, faults[0])
	}
	return nil
}

func (a *audit) viewCheck() {
	const name = "views are valid"
	if a.views > 0 {
		a.report.add(sectionData, name, checkFail, fmt.Sprintf("%d of %d are not, such as %s", a.views,
			a.valid+a.waiting+a.views, term.Clean(a.badView)),
			"compactor compact SESSION repairs a view")
		return
	}
	detail := fmt.Sprintf("%s of %s", term.Count(a.valid), term.Count(a.valid+a.waiting))
	if a.waiting > 0 {
		detail += fmt.Sprintf(", %s to be repaired by the next run", term.Count(a.waiting))
	}
	a.report.add(sectionData, name, checkOK, detail, "")
}
