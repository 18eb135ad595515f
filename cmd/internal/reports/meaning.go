package reports

import (
	"fmt"
	"slices"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/worker"
)

// Successful reports whether an applied run with an outcome did all that it was for.
func Successful(outcome string) bool {
	return slices.Contains([]string{worker.OutcomeApplied, worker.OutcomeRepaired, "undone", "replaced", "erased"}, outcome)
}

// Meaning returns an explanation of the outcome of a run, for people; empty if there is nothing to add to its code.
func Meaning(r store.RunRow) string {
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
		switch steps := Steps(r); {
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
