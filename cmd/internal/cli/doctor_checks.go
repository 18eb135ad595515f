package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/policies"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
	"github.com/sessionstore/compactor/worker/jobs"
)

// schedules lists the next sweeps of each schedule, and those that a clock change skips or
// repeats.
func (x *doctorReport) schedules(cfg config.Config) {
	all := cfg.SchedulerConfig().SchedulesInForce()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		check := "schedule " + name
		times, err := all[name].Times()
		if err != nil {
			x.add("work", check, checkFail, err.Error(), "")
			continue
		}
		var next []string
		for _, t := range times.NextN(3, x.env.now()) {
			next = append(next, t.Format("Mon 2006-01-02 15:04 MST"))
		}
		x.add("work", check, checkOK, fmt.Sprintf("%s: %s", all[name].Text(), strings.Join(next, ", ")), "")
		for _, c := range times.ClockChanges(x.env.now()) {
			x.add("work", check, checkWarn, c.String(), "choose an hour outside 01:00 to 03:59, or the time zone UTC")
		}
	}
}

// pausedSchedules lists the schedules that are paused.
func (x *doctorReport) pausedSchedules(ctx context.Context, st *store.Store, cfg config.Config) error {
	rows, err := cfg.SchedulerConfig().ShownSchedules(ctx, st, x.env.now())
	if err != nil {
		return err
	}
	for _, s := range rows {
		if s.PausedAt == nil {
			continue
		}
		text := joined(s.Name+" is "+pausedText(s), s.Note) + when(!s.Configured, " (not configured)")
		x.add("work", "paused schedules", checkWarn, text, "compactor schedule resume "+s.Name)
	}
	return nil
}

// policiesLate is how long sessions may take to follow a change of policies before doctor
// warns.
const policiesLate = 10 * time.Minute

// policies checks that this version can read the policies in force, and that the sessions
// follow them.
func (x *doctorReport) policies(ctx context.Context, st *store.Store) error {
	const section = "policies"
	list, err := st.Policies(ctx, "")
	if err != nil {
		return err
	}
	x.add(section, "in force", checkOK, term.Plural(len(list), "policy", "policies")+" beside that of the configuration", "")
	registry := summarizing(x.env.Registry)
	for _, v := range list {
		p, err := policy.ReadSpec(v.Spec)
		if err == nil {
			err = p.Check(registry.Fill, func(name string, params map[string]any) error {
				_, err := registry.New(name, params)
				return err
			})
		}
		if err != nil {
			x.add(section, policies.Title(v), checkFail, term.Clean(err.Error()),
				"runs of its sessions end as invalid_policy: apply a version that this one can read")
		}
	}
	progress, err := st.PolicyProgress(ctx)
	late := x.env.since(progress.ChangedAt)
	switch {
	case err != nil:
		x.add(section, "sessions follow", checkFail, err.Error(), "")
	case progress.Reached < progress.Revision && late > policiesLate:
		x.add(section, "sessions follow", checkWarn, "not yet, "+term.Duration(late)+" after the last change", "is a scheduler running?")
	default:
		x.add(section, "sessions follow", checkOK, "", "")
	}
	return nil
}

// queues counts the tasks of the installation.
func (x *doctorReport) queues(client redis.UniversalClient, name jobs.Installation) {
	inspector := asynq.NewInspectorFromRedisClient(client)
	waiting, left := 0, 0
	existing, err := inspector.Queues()
	for _, queue := range existing {
		var info *asynq.QueueInfo
		if name.Queues()[queue] == 0 || err != nil {
			continue
		}
		if info, err = inspector.GetQueueInfo(queue); err == nil {
			waiting, left = waiting+info.Pending+info.Active, left+info.Retry+info.Archived
		}
	}
	if err != nil {
		x.add("redis", "queues", checkFail, err.Error(), "")
		return
	}
	status, detail := checkOK, fmt.Sprintf("installation %s: %s", name, plural(int64(waiting), "task"))
	if left > 0 {
		status, detail = checkWarn, fmt.Sprintf("%s, and %s that no worker of it could finish", detail, term.Count(int64(left)))
	}
	x.add("redis", "queues", status, detail, "the log of the workers says why: Postgres was away, or another installation has this name (redis.installation)")
}

// diskJSON is the disk space of the tables and its budget.
type diskJSON struct {
	store.DiskUse
	Budget int64 `json:"budget_bytes"`
}

// String returns "95.0 GB of 100 GB, 5.2 GB of them freed by the archive".
func (d diskJSON) String() string {
	text := fmt.Sprintf("%s of %s", term.Bytes(d.Bytes), term.Bytes(d.Budget))
	if d.Freed > 0 {
		text += fmt.Sprintf(", %s of them freed by the archive", term.Bytes(d.Freed))
	}
	return text
}

// diskUse returns the disk space, nil without a budget or for a connection that is bound to a tenant.
func diskUse(ctx context.Context, st *store.Store, c scheduler.Config) (*diskJSON, error) {
	if c.DiskBudget == 0 {
		return nil, nil
	}
	use, err := st.Scheduler.DiskUse(ctx)
	if errors.Is(err, store.ErrForbidden) {
		return nil, nil
	}
	return &diskJSON{use, int64(c.DiskBudget)}, err
}

// disk compares the disk space of the tables with its budget.
func (x *doctorReport) disk(ctx context.Context, st *store.Store, c scheduler.Config) error {
	use, err := diskUse(ctx, st, c)
	const section, name = "postgres", "disk budget"
	switch {
	case err != nil || use == nil:
	case use.Bytes <= use.Budget:
		detail := use.String()
		if use.Freed > 0 {
			detail += ", which Postgres uses again after a vacuum"
		}
		x.add(section, name, checkOK, detail, "")
	case use.Bytes-use.Freed <= c.DiskMark():
		x.add(section, name, checkWarn, use.String(), "Postgres uses freed space again after a vacuum; VACUUM FULL of message_body returns it to the disk, and locks the table meanwhile")
	case use.More:
		x.add(section, name, checkWarn, use.String()+", and more can be archived",
			"the leading scheduler does so every ten minutes: is one running?")
	default:
		x.add(section, name, checkWarn, use.String()+"; all that left the view more than a day ago is archived",
			"more disk, a policy with retention.purge_after, or VACUUM FULL of message_body, which returns freed space to the disk and locks the table meanwhile")
	}
	return err
}

// maxDoctorModels bounds the models that doctor lists.
const maxDoctorModels = 20

// counting describes the table of models, and the calibrations by reports of usage.
func (x *doctorReport) counting(ctx context.Context, cfg config.Config, st *store.Store) error {
	const section = "tokens"
	x.add(section, "table of models", checkOK, fmt.Sprintf("of %s, %s in the settings",
		tokens.TableDate, plural(len(cfg.Models), "model")), "")
	used, err := st.Operator.Models(ctx, maxDoctorModels)
	if err != nil {
		return err
	}
	for _, name := range used {
		if m := newModelJSON(cfg, name); m.WindowFrom == "unknown" {
			x.add(section, term.Clean(name), checkWarn, fmt.Sprintf("this model is not known: its window is taken as %s tokens",
				term.Count(m.Window)),
				"set its window in the setting models")
		}
	}
	learned, err := st.Operator.Calibrations(ctx, "", "", maxDoctorModels+1)
	if err != nil {
		return err
	}
	if len(learned) == 0 {
		x.add(section, "reported usage", checkOK, "none: sizes of prompts are the counts of their messages", "")
	}
	for i, r := range learned {
		name := term.Clean(fmt.Sprintf("%s of tenant %s", r.Model, r.Tenant))
		switch reports := plural(r.Reports, "report"); {
		case i == maxDoctorModels:
			x.add(section, "more models", checkOK, "`compactor models --all-tenants` lists them", "")
		case r.Line.Scale == 0:
			x.add(section, name, checkOK, reports+", too few yet", "")
		default:
			status := checkOK
			if r.Deviation > 0.15 {
				status = checkWarn
			}
			x.add(section, name, status, fmt.Sprintf("a prompt has %s tokens and %.2f for each one counted: %s, %.1f %% off in the median",
				term.Count(r.Line.Overhead), r.Line.Scale, reports, 100*r.Deviation),
				"reports may leave out what was cached, or agents with different tools share the model's name")
		}
	}
	return nil
}
