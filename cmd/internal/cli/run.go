package cli

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/worker"
)

// triggerName names a trigger for people. That of sweeps has the name of the schedule that was the
// only one to start them once; who wants a sweep by hand finds its runs under "sweep", too.
func triggerName(trigger string) string {
	if trigger == store.TriggerNightly {
		return "sweep"
	}
	return trigger
}

// runTrigger names the trigger of the run and, after a colon, that of the policy that held.
func runTrigger(r store.RunRow) string {
	r.Trigger = triggerName(r.Trigger)
	if r.Fired == "" {
		return r.Trigger
	}
	return r.Trigger + ": " + r.Fired
}

// brief is change in a column: an unchanged number stands alone.
func brief(before, after int64) string {
	if before == after {
		return term.Count(after)
	}
	return change(before, after)
}

// modelFailure returns the code of why no model wrote the summary of a run, empty if one did or
// none was asked for.
func modelFailure(r store.RunRow) string {
	if r.Status == store.StatusApplied || r.Outcome == worker.OutcomeNoSummary {
		return r.ErrorCode
	}
	return ""
}

// runPairs returns the properties of a run and its outcome.
func runPairs(e *Env, r store.RunRow) []pair {
	as := e.Out.Green
	switch r.Status {
	case "failed":
		as = e.Out.Red
	case "skipped", "queued", "running":
		as = e.Out.Yellow
	}
	origin, status, fault, messages, size, took := "", "", "", "", "", ""
	if r.Origin > 0 {
		origin = fmt.Sprintf("run %d, by a fork", r.Origin)
	}
	if !r.Ended() {
		status = r.Status
	}
	if r.Error != "" {
		fault = joined(r.ErrorCode, r.Error)
	} else if code := modelFailure(r); code != "" {
		fault = "no model wrote the summary: " + code
	}
	if r.MessagesBefore > 0 || r.MessagesAfter > 0 {
		messages, size = changed(r)
	}
	if r.StartedAt != nil && r.EndedAt != nil {
		took = fmt.Sprintf("%s, after waiting %s", term.Duration(r.EndedAt.Sub(*r.StartedAt)), term.Duration(r.StartedAt.Sub(r.QueuedAt)))
	}
	return []pair{
		{"run", strconv.FormatInt(r.ID, 10)},
		{"session", sessionName(r)},
		{"copy of", origin},
		{"outcome", term.Styled{Value: joined(cmp.Or(r.Outcome, r.Status), reports.Meaning(r)), As: as}},
		{"status", status},
		{"error", fault},
		{"messages", messages},
		{"tokens", size},
		{"time", took},
	}
}

// printRun writes a run and its steps.
func printRun(e *Env, r store.RunRow) {
	e.pairs(runPairs(e, r)...)
	if r.MessagesAfter < r.MessagesBefore && r.TokensAfter > r.TokensBefore {
		e.say("note: fewer messages became more tokens (+%s)", term.Count(r.TokensAfter-r.TokensBefore))
	}
	steps := reports.Steps(r)
	writeSteps(e, steps)
	if len(steps) == 0 {
		return
	}
	if b := steps[0].Before; b.IncludedMessages == int(r.MessagesBefore) && int64(b.IncludedTokens) > r.TokensBefore {
		e.say("the steps, and with them the target, count estimated tokens with the policy's margin: %s for %s",
			term.Count(b.IncludedTokens), term.Count(r.TokensBefore))
	}
}

// changed returns how many messages and tokens a run left in the view, or those that one
// that changed nothing had planned.
func changed(r store.RunRow) (messages, size string) {
	if r.Status == store.StatusApplied || r.Outcome == worker.OutcomeDryRun || r.TokensBefore == r.TokensAfter && r.MessagesBefore == r.MessagesAfter {
		return change(r.MessagesBefore, r.MessagesAfter), change(r.TokensBefore, r.TokensAfter)
	}
	planned := func(before, after int64) string {
		return fmt.Sprintf("%s, planned were %s", change(before, before), term.Count(after))
	}
	return planned(r.MessagesBefore, r.MessagesAfter), planned(r.TokensBefore, r.TokensAfter)
}

// writeSteps writes the counts of the view before and after each step, and the totals
// where more than the view was considered.
func writeSteps(e *Env, steps []pipeline.StepResult) {
	if len(steps) == 0 {
		return
	}
	e.say("")
	cell := func(before, after, all int) string {
		return brief(int64(before), int64(after)) + when(all > max(before, after), " of "+term.Count(all))
	}
	t := e.Out.Table(term.Num("STEP"), term.Text("STRATEGY"), term.Text("GROUPS"), term.Text("MESSAGES"), term.Text("CALLS"),
		term.Text("TOKENS"))
	for i, s := range steps {
		b, a := s.Before, s.After
		t.Row(i+1, s.Strategy, cell(b.IncludedGroups, a.IncludedGroups, a.Groups), cell(b.IncludedMessages, a.IncludedMessages, a.Messages),
			cell(b.IncludedToolCalls, a.IncludedToolCalls, a.ToolCalls), cell(int(b.IncludedTokens), int(a.IncludedTokens), int(a.Tokens)))
	}
	e.wrote(t.Write())
	for i, s := range steps {
		switch {
		case s.Err != nil: // holds no message content
			e.say("step %d: %s", i+1, term.Clean(s.Err.Error()))
		case s.Discarded == "would_grow":
			e.say("step %d: the changes of the previous steps were discarded: they would make the view larger than its repair does", i+1)
		case s.Discarded != "":
			e.say("step %d: the changes of the previous steps were discarded: they allow no valid view", i+1)
		case s.NoSummary != "":
			why := term.Clean(s.NoSummary)
			if s.NoSummary == plan.FailureTooLarge {
				why += ", it would be larger than what it replaces or than its share of the target"
			}
			e.say("step %d: no summary: %s", i+1, why)
		default:
			if r := reports.StepReport(s); r != nil && r.WrittenBy != "" {
				e.say("step %d: summary of %s, written by %s", i+1, plural(r.Messages, "message"), term.Clean(authorOf(r)))
			}
		}
	}
}

func sessionName(r store.RunRow) string {
	return store.Key{Tenant: r.Tenant, Session: r.Session}.String()
}

// change formats "before → after".
func change(before, after int64) string {
	if before == after {
		return term.Count(before) + " (unchanged)"
	}
	return term.Count(before) + " → " + term.Count(after)
}

// joined returns "code: text", without the colon if one of them is empty.
func joined(code, text string) string {
	if code == "" || text == "" {
		return code + text
	}
	return code + ": " + text
}
