package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

func trigger(when string) Policy {
	return with(func(p *Policy) { p.Triggers = []Trigger{{Name: "t", When: When(when)}} })
}

// Every word below, at and above a limit.
func TestTriggersHoldAtTheirLimits(t *testing.T) {
	t.Parallel()
	tokens := func(f *Facts, n int64) { f.Tokens = chat.Tokens(n) }
	over, from, only := [3]bool{false, false, true}, [3]bool{false, true, true}, [3]bool{false, true, false}
	tests := map[string]struct {
		set  func(f *Facts, n int64)
		at   int64
		want [3]bool
	}{
		"tokens > 60000":                {tokens, 60_000, over},
		"tokens >= 60000":               {tokens, 60_000, from},
		"tokens > start":                {tokens, 75_000, over},
		"tokens > window * 6 / 10":      {tokens, 60_000, over},
		"used > 0.6":                    {tokens, 60_000, over},
		"used >= 0.6":                   {tokens, 60_000, from},
		"headroom < 30000":              {tokens, 70_000, over},
		"headroom <= 30000":             {tokens, 70_000, from},
		"not (used <= 0.6)":             {tokens, 60_000, over},
		"tokens > 60000 and used < 0.9": {tokens, 90_000, [3]bool{true, false, false}},
		"messages >= 30":                {func(f *Facts, n int64) { f.Messages = n }, 30, from},
		"turns > 30":                    {func(f *Facts, n int64) { f.Turns = n }, 30, over},
		"tokens_since_run >= 8000":      {func(f *Facts, n int64) { f.NewTokens = chat.Tokens(n) }, 8000, from},
		"messages_since_run > 50":       {func(f *Facts, n int64) { f.NewMessages = n }, 50, over},
		"turns_since_run == 5":          {func(f *Facts, n int64) { f.NewTurns = n }, 5, only},
		"tool_rounds >= 10":             {func(f *Facts, n int64) { f.ToolRounds = n }, 10, from},
		"tool_output > 4000":            {func(f *Facts, n int64) { f.ToolOutput = chat.Tokens(n) }, 4000, over},
		"idle >= 2 * hour":              {func(f *Facts, n int64) { f.Idle = time.Duration(n) }, int64(2 * time.Hour), from},
		"idle > 90 * minute && tokens > 60000 || idle > 1 * day": {
			func(f *Facts, n int64) { f.Idle, f.Tokens = 2*time.Hour, chat.Tokens(n) }, 60_000, over,
		},
		"age > 7 * day":                         {func(f *Facts, n int64) { f.Age = time.Duration(n) }, int64(7 * day), over},
		"time_since_run >= 6 * hour":            {func(f *Facts, n int64) { f.SinceRun = time.Duration(n) }, int64(6 * time.Hour), from},
		"used > 0.6 && turn_completed":          {func(f *Facts, n int64) { f.Tokens, f.TurnCompleted = 70_000, n == 1 }, 1, only},
		"closed || used > 0.6":                  {func(f *Facts, n int64) { f.Signals = []Signals{0, Closed, Overflow | HasPendingInput}[n] }, 1, only},
		"child_closed":                          {func(f *Facts, n int64) { f.Signals = []Signals{0, ChildClosed, Closed}[n] }, 1, only},
		"overflow":                              {func(f *Facts, n int64) { f.Signals = []Signals{0, Overflow, Closed}[n] }, 1, only},
		"needs_follow_up && !has_pending_input": {func(f *Facts, n int64) { f.Signals = []Signals{0, NeedsFollowUp, NeedsFollowUp | HasPendingInput}[n] }, 1, only},
	}
	seen := map[string]bool{"window": true, "start": true}
	for when, tt := range tests {
		c := trigger(when).Compiled()
		if len(c) != 1 {
			t.Errorf("%s: %v", when, trigger(when).Validate())
			continue
		}
		var got [3]bool // below, at and above the limit
		for i := range got {
			f := Facts{Tokens: 50_000, Window: 100_000, Start: 75_000, TurnCompleted: true}
			tt.set(&f, tt.at-1+int64(i))
			got[i] = c[0].Holds(&f)
		}
		if got != tt.want {
			t.Errorf("%s: %v below, at and above, want %v", when, got, tt.want)
		}
		for _, w := range c[0].Words {
			seen[w.Name] = true
		}
	}
	for _, w := range Vocabulary() {
		if !seen[w.Name] {
			t.Errorf("no test uses %s", w.Name)
		}
	}
}

func TestTheDatabaseComparesWhatIsNecessary(t *testing.T) {
	t.Parallel()
	never := func(c Counts) Bounds { return Bounds{Never, c} }
	tests := map[string]Bounds{ // of a window of 128,000, with a target of 64,000
		"used > 0.75":                                       {96_000, Counts{}},
		"used >= 0.75":                                      {95_999, Counts{}},
		"0.75 < used":                                       {96_000, Counts{}},
		"used > 0.75 && turn_completed":                     {96_000, Counts{}},
		"tokens > 100000 or used > 0.9":                     {100_000, Counts{}},
		"tokens > 100000 and used > 0.9":                    {115_200, Counts{}},
		"headroom < 28000":                                  {100_000, Counts{}},
		"headroom <= 0.25 * window":                         {95_999, Counts{}},
		"tokens > start + 1000":                             {97_000, Counts{}},
		"not (used <= 0.75 || !turn_completed)":             {96_000, Counts{}},
		"messages_since_run >= 50":                          never(Counts{NewMessages: 50}),
		"messages_since_run > 50 && used > 0.3":             never(Counts{NewMessages: 51}),
		"messages_since_run > 50 && used > 0.8":             {102_400, Counts{}},
		"turns_since_run >= 4.5 and messages_since_run > 9": never(Counts{NewTurns: 5}),
		"tokens_since_run >= 9000":                          never(Counts{NewTokens: 9000}),
		"tool_output > 4000 && turn_completed":              never(Counts{NewTokens: 4001}),
		"tool_rounds >= 10":                                 never(Counts{NewMessages: 10}),
		"messages > 300":                                    never(Counts{Messages: 301}),
		"turns >= 30":                                       never(Counts{Messages: 30}),
		"closed && tokens > 5000":                           never(Counts{Signals: int(Closed)}),
		"child_closed && used > 0.6":                        never(Counts{Signals: int(ChildClosed)}),
		"overflow || messages_since_run > 9 || used > 0.9":  {115_200, Counts{NewMessages: 10, Signals: int(Overflow)}},
		"needs_follow_up && used > 0.6":                     {76_800, Counts{}},
		"needs_follow_up && not has_pending_input":          never(Counts{Signals: int(NeedsFollowUp)}),
		"idle >= 1 * day":                                   never(Counts{Idle: 86_400, IdleTokens: 64_000}),
		"idle > 1 * hour && used > 0.6 && turn_completed":   never(Counts{Idle: 3601, IdleTokens: 76_800}),
		"age >= 7 * day":                                    never(Counts{Age: 604_800, IdleTokens: 64_000}),
		"age > 7 * day && used > 0.3 && closed":             never(Counts{Age: 604_801, IdleTokens: 64_000}),
		"time_since_run >= 6 * hour && used > 0.6":          never(Counts{SinceRun: 21_600, IdleTokens: 76_800}),
		"time_since_run >= 6 * hour && age >= 1 * day":      never(Counts{SinceRun: 21_600, IdleTokens: 64_000}),
		"idle >= 1 * hour && age >= 1 * day":                never(Counts{Idle: 3600, IdleTokens: 64_000}),
		"time_since_run >= 6 * hour || used > 0.75":         {96_000, Counts{SinceRun: 21_600, IdleTokens: 64_000}},
		"idle >= 1 * day || used > 0.75":                    {96_000, Counts{Idle: 86_400, IdleTokens: 64_000}},
		"false || used > 0.75":                              {96_000, Counts{}},
	}
	for when, want := range tests {
		p := trigger(when)
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if got := p.Bounds("gpt-4o", table); got != want {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	p := trigger("used > 0.75")
	p.Triggers = append(p.Triggers, Trigger{Name: "long", When: "turns_since_run >= 20", Target: 0.3}, Trigger{Name: "longer", When: "turns_since_run >= 30"})
	if got, want := p.Bounds("gpt-4o", table), (Bounds{96_000, Counts{NewTurns: 20}}); got != want {
		t.Errorf("of several: %+v, want %+v", got, want)
	}
	if got := Default().Bounds("gpt-4o", table); got != (Bounds{Tokens: 96_000}) {
		t.Errorf("without triggers: %+v", got)
	}
}

// Whatever a condition compares, where it holds the database finds the session.
func TestASessionWhoseTriggerHoldsIsFound(t *testing.T) {
	t.Parallel()
	for _, when := range []string{
		"used > 0.7", "used >= 0.7", "used > 0.29", "headroom < 0.3 * window", "headroom <= 3", "tokens >= 7.5", "tokens == 8", "not (tokens < 8)",
		"tokens > 7 && messages > 2 || messages_since_run >= 3", "tokens > 6 && (turns_since_run > 1 || tokens > 8)",
	} {
		p := trigger(when)
		p.WindowTokens, p.Start, p.Target, p.MinGainTokens = 10, 0.3, 0.2, 0
		b, c := p.Bounds("m", nil), p.Compiled()
		for i := range 11 * 5 * 5 * 4 {
			f := p.Facts("m", nil)
			f.Tokens, f.Messages, f.NewMessages, f.NewTurns = chat.Tokens(i%11), int64(i/11%5), int64(i/55%5), int64(i/275)
			due := f.Tokens > b.Tokens || b.NewMessages > 0 && f.NewMessages >= b.NewMessages || b.NewTurns > 0 && f.NewTurns >= b.NewTurns || b.Messages > 0 && f.Messages >= b.Messages
			if c[0].Holds(&f) && !due {
				t.Fatalf("%s holds for %+v, which %+v does not find", when, f, b)
			}
		}
	}
}

// From their time on, all larger than the target are found where a condition holds, and Wait finds
// that time.
func TestASessionWhoseTimeHasComeIsFound(t *testing.T) {
	t.Parallel()
	for _, when := range []string{
		"age >= 2 * hour", "age > 1 * hour && tokens > 6", "time_since_run >= 2 * hour && messages > 2", "not (age < 3 * hour)",
		"age >= 3 * hour || time_since_run > 1 * hour && tokens >= 5", "time_since_run >= 1 * hour && age >= 3 * hour", "idle >= 1 * hour && age >= 3 * hour",
	} {
		p := trigger(when)
		p.WindowTokens, p.Start, p.Target, p.MinGainTokens = 10, 0.3, 0.2, 0
		l, b, c := p.Limits("m", nil), p.Bounds("m", nil), p.Compiled()
		for i := range 8 * 4 * 5 * 5 * 3 {
			f := p.Facts("m", nil)
			f.Tokens, f.Messages = chat.Tokens(3+i%8), int64(i/8%4)
			f.Age, f.SinceRun, f.Idle = time.Duration(i/32%5)*time.Hour, time.Duration(i/160%5)*time.Hour, time.Duration(i/800)*time.Hour
			due := f.Tokens > b.DueAbove(f.Age, f.SinceRun) || b.Idle > 0 && f.Idle.Seconds() >= float64(b.Idle)
			if c[0].Holds(&f) && !due {
				t.Fatalf("%s holds for %+v, which %+v does not find", when, f, b)
			}
			if wait := time.Duration(Wait(c, l, f)) * time.Second; !c[0].Holds(&f) && wait == 0 {
				f.Age, f.SinceRun, f.Idle = f.Age+9*time.Hour, f.SinceRun+9*time.Hour, f.Idle+9*time.Hour
				if c[0].Holds(&f) {
					t.Fatalf("%s will hold for %+v, and there is no time to look at it", when, f)
				}
			}
		}
	}
}

func TestBoundsAreLowerOnceATimeHasCome(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		when          string
		age, sinceRun time.Duration
		want          chat.Tokens
	}{
		"young":          {"age >= 1 * hour && used > 0.6", time.Hour - 1, 0, Never},
		"old enough":     {"age >= 1 * hour && used > 0.6", time.Hour, 0, 76_800},
		"old":            {"age >= 1 * hour && used > 0.6 || used > 0.9", 2 * time.Hour, 0, 76_800},
		"just run":       {"time_since_run >= 1 * hour || used > 0.9", 9 * time.Hour, time.Hour - 1, 115_200},
		"an hour later":  {"time_since_run >= 1 * hour || used > 0.9", 9 * time.Hour, time.Hour, 64_000},
		"an idle one":    {"idle >= 1 * hour && age >= 1 * hour", 9 * time.Hour, 9 * time.Hour, Never},
		"without a time": {"used > 0.75", 9 * time.Hour, 9 * time.Hour, 96_000},
	}
	for name, tt := range tests {
		if got := trigger(tt.when).Bounds("gpt-4o", table).DueAbove(tt.age, tt.sinceRun); got != tt.want {
			t.Errorf("%s: due above %d tokens, want %d", name, got, tt.want)
		}
	}
}

func TestTheNextTimeIsThatOfTheFirstAlternative(t *testing.T) {
	t.Parallel()
	at := Facts{Idle: 10 * time.Minute, Age: 3 * time.Hour, SinceRun: time.Hour}
	for when, want := range map[string]time.Duration{
		"used > 0.75":                             0,
		"idle >= 1 * hour":                        50 * time.Minute,
		"idle >= 10 * minute":                     0,
		"age >= 3 * hour":                         0,
		"age >= 4 * hour && used > 0.6":           time.Hour,
		"time_since_run >= 6 * hour":              5 * time.Hour,
		"idle >= 1 * hour && age >= 5 * hour":     2 * time.Hour,
		"idle >= 1 * hour || age >= 5 * hour":     50 * time.Minute,
		"age >= 1 * hour || age >= 5 * hour":      2 * time.Hour,
		"time_since_run < 6 * hour && used > 0.9": 0,
	} {
		p := trigger(when)
		if got := Wait(p.Compiled(), p.Limits("gpt-4o", table), at); got != want.Seconds() {
			t.Errorf("%s: in %v seconds, want %v", when, got, want.Seconds())
		}
	}
}

func TestTriggersAreValidated(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		"":                                  `triggers[0].when: "": want a condition over the words`,
		"used":                              "expected bool, but got float64",
		"usd > 0.5":                         "unknown name usd (1:1)",
		"used > ":                           "unexpected token EOF",
		`used > "x"`:                        "invalid operation: > (mismatched types float64 and string)",
		"len([1,2]) > 1":                    "unknown name len",
		"all([1], # > 0)":                   "and nothing else",
		"tokens in [1, 2]":                  "and nothing else",
		"tokens in 1..3":                    "and nothing else",
		"(used > 0.5 ? closed : overflow)":  "and nothing else",
		"tokens ** 2 > 5":                   "and nothing else",
		"let x = tokens; x > 70000":         "and nothing else",
		"turn_completed":                    "in each alternative of || something that the database compares",
		"used > 0.75 || turn_completed":     "in each alternative of || something that the database compares",
		"used < 0.75":                       "in each alternative of || something that the database compares",
		"tokens - tokens_since_run > 70000": "in each alternative of || something that the database compares",
		"closed && false":                   "a condition that can be true",
		"used > 0.5":                        "a size above the target: of a window of 128,000 tokens, 64,000 would make a session due that is to shrink to 64,000",
		strings.Repeat("closed || ", 300) + "closed": "at most 2000 characters",
		strings.Repeat("used>1||", 150) + "closed":   "want a condition over the words",
	} {
		err := trigger(when).Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", when, err, want)
		}
	}
	p := with(func(p *Policy) {
		p.Triggers = []Trigger{{Name: "a", When: "closed", Target: 1}, {Name: "a", When: "closed"}, {When: "used > 0.3", Target: 0.3}}
	})
	want := `triggers[0].target: 1: want a fraction of the window, less than 1; 0 for that of the policy
triggers[1].name: "a": want a name of its own, of at most 63 characters
triggers[2].name: "": want a name of its own, of at most 63 characters
triggers[2].when: "used > 0.3": want a size above the target: of a window of 128,000 tokens, 38,400 would make a session due that is to shrink to 38,400`
	if err := p.Validate(); err == nil || cmp.Diff(want, err.Error()) != "" {
		t.Error(cmp.Diff(want, err.Error()))
	}
}

func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	p := with(func(p *Policy) { p.Triggers = Examples() })
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for _, c := range p.Compiled() {
		for _, w := range c.Words {
			seen[w.Name] = true
		}
	}
	for _, w := range Vocabulary() {
		if w.Bool() && !seen[w.Name] {
			t.Errorf("no example uses %s", w.Name)
		}
	}
}

func TestLimitsFollowTheTriggers(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]Limits{
		"used > 0.9":                            {128_000, 115_200, 64_000, true},
		"turns_since_run >= 30":                 {128_000, 96_000, 64_000, true},
		"tokens > 80000 || turns_since_run > 9": {128_000, 80_000, 64_000, true},
	} {
		if got := trigger(when).Limits("gpt-4o", table); got != want {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	if got, want := trigger("tokens > 80000").Limits("gpt-4", table), (Limits{8192, 8192, 4096, true}); got != want {
		t.Errorf("in a small window: %+v, want %+v", got, want)
	}
	l := Default().Limits("gpt-4o", table).WithTarget(Trigger{Target: 0.25})
	if l.Target != 32_000 {
		t.Errorf("the target of a trigger: %+v", l)
	}
}

func TestASpecHoldsTriggers(t *testing.T) {
	t.Parallel()
	p := trigger("used > 0.75 && turn_completed")
	p.Triggers[0].Target = 0.25
	got, err := ReadSpec(spec(t, p))
	if err != nil || cmp.Diff(p.Triggers, got.Triggers) != "" || got.FleetHash() != p.FleetHash() {
		t.Errorf("%+v, %v", got.Triggers, err)
	}
	if p.FleetHash() == Default().FleetHash() {
		t.Error("triggers do not change the hash")
	}
	raw, _ := json.Marshal(map[string]any{"triggers": []any{map[string]any{"name": "t", "when": "used > 0.75", "if": "x"}}})
	if _, err := ReadSpec(raw); err == nil {
		t.Error("an unknown key of a trigger is read")
	}
	fill := func(_ string, params map[string]any, _ Values) map[string]any { return params }
	if lines := p.Explain("gpt-4o", table, fill); lines[2] != "trigger t: used > 0.75 && turn_completed, down to 32,000 tokens" {
		t.Errorf("%q", lines)
	}
	c := p.Compiled()[0]
	f := Facts{Tokens: 79_360, Window: 128_000}
	if got := strings.Join(c.Values(&f), ", "); got != "used 0.62, turn_completed false" {
		t.Errorf("values: %s", got)
	}
}

func TestTimesAreComparedWithUnits(t *testing.T) {
	t.Parallel()
	for when, word := range map[string]string{
		"idle > 5": "idle", "5 < age": "age", "tokens > 100 && idle >= 2 * 3": "idle", "time_since_run > 0.5": "time_since_run",
		"idle > 5 * minute": "", "idle / hour > 5": "", "age > time_since_run": "", "idle > 0": "", "tokens > 5": "", "idle > turns": "",
	} {
		p := Default()
		p.Triggers = []Trigger{{Name: "x", When: When(when)}}
		err := p.Validate()
		if says := fmt.Sprint(err); strings.Contains(says, "hour or day") != (word != "") || !strings.Contains(says, word) {
			t.Errorf("%s: %v", when, err)
		}
	}
}
