package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/worker"
)

// holds returns what keeps automatic runs from the session, what lasts longest first.
func (x *explainer) holds() []holdJSON {
	var out []holdJSON
	ended := (*time.Time)(nil)
	if x.Last != nil {
		ended = utc(x.Last.EndedAt)
	}
	switch x.State {
	case store.StateQuarantined:
		out = append(out, holdJSON{Code: x.State, Text: cmp.Or(x.QuarantineReason, "automatic runs leave it alone"), Since: ended})
	case store.StateServiceManaged:
		out = append(out, holdJSON{Code: x.State, Text: "another service manages its history, by its policy or its label", Since: ended})
	}
	if x.unreadable != nil {
		out = append(out, holdJSON{Code: "invalid_policy", Text: "this version cannot read its policy: " + x.unreadable.Error()})
	}
	for _, p := range x.pauses {
		out = append(out, holdJSON{Code: store.CodePaused, Text: joined("by "+p.RequestedBy, p.Note), Since: utc(&p.PausedAt)})
	}
	if x.WaitsForMessage {
		out = append(out, holdJSON{Code: worker.OutcomeWaitingAfterUndo, Text: outcomeText(store.RunRow{Outcome: worker.OutcomeWaitingAfterUndo}), Since: ended})
	}
	switch {
	case x.LoopSeq != nil && x.AwaitsAnswer && x.Last != nil && x.Last.Outcome == worker.OutcomeNotTriggered:
		out = append(out, holdJSON{Code: worker.OutcomeNotTriggered, Text: "a trigger waits for the agent's answer to the last message", Since: ended})
	case x.LoopSeq != nil && x.AwaitsAnswer:
		out = append(out, holdJSON{Code: worker.OutcomeMidTurn, Text: "the agent has not answered the last message yet", Since: ended})
	case x.LoopSeq != nil && x.LoopOpen:
		out = append(out, holdJSON{Code: worker.OutcomeOpenToolLoop, Text: "a tool loop is open; its signed reasoning or the policy waits", Since: ended})
	}
	code, wait := x.policy.Guards.Rate(x.ages)
	switch {
	case x.CooldownUntil != nil && x.CooldownUntil.After(x.now):
		code := cmp.Or(x.HoldCode, worker.OutcomeCooldown)
		out = append(out, holdJSON{Code: code, Text: strings.TrimPrefix(outcomeText(store.RunRow{Outcome: code}), "nothing changed: "), Since: ended, Until: utc(x.CooldownUntil)})
	case code != "":
		until := x.now.Add(wait)
		out = append(out, holdJSON{Code: code, Text: strings.TrimPrefix(outcomeText(store.RunRow{Outcome: code}), "nothing changed: "), Until: utc(&until)})
	}
	out = append(out, x.limitHolds()...)
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
	if x.Due && x.Decided && x.Last != nil && len(x.Active) == 0 && x.Last.Status != "failed" {
		out = append(out, holdJSON{Code: worker.OutcomeUnchanged, Text: fmt.Sprintf("run %d has seen all messages and ended as %s", x.Last.ID, x.Last.Outcome), Since: ended})
	}
	return out
}

// limitHolds returns the limits that the session waits for, or without a model.
func (x *explainer) limitHolds() (out []holdJSON) {
	for _, l := range x.limits {
		of := "tenant " + l.Tenant
		if l.Tenant == "" {
			of = "all tenants"
		}
		since := x.ThrottledAt
		if l.Tenant == "" && l.RunsPerSecond != nil && l.Started > max(1, *l.RunsPerSecond)-1 && x.WrittenAt != nil && x.settled().Before(x.now) {
			since = x.WrittenAt
		} else if l.Tenant == "" {
			since = nil
		}
		if l.RunsPerSecond != nil && since != nil {
			out = append(out, holdJSON{Code: store.CodeRunLimit, Text: fmt.Sprintf("%g runs of %s may start in a second", *l.RunsPerSecond, of), Since: utc(since)})
		}
		if l.Reached() && len(x.cfg.LLM.Models) > 0 {
			out = append(out, holdJSON{Code: worker.CodeSpendingLimit, Text: "no model is asked for " + of + ": see compactor limit list"})
		}
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
		switch h.Code {
		case store.StateQuarantined:
			return "after the next message, or with another policy", nil
		case store.StateServiceManaged:
			return "when it has other labels or another policy", nil
		case worker.OutcomeMidTurn, worker.OutcomeNotTriggered:
			return "when the agent has answered, or the window is exceeded", nil
		case store.CodePaused:
			return "when the pause is ended", nil
		case worker.OutcomeWaitingAfterUndo:
			return "with the next message", nil
		case worker.OutcomeOpenToolLoop:
			return "when the tool loop has ended, or the window is exceeded", nil
		case worker.OutcomeCooldown:
			return at("when the cooldown is over", *h.Until)
		case worker.OutcomeMinInterval, worker.OutcomeMaxPerHour, worker.OutcomeMaxPerDay:
			return at("when the guard lets go of it, if it is due then", *h.Until)
		case store.CodeRunLimit:
			return "when the limit lets it start, after those that wait longer", nil
		case "queued", "running":
			return h.Text, nil
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
	case x.Decided:
		return "after the next message", nil
	}
	return "within " + policy.Text(x.cfg.Scheduler.ReconcileInterval) + ": schedulers look for sessions that are due", nil
}
