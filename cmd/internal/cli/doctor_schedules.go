package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store"
)

// schedules lists the next sweeps of each schedule, and those that a clock change skips or
// repeats.
func (x *doctorReport) schedules(cfg config.Config) {
	all := schedulesOf(cfg)
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
	states, err := st.Operator.Schedules(ctx, nil)
	if err != nil {
		return err
	}
	all := schedulesOf(cfg)
	for _, s := range states {
		text := s.Name + " " + pausedText(s)
		if _, ok := all[s.Name]; !ok {
			text += " (not configured)"
		}
		x.add("work", "paused schedules", checkWarn, text, "compactor schedule resume "+s.Name)
	}
	return nil
}
