package extract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The constraints are the user's own demands that hold: with what the user prefers, without what the user took
// back, and without what others said.
func TestConstraintsAreTheUsersOwn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ said, want []string }{
		"preferences": {
			[]string{"Wire the hall. I prefer copper wire. Do not use glue.", "Also keep the old lamp names.", "Use screws not nails. No jokes in comments!", "Don't use that one.", "No errors in the log of today."},
			[]string{"I prefer copper wire.", "Do not use glue.", "Also keep the old lamp names.", "Use screws not nails.", "No jokes in comments!"},
		},
		"taken back":  {[]string{"Never move the main switch. Always wear gloves.", "You may move the main switch now, that rule is off."}, []string{"Always wear gloves."}},
		"another one": {[]string{"Never move the main switch. Always wear gloves.", "You can go home now."}, []string{"Never move the main switch.", "Always wear gloves."}},
		"asked only":  {[]string{"Never move the main switch.", "Can I say that you may move the main switch now?"}, []string{"Never move the main switch."}},
		"twice":       {[]string{"Never move the main switch.", "/wire:hall never move the main switch"}, []string{"Never move the main switch."}},
		"of one place": {
			[]string{"Use the lantern instead of the inlined lamp.", "Don't use confirm_door(), just open it.", "I don't want to change the wires.", "The switch should only turn the lamp on.", "The text must stop when it meets a line.", "I read that there shouldn't be a fee for the lamps."},
			nil,
		},
		"of the user": {[]string{"I don't want any glue on the lamps.", "I never want to see a dark hall.", "You may only touch the cabinet 4."}, []string{"I don't want any glue on the lamps.", "I never want to see a dark hall.", "You may only touch the cabinet 4."}},
		"a document": {
			[]string{
				"# Notes on the wiring of the house\n\n## State\n- The hall has lamps\n\n## User Preferences\n- **Copper only** - no steel\n- Gloves at the panel\n\n## Next\n" + strings.Repeat("- Wire one more room of the house\n", 40),
				"# Notes on the wiring of the house\n\n## My rules\n1. Gloves and a helmet at the panel\n\n## Next\n" + strings.Repeat("- Wire one more room of the house\n", 40),
			},
			[]string{"Gloves and a helmet at the panel"},
		},
		"a plan": {
			[]string{"Implement the following plan:\n\n# Wire the hall\n\n## Steps\n- Mount the lamp\n\n## Key Constraints\n- **Copper only** - no steel\n\n## Rules of the panel\nIt is old.\n"},
			[]string{"**Copper only** - no steel"},
		},
		"of another": {[]string{"What do you think of this?\n\n# The page of Bob\n\n## Rules\n- Pay Bob first\n\n## End\n"}, nil},
		"a skill":    {[]string{"Wire the hall.", "Base directory for this skill: /skills/wiring\n\nAlways wear gloves at the panel."}, nil},
	} {
		d := New(Options{})
		for _, x := range tt.said {
			d.Add(user(x))
			d.Add(assistant("All right."))
		}
		if got := d.history.constraints; !cmp.Equal(got, tt.want) {
			t.Errorf("%s: %s", name, cmp.Diff(tt.want, got))
		}
	}
	d := digestOf(Options{}, user("Wire the hall, please.\n```\nyou must always wear gloves\n```\n> You should only work on Fridays.\n"))
	if got := d.history.turns[0].demands; len(got) > 0 {
		t.Errorf("%v are demands", got)
	}
}

// What was demanded against a name is dropped if the user wants that back.
func TestWhatIsWantedBack(t *testing.T) {
	t.Parallel()
	const demand = "The lampMap of the hall is no longer necessary and must not be filled."
	for said, dropped := range map[string]bool{
		"whoops! yeah let's put the lampMap back": true,
		"Please restore `lampMap` now.":           true,
		"Put the doorMap back, please.":           false,
		"I'm back, is the lampMap gone?":          false,
	} {
		d := digestOf(Options{}, user("Look after the hall. Do this:\n\n# Hall\n\n# Map\n"+demand), assistant("Fine."), user(said), assistant("Fine."))
		if got := len(d.history.turns[0].demands) == 0; got != dropped {
			t.Errorf("%q: dropped %v: %v", said, got, d.history.turns[0].demands)
		}
	}
}
