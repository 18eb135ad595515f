package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// The codes of guards, on the runs that they end and on the sessions that they hold.
const (
	CodeMinInterval    = "min_interval"
	CodeMaxPerHour     = "max_per_hour"
	CodeMaxPerDay      = "max_per_day"
	CodeMidTurn        = "mid_turn"
	CodeOpenToolLoop   = "open_tool_loop"
	CodeServiceManaged = "service_managed"
)

// The values of Guards.MidTurn and Guards.OpenToolCall.
const (
	GuardWait    = "wait"    // an automatic run waits, as long as the view fits into the window
	GuardCompact = "compact" // it does not
)

// lowGainRuns is the number of automatic runs in a row, each with less than MinGainShare to
// save, at which one is discarded.
const lowGainRuns = 2

// Guards hold automatic runs of a session back.
type Guards struct {
	// MinInterval is the minimum time between two automatic runs that change the view.
	MinInterval time.Duration `yaml:"min_interval" json:"min_interval"`
	// MaxPerHour and MaxPerDay are the maximum numbers of such runs in any hour and in any
	// 24 hours; 0 for no limit.
	MaxPerHour int `yaml:"max_per_hour" json:"max_per_hour"`
	MaxPerDay  int `yaml:"max_per_day" json:"max_per_day"`
	// MinGainShare is a fraction of the view. The second run in a row that would save less
	// is discarded as ineffective, and the session waits for new messages; 0 disables this.
	MinGainShare float64 `yaml:"min_gain_share" json:"min_gain_share"`
	// Quarantine takes sessions out of automatic compaction whose messages that must stay
	// exceed the start, until there is a new message or another policy.
	Quarantine bool `yaml:"quarantine" json:"quarantine"`
	// MidTurn says whether a run waits for the agent's answer to the last message, and
	// OpenToolCall, whether for the results of tool calls. With signed reasoning in an open
	// tool loop a run always waits.
	MidTurn      string `yaml:"mid_turn" json:"mid_turn"`
	OpenToolCall string `yaml:"open_tool_call" json:"open_tool_call"`
	// AutoCompactLimits are starts in tokens by model prefix, as in Windows, where that is
	// less than Start. The target is scaled.
	AutoCompactLimits map[string]chat.Tokens `yaml:"auto_compact_limits" json:"auto_compact_limits,omitempty"`
	// ServiceManaged leaves sessions alone whose history another service manages, as does
	// the label service_managed=true.
	ServiceManaged bool `yaml:"service_managed" json:"service_managed"`
}

// DefaultGuards returns the default guards.
func DefaultGuards() Guards {
	return Guards{MinGainShare: 0.10, Quarantine: true, MidTurn: GuardCompact, OpenToolCall: GuardCompact}
}

const (
	day           = 24 * time.Hour
	maxInterval   = 30 * day
	maxRunsPerDay = 1000
)

// Rates reports whether a guard counts runs.
func (g Guards) Rates() bool { return g.MinInterval > 0 || g.MaxPerHour > 0 || g.MaxPerDay > 0 }

// Lookback returns the maximum number and age of the latest runs that Rate needs.
func (g Guards) Lookback() (runs int, age time.Duration) {
	return max(1, g.MaxPerHour, g.MaxPerDay), max(g.MinInterval, day)
}

// Rate returns the guard that holds back an automatic run, and for how long, "" if none
// does. ages are the times since the latest automatic runs that changed the view, in
// ascending order. Of several guards the one that holds longest counts.
func (g Guards) Rate(ages []time.Duration) (code string, wait time.Duration) {
	hold := func(c string, n int, over time.Duration) {
		if n <= 0 || len(ages) < n {
			return
		}
		if left := over - ages[n-1]; left > wait {
			code, wait = c, left
		}
	}
	hold(CodeMinInterval, 1, g.MinInterval)
	hold(CodeMaxPerHour, g.MaxPerHour, time.Hour)
	hold(CodeMaxPerDay, g.MaxPerDay, day)
	return code, wait
}

// LowGain reports whether a run that saves so much of a view has little to save.
func (g Guards) LowGain(gain, view chat.Tokens) bool {
	return float64(gain) < g.MinGainShare*float64(view)
}

// Ineffective reports whether a run with little to save is discarded after so many in a row.
func (g Guards) Ineffective(before int) bool { return before+1 >= lowGainRuns }

// limit returns the start of a model in AutoCompactLimits, 0 for none.
func (g Guards) limit(model string) (prefix string, start chat.Tokens) {
	prefix = longestPrefix(model, maps.Keys(g.AutoCompactLimits))
	return prefix, g.AutoCompactLimits[prefix]
}

func (p Policy) validateGuards(fs *FieldErrors) {
	g := p.Guards
	fs.Prefix = "guards."
	defer func() { fs.Prefix = "" }()
	CheckRange(fs, "min_interval", g.MinInterval, 0, maxInterval)
	CheckRange(fs, "max_per_hour", g.MaxPerHour, 0, maxRunsPerDay)
	CheckRange(fs, "max_per_day", g.MaxPerDay, 0, maxRunsPerDay)
	for _, x := range []struct {
		key string
		n   int
		in  time.Duration
	}{{"max_per_hour", g.MaxPerHour, time.Hour}, {"max_per_day", g.MaxPerDay, day}} {
		if x.n > 0 && g.MinInterval > 0 {
			fs.Check(time.Duration(x.n)*g.MinInterval < x.in, x.key, x.n, "less than the %d that min_interval (%s) allows, or it has no effect",
				max(1, (x.in+g.MinInterval-1)/g.MinInterval), Text(g.MinInterval))
		}
	}
	if g.MaxPerHour > 0 && g.MaxPerDay > 0 {
		fs.Check(g.MaxPerHour < g.MaxPerDay, "max_per_hour", g.MaxPerHour, "less than max_per_day (%d), or it has no effect", g.MaxPerDay)
		fs.Check(g.MaxPerDay < 24*g.MaxPerHour, "max_per_day", g.MaxPerDay, "less than 24 × max_per_hour (%d), or it has no effect", 24*g.MaxPerHour)
	}
	fs.Check(g.MinGainShare >= 0 && g.MinGainShare < 1, "min_gain_share", g.MinGainShare, "a fraction of the view, 0 to less than 1")
	if most := p.mostGain(); g.MinGainShare < 1 && most > 0 {
		fs.Check(g.MinGainShare <= most+1e-9, "min_gain_share", g.MinGainShare, "at most what a run from a full window to the target saves (%.2g)", most)
	}
	fs.CheckOneOf("mid_turn", g.MidTurn, GuardWait, GuardCompact)
	fs.CheckOneOf("open_tool_call", g.OpenToolCall, GuardWait, GuardCompact)
	for _, k := range slices.Sorted(maps.Keys(g.AutoCompactLimits)) {
		key, limit := "auto_compact_limits["+k+"]", g.AutoCompactLimits[k]
		fs.Check(k != "", "auto_compact_limits", `""`, "a model name or its beginning as the key")
		CheckRange(fs, key, limit, 2, maxTokens)
		if p.StartTokens > 0 {
			fs.Check(limit < p.StartTokens, key, limit, "less than start_tokens (%d), or it has no effect", p.StartTokens)
		}
	}
}

// mostGain returns the fraction of the view that a run saves in a full window, 0 if it is
// unknown.
func (p Policy) mostGain() float64 {
	switch {
	case p.StartTokens == 0 && p.Target < 1:
		return 1 - p.Target
	case p.TargetTokens < p.WindowTokens:
		return 1 - float64(p.TargetTokens)/float64(p.WindowTokens)
	}
	return 0
}

// explain describes the guards that are set, one line each.
func (g Guards) explain() (lines []string) {
	say := func(ok bool, format string, args ...any) {
		if ok {
			lines = append(lines, fmt.Sprintf("guard: "+format, args...))
		}
	}
	say(g.ServiceManaged, "automatic runs leave these sessions alone, as a service manages their history")
	say(g.MinInterval > 0, "%s between two automatic runs", Text(g.MinInterval))
	say(g.MaxPerHour > 0, "at most %d automatic runs an hour", g.MaxPerHour)
	say(g.MaxPerDay > 0, "at most %d automatic runs in 24 hours", g.MaxPerDay)
	say(g.MinGainShare > 0, "the second run in a row that would save less than %s %% is discarded", number(100*g.MinGainShare))
	say(g.Quarantine, "a session whose messages that must stay exceed the start waits for a new one")
	say(g.MidTurn == GuardWait, "runs wait for the agent's answer, up to the window")
	say(g.OpenToolCall == GuardWait, "runs wait for the results of tool calls, up to the window")
	return lines
}

// MarshalJSON writes durations as text ("2s").
func (g Guards) MarshalJSON() ([]byte, error) {
	type plain Guards
	return json.Marshal(struct {
		plain
		MinInterval string `json:"min_interval"`
	}{plain(g), g.MinInterval.String()})
}

// UnmarshalJSON implements json.Unmarshaler as that of Policy does.
func (g *Guards) UnmarshalJSON(raw []byte) error {
	type plain Guards
	return readStrictly(raw, &struct {
		*plain
		MinInterval duration `json:"min_interval"`
	}{(*plain)(g), duration{&g.MinInterval}})
}
