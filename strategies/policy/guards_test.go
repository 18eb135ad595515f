package policy

import (
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestRateGuardsHoldAtTheirLimits(t *testing.T) {
	t.Parallel()
	ages := func(ages ...time.Duration) []time.Duration { return ages }
	ago := func(n int) (out []time.Duration) { // n runs, a minute apart
		for i := range n {
			out = append(out, time.Duration(i+1)*time.Minute)
		}
		return out
	}
	interval := Guards{MinInterval: 10 * time.Minute}
	hourly, daily := Guards{MaxPerHour: 2}, Guards{MaxPerDay: 3}
	tests := map[string]struct {
		g    Guards
		ages []time.Duration
		code string
		wait time.Duration
	}{
		"without guards":                     {Guards{}, ago(50), "", 0},
		"no run yet":                         {Guards{MinInterval: time.Hour, MaxPerHour: 1, MaxPerDay: 2}, nil, "", 0},
		"before the interval is over":        {interval, ages(10*time.Minute - 1), CodeMinInterval, 1},
		"when it is over":                    {interval, ages(10 * time.Minute), "", 0},
		"after it":                           {interval, ages(10*time.Minute + 1), "", 0},
		"only the last run counts for it":    {interval, ages(11*time.Minute, 12*time.Minute), "", 0},
		"one fewer than an hour may have":    {hourly, ages(time.Minute), "", 0},
		"as many as an hour may have":        {hourly, ages(time.Minute, 20*time.Minute), CodeMaxPerHour, 40 * time.Minute},
		"more than an hour may have":         {hourly, ago(9), CodeMaxPerHour, 58 * time.Minute},
		"one of them a moment less than old": {hourly, ages(time.Minute, time.Hour-1), CodeMaxPerHour, 1},
		"one of them an hour old":            {hourly, ages(time.Minute, time.Hour), "", 0},
		"one fewer than a day may have":      {daily, ago(2), "", 0},
		"as many as a day may have":          {daily, ages(time.Hour, 2*time.Hour, 20*time.Hour), CodeMaxPerDay, 4 * time.Hour},
		"one of them a day old":              {daily, ages(time.Hour, 2*time.Hour, 24*time.Hour), "", 0},
		"the one that holds longest counts":  {Guards{MinInterval: time.Hour, MaxPerHour: 2, MaxPerDay: 3}, ago(3), CodeMaxPerDay, 24*time.Hour - 3*time.Minute},
		"an interval longer than a day":      {Guards{MinInterval: 48 * time.Hour}, ages(25 * time.Hour), CodeMinInterval, 23 * time.Hour},
	}
	for name, tt := range tests {
		if code, wait := tt.g.Rate(tt.ages); code != tt.code || wait != tt.wait {
			t.Errorf("%s: held by %q for %s, want %q for %s", name, code, wait, tt.code, tt.wait)
		}
	}
	if n, age := (Guards{MinInterval: 48 * time.Hour, MaxPerDay: 7}).Lookback(); n != 7 || age != 48*time.Hour {
		t.Errorf("looks back at %d runs of %s", n, age)
	}
}

func TestLittleGainIsIneffectiveTheSecondTime(t *testing.T) {
	t.Parallel()
	g := DefaultGuards()
	for gain, low := range map[chat.Tokens]bool{0: true, 99: true, 100: false, 101: false} {
		if got := g.LowGain(gain, 1000); got != low {
			t.Errorf("saving %d of 1,000: low is %t, want %t", gain, got, low)
		}
	}
	if g.Ineffective(0) || !g.Ineffective(1) || !g.Ineffective(2) {
		t.Error("want the second run in a row discarded, and those after it")
	}
	if (Guards{}).LowGain(0, 1000) {
		t.Error("without the guard nothing is low")
	}
}

func TestALimitOfAModelBeatsTheFraction(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		limits map[string]chat.Tokens
		want   Limits
	}{
		"less than the start": {map[string]chat.Tokens{"gpt-4o": 48_000}, Limits{128_000, 48_000, 32_000, true}},
		"one less":            {map[string]chat.Tokens{"gpt-4o": 95_999}, Limits{128_000, 95_999, 63_999, true}},
		"the start":           {map[string]chat.Tokens{"gpt-4o": 96_000}, Limits{128_000, 96_000, 64_000, true}},
		"more than the start": {map[string]chat.Tokens{"gpt-4o": 96_001}, Limits{128_000, 96_000, 64_000, true}},
		"the longest prefix":  {map[string]chat.Tokens{"gpt": 9000, "gpt-4": 48_000}, Limits{128_000, 48_000, 32_000, true}},
		"of another model":    {map[string]chat.Tokens{"claude": 48_000}, Limits{128_000, 96_000, 64_000, true}},
	}
	for name, tt := range tests {
		p := Default()
		p.Guards.AutoCompactLimits = tt.limits
		if got := p.Limits("gpt-4o", table); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
	p := with(func(p *Policy) { p.Guards.AutoCompactLimits = map[string]chat.Tokens{"gpt": 48_000} })
	fill := func(_ string, params map[string]any, _ Values) map[string]any { return params }
	if lines := p.Explain("gpt-4o", table, fill); lines[0] != "start 48,000 tokens = policy.guards.auto_compact_limits[gpt] (gpt-4o)" {
		t.Errorf("%q", lines[:2])
	}
}

func TestGuardsAreValidated(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(p *Policy)
		want   string // "" for none
	}{
		"all of them": {func(p *Policy) {
			p.Guards = Guards{
				MinInterval: time.Minute, MaxPerHour: 10, MaxPerDay: 100, MinGainShare: 0.5, MidTurn: "wait", OpenToolCall: "wait",
				AutoCompactLimits: map[string]chat.Tokens{"gpt": 1000}, ServiceManaged: true,
			}
		}, ""},
		"a negative interval":         {func(p *Policy) { p.Guards.MinInterval = -1 }, "guards.min_interval: -1ns: want 0s to 720h"},
		"too many an hour":            {func(p *Policy) { p.Guards.MaxPerHour = 1001 }, "guards.max_per_hour: 1001: want 0 to 1000"},
		"an hour that cannot fill up": {func(p *Policy) { p.Guards.MinInterval, p.Guards.MaxPerHour = 30*time.Minute, 2 }, "guards.max_per_hour: 2: want less than the 2 that min_interval (30m) allows, or it has no effect"},
		"one that can":                {func(p *Policy) { p.Guards.MinInterval, p.Guards.MaxPerHour = 29*time.Minute, 2 }, ""},
		"a day that cannot fill up":   {func(p *Policy) { p.Guards.MaxPerHour, p.Guards.MaxPerDay = 1, 24 }, "guards.max_per_day: 24: want less than 24 × max_per_hour (24), or it has no effect"},
		"an hour that a day limits":   {func(p *Policy) { p.Guards.MaxPerHour, p.Guards.MaxPerDay = 5, 5 }, "guards.max_per_hour: 5: want less than max_per_day (5), or it has no effect"},
		"a share of all":              {func(p *Policy) { p.Guards.MinGainShare = 1 }, "guards.min_gain_share: 1: want a fraction of the view, 0 to less than 1"},
		"a share that none can save":  {func(p *Policy) { p.Guards.MinGainShare = 0.51 }, "guards.min_gain_share: 0.51: want at most what a run from a full window to the target saves (0.5)"},
		"an unknown way to wait":      {func(p *Policy) { p.Guards.MidTurn = "never" }, `guards.mid_turn: "never": want one of wait, compact`},
		"none":                        {func(p *Policy) { p.Guards.OpenToolCall = "" }, `guards.open_tool_call: "": want one of wait, compact`},
		"a limit of nothing":          {func(p *Policy) { p.Guards.AutoCompactLimits = map[string]chat.Tokens{"gpt": 1} }, "guards.auto_compact_limits[gpt]: 1: want 2 to 1000000000"},
		"a limit that another one cuts": {func(p *Policy) {
			p.StartTokens, p.TargetTokens = 8000, 4000
			p.Guards.AutoCompactLimits = map[string]chat.Tokens{"gpt": 8000}
		}, "guards.auto_compact_limits[gpt]: 8000: want less than start_tokens (8000), or it has no effect"},
	}
	for name, tt := range tests {
		got := ""
		if err := with(tt.change).Validate(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestTheTargetLeavesRoomForTurns(t *testing.T) {
	t.Parallel()
	l := Limits{Window: 100_000, Start: 75_000, Target: 50_000}
	for each, want := range map[chat.Tokens]chat.Tokens{
		0: 50_000, 100: 50_000, 833: 50_000, 834: 49_980, 1000: 45_000, 2000: 15_000, 2083: 12_510, 2084: 12_500, 9999: 12_500, // 30 turns of so many tokens
	} {
		if got := l.ForTurns(30, each).Target; got != want {
			t.Errorf("turns of %d tokens: target %d, want %d", each, got, want)
		}
	}
	if got := l.ForTurns(0, 9999); got != l {
		t.Errorf("without a number of turns: %+v", got)
	}
	p := with(func(p *Policy) { p.TargetTurns = 30 })
	fill := func(_ string, params map[string]any, _ Values) map[string]any { return params }
	if lines := p.Explain("gpt-4o", table, fill); lines[2] != "target of a session: less, down to 16,000 tokens, for 30 of its turns" {
		t.Errorf("%q", lines[:3])
	}
	p.TargetTurns = -1
	if err := p.Validate(); err == nil || err.Error() != "target_turns: -1: want 0 to 10000" {
		t.Error(err)
	}
}
