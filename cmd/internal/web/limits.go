package web

import (
	"errors"
	"math"
	"strconv"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

type limitsPage struct {
	Pauses listed[store.Pause]
	Limits []limited
}

// limited is a tenant, or all with an empty one, with limits.
type limited struct {
	store.Spending
	Uses []limitUse
}

// limitUse is one of the limits, and how much of it is used.
type limitUse struct {
	Of, Used, Limit string
	Share           float64 // in per cent, at most 100
	Reached         bool
}

func showLimits(q *request) (any, error) {
	p := &limitsPage{}
	var spending listed[store.Spending]
	if err := errors.Join(q.get(&p.Pauses, "/v1/pauses"), q.get(&spending, "/v1/limits")); err != nil {
		return nil, err
	}
	for _, s := range spending.Items {
		p.Limits = append(p.Limits, limited{s, usesOf(s)})
	}
	return p, nil
}

// usesOf returns the limits that are set, in the order of the form.
func usesOf(s store.Spending) (out []limitUse) {
	add := func(of string, used float64, limit *int64, text func(float64) string) {
		if limit != nil {
			l := float64(*limit)
			out = append(out, limitUse{of, text(used), text(l), used100(used, l), used >= l})
		}
	}
	cost := func(n float64) string { return money(n / 1e6) }
	count := func(n float64) string { return term.Count(int64(n)) }
	add("cost in an hour", float64(s.Hour), s.MicrosPerHour, cost)
	add("cost in a day", float64(s.Day), s.MicrosPerDay, cost)
	add("calls in an hour", float64(s.Calls), s.CallsPerHour, count)
	add("tokens in an hour", float64(s.Tokens), s.TokensPerHour, count)
	if l := s.RunsPerSecond; l != nil {
		text := func(n float64) string { return strconv.FormatFloat(n, 'g', 4, 64) }
		out = append(out, limitUse{"runs in a second", text(s.Started), text(*l), used100(s.Started, *l), s.Throttled > 0})
	}
	return out
}

// used100 returns how much of a limit is used, in per cent; a limit of 0 is used up.
func used100(used, limit float64) float64 {
	if limit <= 0 {
		return 100
	}
	return math.Min(100, math.Round(1000*used/limit)/10)
}

// Form returns the limits as the fields of the form have them, by the names of those.
func (l limited) Form() map[string]string {
	text := func(v *int64, by float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(float64(*v)/by, 'f', -1, 64)
	}
	out := map[string]string{
		"cost_micros_per_hour:micros": text(l.MicrosPerHour, 1e6), "cost_micros_per_day:micros": text(l.MicrosPerDay, 1e6),
		"calls_per_hour:number": text(l.CallsPerHour, 1), "tokens_per_hour:number": text(l.TokensPerHour, 1),
		"runs_per_second:number": "",
	}
	if l.RunsPerSecond != nil {
		out["runs_per_second:number"] = strconv.FormatFloat(*l.RunsPerSecond, 'f', -1, 64)
	}
	return out
}

// pauseLine returns the command line that makes or ends a pause.
func pauseLine(command string, p store.Pause) string {
	words := []any{"compactor", command}
	for _, x := range [][2]string{{"--tenant", p.Tenant}, {"--model", p.Model}, {"--policy", p.Policy}} {
		if x[1] != "" {
			words = append(words, x[0], x[1])
		}
	}
	if len(words) == 2 {
		words = append(words, "--all")
	}
	return shell(words...)
}
