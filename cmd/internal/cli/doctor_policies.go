package cli

import (
	"context"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

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
			x.add(section, title(v), checkFail, term.Clean(err.Error()), "runs of its sessions end as invalid_policy: apply a version that this one can read")
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
