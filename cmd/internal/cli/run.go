package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/summary"
	"github.com/sessionstore/compactor/strategies/tokens"
	"github.com/sessionstore/compactor/worker"
)

type runJSON struct {
	store.RunRow
	Steps []stepJSON `json:"steps,omitempty"`
	// Summaries holds the ids of the messages the run wrote, CallRows the calls of models, and Cache its effect on the
	// provider's prompt cache; set for --run only.
	Summaries []string               `json:"summaries,omitempty"`
	Cache     *tokens.Rewrite        `json:"cache,omitempty"`
	CallRows  []store.SummaryCallRow `json:"calls,omitempty"`
}

// stepJSON is a step of a run, and totalsJSON counts a view.
type (
	stepJSON   = strategies.StepCounts
	totalsJSON = strategies.Counts
)

func newRunJSON(r store.RunRow) runJSON {
	r.QueuedAt = r.QueuedAt.UTC()
	return runJSON{RunRow: r, Steps: strategies.NewStepCounts(runSteps(r))}
}

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

// outcomeText returns an explanation of the outcome of a run.
func outcomeText(r store.RunRow) string {
	if text := map[string]string{
		worker.OutcomeApplied:           "compacted, within the target",
		worker.OutcomeRepaired:          "the view was invalid and has been repaired",
		worker.OutcomeAboveTarget:       "compacted, but the messages that must stay exceed the target",
		worker.OutcomeFloorAboveTrigger: "the messages that must stay exceed the start: only new messages can change that",
		worker.OutcomeNoSummary:         "nothing changed: no summary could be produced, see the steps",
		worker.OutcomeIneffective:       "nothing changed: too little to gain",
		worker.OutcomeBelowThreshold:    "nothing changed: not above the start",
		worker.OutcomeNothingToCompact:  "nothing to compact",
		worker.OutcomeUnchanged:         "nothing changed since the last decision",
		worker.OutcomeWaitingAfterUndo:  "undone by an operator; waiting for a new message",
		worker.OutcomeOpenToolLoop:      "nothing changed: a tool loop is open, and its signed reasoning or the policy has the run wait",
		worker.OutcomeNotTriggered:      "nothing changed: no trigger of the policy holds",
		worker.OutcomeMidTurn:           "nothing changed: the agent has not answered the last message yet",
		worker.OutcomeMinInterval:       "nothing changed: too soon after the last automatic run",
		worker.OutcomeMaxPerHour:        "nothing changed: no more automatic runs in this hour",
		worker.OutcomeMaxPerDay:         "nothing changed: no more automatic runs within 24 hours",
		worker.OutcomeServiceManaged:    "nothing changed: a service manages the history of this session",
		worker.OutcomeCooldown:          "too soon after a run that gained too little or got no summary",
		worker.OutcomeWouldGrow:         "nothing changed: the view would have become larger",
		worker.OutcomePaused:            "paused by an operator (`compactor pause --list`); the session is still due",
		worker.OutcomeStale:             "nothing changed: the application changed the view each time before the plan could be applied",
		worker.OutcomeDryRun:            "planned only, nothing changed",
		"undone":                        fmt.Sprintf("run %d was undone", r.Undoes),
		"replaced":                      "the application replaced the view",
		"erased":                        "words were erased for good (`compactor erase`)",
		"":                              r.Status,
	}[r.Outcome]; text != "" {
		switch steps := runSteps(r); {
		case r.Outcome == worker.OutcomeNoSummary && r.Status == "applied":
			return "still above the start: no summary could be produced, see the steps"
		case r.Outcome != worker.OutcomeNothingToCompact || len(steps) == 0 || steps[0].Before == steps[len(steps)-1].After:
		case r.TokensBefore == r.TokensAfter && r.MessagesBefore == r.MessagesAfter: // the plan began with the whole log
			return "nothing changed: the view is already what the steps lead to"
		default:
			return fmt.Sprintf("nothing changed: the steps would save %s tokens, less than the policy asks for (min_gain_tokens, guards.min_gain_share)",
				term.Count(r.TokensBefore-r.TokensAfter))
		}
		return text
	}
	if r.Status == "failed" {
		return "failed"
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
		{"outcome", term.Styled{Value: joined(cmp.Or(r.Outcome, r.Status), outcomeText(r)), As: as}},
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
	steps := runSteps(r)
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
			if r := stepReport(s); r != nil && r.WrittenBy != "" {
				e.say("step %d: summary of %s, written by %s", i+1, plural(r.Messages, "message"), term.Clean(authorOf(r)))
			}
		}
	}
}

// stepReport returns the summary report of a step, nil if the step has none.
func stepReport(s pipeline.StepResult) *summary.Provenance {
	switch r := s.Summary.(type) {
	case nil:
		return nil
	case *summary.Provenance:
		return r
	}
	var out summary.Provenance // the step was read from the database
	raw, err := json.Marshal(s.Summary)
	if err != nil || json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return &out
}

func sessionName(r store.RunRow) string {
	return store.Key{Tenant: r.Tenant, Session: r.Session}.String()
}

// runSteps decodes the pipeline steps that the worker recorded.
func runSteps(r store.RunRow) []pipeline.StepResult {
	var steps []pipeline.StepResult
	if json.Unmarshal(r.Steps, &steps) != nil {
		return nil // written by another version
	}
	return steps
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
