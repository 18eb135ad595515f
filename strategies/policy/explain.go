package policy

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Explain describes the policy as resolved for a model, one line per setting, with the
// arithmetic.
func (p Policy) Explain(model string, table WindowFunc, fill FillFunc) []string {
	l := p.Limits(model, table)
	_, origin, _ := p.window(model, table)
	prefix, limit := p.Guards.limit(model)
	if model == "" {
		model = "no model"
	}
	window := "window " + chat.Thousands(l.Window)
	how := func(tokens, given chat.Tokens, key string, f float64) string {
		switch {
		case len(p.Triggers) > 0 && key == "start_tokens":
			return fmt.Sprintf("= the least size that a trigger compares, or else the start (%s %s, %s)", model, window, origin)
		case limit == l.Start && key == "start_tokens":
			return fmt.Sprintf("= policy.guards.auto_compact_limits[%s] (%s)", prefix, model)
		case limit == l.Start:
			return fmt.Sprintf("= start × target / start of the policy (%s, %s)", window, origin)
		case given > 0 && given == tokens:
			return fmt.Sprintf("= policy.%s (%s %s, %s)", key, model, window, origin)
		case given > 0:
			return fmt.Sprintf("= policy.%s %s, cut to fit %s (%s, %s)", key, chat.Thousands(given), window, model, origin)
		}
		return fmt.Sprintf("= %s × %s (%s, %s)", number(f), window, model, origin)
	}
	lines := []string{
		fmt.Sprintf("start %s tokens %s", chat.Thousands(l.Start), how(l.Start, p.StartTokens, "start_tokens", p.Start)),
		fmt.Sprintf("target %s tokens %s", chat.Thousands(l.Target), how(l.Target, p.TargetTokens, "target_tokens", p.Target)),
	}
	if p.TargetTurns > 0 {
		lines = append(lines, fmt.Sprintf("target of a session: less, down to %s tokens, for %d of its turns", chat.Thousands(max(1, l.Target/4)), p.TargetTurns))
	}
	for _, t := range p.Triggers {
		line := fmt.Sprintf("trigger %s: %s", t.Name, t.When)
		if t.Target > 0 {
			line += fmt.Sprintf(", down to %s tokens", chat.Thousands(l.WithTarget(t).Target))
		}
		lines = append(lines, line)
	}
	for i, s := range p.Steps(l, fill) {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("step %d %s %s", i+1, s.Strategy, params(s.Params))))
	}
	if p.Fallback {
		lines = append(lines, "fallback: the oldest groups go until the target is met")
	} else {
		lines = append(lines, "fallback: none, a run may end above the target")
	}
	s := p.Summary
	most := s.Size.Budget(l.Window, l.Window)
	line := fmt.Sprintf("summaries: %s %% of the messages they cover, %s to %s tokens, ",
		number(100*s.Size.Share), chat.Thousands(min(s.Size.Min, most)), chat.Thousands(most))
	if s.Writer == WriterExtractive {
		line += "without a model"
	} else {
		line += fmt.Sprintf("and references of %s %% beside a model's prose; if none can be written: %s", number(100*s.References), s.OnFailure)
	}
	if limit := s.Size.Limit(l.Target); s.Size.Prose(limit, s.References) < most {
		line += fmt.Sprintf("; all of a summary %s tokens at most (%s %% of the target)", chat.Thousands(limit), number(100*s.Size.TargetShare))
	}
	lines = append(lines, line)
	if len(p.PinTools) > 0 {
		lines = append(lines, "pinned: calls and results of "+strings.Join(p.PinTools, ", "))
	}
	if len(p.PinPaths) > 0 {
		line := "pinned: results of reading " + strings.Join(p.PinPaths, ", ")
		if !p.PinsAnyway() {
			line += ", if a step reads messages"
		}
		lines = append(lines, line)
	}
	gain := fmt.Sprintf("gain: a run that saves less than %s tokens is discarded, then %s of cooldown", chat.Thousands(p.MinGainTokens), p.Cooldown)
	if most := l.Start - l.Target; p.MinGainTokens > most {
		gain += fmt.Sprintf(" (more than the %s between start and target: the first runs above start will be discarded)", chat.Thousands(most))
	}
	return append(append(append(append(lines, gain), p.Guards.explain()...), p.Retention.explain()...),
		fmt.Sprintf("estimated counts: + %s %%", number(100*p.EstimateMargin)),
		fmt.Sprintf("events: %s after the last write, %s after the first at the latest", p.Debounce, p.MaxDelay),
	)
}

func params(m map[string]any) string {
	b, err := json.Marshal(m)
	if err != nil || len(m) == 0 {
		return ""
	}
	return string(b)
}

func number(f float64) string {
	return strconv.FormatFloat(f, 'f', -1, 64)
}
