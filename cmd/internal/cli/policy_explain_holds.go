package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/worker"
)

// holds returns what keeps automatic runs from the session: what the database knows of, and
// what lasts shorter.
func (x *explainer) holds() []holdJSON {
	var out []holdJSON
	if x.unreadable != nil {
		out = append(out, holdJSON{Code: "invalid_policy", Text: "this version cannot read its policy: " + x.unreadable.Error(), EndsBy: "a policy that it can read"})
	}
	cools := false
	for _, h := range x.Held {
		out = append(out, holdJSON{Code: h.Reason, Text: h.Text(), EndsBy: h.EndsBy, Since: utc(h.Since), Until: utc(h.Until)})
		cools = cools || x.CooldownUntil != nil && h.Until != nil && h.Until.Equal(*x.CooldownUntil)
	}
	if code, wait := x.policy.Guards.Rate(x.ages); code != "" && !cools {
		until := x.now.Add(wait)
		out = append(out, holdJSON{Code: code, Text: store.Held{Reason: code}.Text(), EndsBy: "its time", Until: utc(&until)})
	}
	for _, l := range x.limits {
		if l.Reached() && len(x.cfg.LLM.Models) > 0 && !slices.ContainsFunc(out, func(h holdJSON) bool { return h.Code == worker.CodeSpendingLimit }) {
			of := map[bool]string{true: "all tenants", false: "tenant " + l.Tenant}[l.Tenant == ""]
			out = append(out, holdJSON{Code: worker.CodeSpendingLimit, Text: "no model is asked for " + of + ": see compactor limit list", EndsBy: "compactor limit set"})
		}
	}
	for _, r := range x.Active {
		if r.ErrorCode == store.CodeRunLimit {
			continue
		}
		h := holdJSON{Code: r.Status, Since: utc(&r.QueuedAt), Text: fmt.Sprintf("run %d waits for a worker", r.ID)}
		if r.Status == "running" {
			h.Since, h.Text = utc(r.StartedAt), fmt.Sprintf("run %d is at work on %s", r.ID, r.Worker)
		}
		out = append(out, h)
	}
	return out
}

// settled returns when the relay takes the session's writes.
func (x *explainer) settled() time.Time {
	quiet := x.WrittenAt.Add(x.cfg.Policy.Debounce)
	if most := x.FirstWrittenAt.Add(x.cfg.Policy.MaxDelay); most.Before(quiet) {
		quiet = most
	}
	return quiet
}

// next says when an automatic run may come.
func (x *explainer) next(out explanationJSON) (string, *time.Time) {
	at := func(what string, t time.Time) (string, *time.Time) { return what, utc(&t) }
	for _, h := range out.HeldBack {
		switch {
		case h.Code == worker.CodeSpendingLimit && h.Until == nil: // other runs go on
		case h.EndsBy == "":
			return h.Text, nil
		case h.Until != nil:
			return at("when that is over, if it is due then", *h.Until)
		default:
			return "when that has ended", nil
		}
	}
	switch {
	case !x.Due && x.NextCheckAt != nil:
		return at("when it is due, or at the next time that a trigger waits for", *x.NextCheckAt)
	case !x.Due:
		return "when it is due", nil
	case x.WrittenAt != nil:
		quiet := x.settled()
		if !quiet.After(x.now) {
			return "now, by its writes: is a scheduler running?", nil
		}
		return at("when its writes have settled", quiet)
	}
	return "within " + policy.Text(x.cfg.Scheduler.ReconcileInterval) + ": schedulers look for sessions that are due", nil
}
