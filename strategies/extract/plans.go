package extract

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/charclass"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// addPlan adds the plan that the user approved for the active task, if that says what to do or
// follows the one that does. Of one that was carried out before it, the title is enough.
func (s *history) addPlan(b *itemList) {
	at := s.activeTurn()
	for i, t := range slices.Backward(s.turns) {
		if len(t.plan) > 0 {
			plan := b.add(sectionTask, planMark+prose.Truncate(t.plan[0], b.lineLimit)+"\n", worthTodo)
			plan.tier = tierState
			if i < at && s.editedFor(t) && t.calls == t.callsBefore && (finishing().MatchString(t.lastText) || s.turns[at].asked == "" && !furthering().MatchString(s.turns[at].request.head)) { // it was carried out
				return
			}
			for n, step := range t.plan[1:] {
				it := b.add(sectionTask, indentMark+formatEntry(prose.Truncate(step, b.lineLimit)), 0)
				b.weigh(worthPasted * decay(n, maxPlan)) // in its order
				if it.tier, it.parent = tierDemands, plan; isStep(step) {
					it.tier = tierOpen
				}
			}
			return
		}
		if i <= at && len(t.request.head) >= minRequest {
			return
		}
	}
}

// furthering is in a request for more of what is under way.
var furthering = text.Pattern(`(?i)^\W*(?:yes|yep|yeah|ok(?:ay)?|sure|please|do it)\W*$|\bthe (?:rest|remaining|other|missing) |\bnext (?:step|phase|part|task|item)|\b(?:steps?|phases?|parts?) (?:\d|of the plan)|\b(?:continue|go(?:ing)? (?:on|ahead)|proceed|resume|finish|keep (?:going|working)|carry on|you (?:forgot|missed))\b|\bthe rest\W*$|\bremaining\b|\bthe plan\b`)

// finishing says that all is done.
var finishing = text.Pattern(`(?i)\b(?:all|every|each)\b[^.!?\n]{0,60}\b(?:done|complete[d]?|finished|implemented)\b`)

// approving is the result of a call that proposed a plan, if the user agreed to it.
var approving = text.Pattern(`(?i)^\W*(?:the )?user (?:has )?approved\b`)

// planLines returns the title of a plan, with the file in which it was saved, and its steps, which are its headings and the
// entries of its numbered list.
func planLines(plan, result string) []string {
	var out []string
	for _, l := range prose.SplitLines(plan) {
		if x := strings.ReplaceAll(prose.OneLine(prose.Unmarked(l)), "**", ""); len(out) == 0 || planStep().MatchString(l) && !slices.Contains(out, x) {
			out = append(out, strings.Clone(prose.Truncate(x, maxLine)))
		}
	}
	for i := len(out) - 1; i > 0 && len(out) > maxPlan; i-- { // the headings tell more of it
		if isStep(out[i]) {
			out = slices.Delete(out, i, i+1)
		}
	}
	if m := savedPlan().FindStringSubmatch(result); m != nil && len(out) > 0 {
		out[0] += " (in " + m[1] + ")"
	}
	return out[:min(len(out), maxPlan)]
}

// savedPlan tells where a plan was saved.
var savedPlan = text.Pattern(`(?m)^Your plan has been saved to: (\S+)`)

// maxPlan is the number of lines of a plan.
const maxPlan = 32

// isStep reports whether a line of a plan is an entry of a list, and no heading.
func isStep(line string) bool { return line != "" && charclass.Digit.Has(line[0]) }

// planStep is a heading of a plan with a blank, or an entry of its list.
var planStep = text.Pattern(`^(?:#{2,4} \S+ \S|\d+\. )`)
