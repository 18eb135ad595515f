package worker

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/store"
)

// What becomes of a session after each outcome of an automatic run: it runs when it is due
// again, or one of store.HeldReasons holds it back. An outcome that is not here needs a decision.
func TestEachOutcomeIsNoHoldOrListedAsOne(t *testing.T) {
	t.Parallel()
	const free = ""
	outcomes := map[string]string{
		"OutcomeApplied": free, "OutcomeRepaired": free, "OutcomeAboveTarget": free, "OutcomeBelowThreshold": free, "OutcomeUnchanged": "unchanged",
		"OutcomeFloorAboveTrigger": "quarantined", "OutcomeIneffective": OutcomeCooldown, "OutcomeWouldGrow": OutcomeCooldown, "OutcomeNoSummary": OutcomeCooldown,
		"OutcomeCooldown": OutcomeCooldown, "OutcomeNotTriggered": OutcomeNotTriggered, "OutcomeNothingToCompact": free, "OutcomeWaitingAfterUndo": OutcomeWaitingAfterUndo,
		"OutcomeOpenToolLoop": OutcomeOpenToolLoop, "OutcomeMinInterval": OutcomeMinInterval, "OutcomeMaxPerHour": OutcomeMaxPerHour, "OutcomeMaxPerDay": OutcomeMaxPerDay,
		"OutcomeMidTurn": OutcomeMidTurn, "OutcomeServiceManaged": OutcomeServiceManaged, "OutcomePaused": OutcomePaused, "OutcomeDryRun": free, "OutcomeStale": free,
	}
	raw := must(os.ReadFile("outcome.go"))(t)
	var declared []string
	for _, m := range regexp.MustCompile(`(?m)^\t(Outcome\w+) +=`).FindAllStringSubmatch(string(raw), -1) {
		declared = append(declared, m[1])
	}
	slices.Sort(declared)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(outcomes)), declared); diff != "" {
		t.Errorf("outcomes: does the session wait afterwards? (-decided +declared):\n%s", diff)
	}
	held := map[string]bool{CodeSpendingLimit: false}
	for _, r := range store.HeldReasons {
		held[r.Reason] = true
	}
	for outcome, reason := range outcomes {
		if reason != free && !held[reason] {
			t.Errorf("%s: %s is not among the reasons", outcome, reason)
		}
	}
	if !held[CodeSpendingLimit] {
		t.Error("the limit of spending is not among the reasons")
	}
}
