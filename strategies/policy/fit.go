package policy

import "math"

// Fit returns the policy with defaults that contradict no value that was given: given
// reports whether a setting was, by its key ("guards.min_gain_share"). A start or a target
// alone decides the other one, in the proportion of the defaults, and a setting that is bounded
// by another one is lowered or raised to that bound. Settings that were given never
// change: contradictions between them are errors of Validate.
func (p Policy) Fit(given func(key string) bool) Policy {
	d := Default()
	if p.Target >= p.Start && p.Start > 0 && p.Target < 1 {
		switch {
		case !given("target"):
			p.Target = round(p.Start * d.Target / d.Start)
		case !given("start"):
			p.Start = min(1, round(p.Target*d.Start/d.Target))
		}
	}
	switch share := p.Target / p.Start; {
	case p.TargetTokens > 0 && !given("start_tokens") && !given("start") && p.StartTokens <= p.TargetTokens:
		p.StartTokens = max(p.TargetTokens+1, fraction(p.TargetTokens, 1/share))
		if p.WindowTokens > p.TargetTokens {
			p.StartTokens = min(p.StartTokens, p.WindowTokens)
		}
	case p.StartTokens > 0 && !given("target_tokens") && !given("target") && (p.TargetTokens == 0 || p.TargetTokens >= p.StartTokens):
		p.TargetTokens = max(1, fraction(p.StartTokens, share))
	}
	if !given("target") && !given("target_tokens") && p.StartTokens == 0 {
		l := p.windowLimits("", nil)
		for _, t := range p.Compiled() { // a session is due above the size that it shrinks to
			if b, why := t.bounds(l, t.target(l)); t.Target == 0 && why == "" && b.Tokens != Never && b.Tokens <= l.Target {
				p.Target = min(p.Target, round(float64(b.Tokens)/float64(l.Window)*d.Target/d.Start))
			}
		}
	}
	if !given("min_gain_tokens") {
		for _, g := range p.maxGains() {
			p.MinGainTokens = min(p.MinGainTokens, g.tokens)
		}
	}
	if most := p.mostGain(); most > 0 && !given("guards.min_gain_share") {
		p.Guards.MinGainShare = min(p.Guards.MinGainShare, most)
	}
	if p.MaxDelay < p.Debounce {
		switch {
		case !given("max_delay"):
			p.MaxDelay = p.Debounce
		case !given("debounce"):
			p.Debounce = p.MaxDelay
		}
	}
	if size := &p.Summary.Size; size.Max < size.Min {
		switch {
		case !given("summary.size.min_tokens"):
			size.Min = size.Max
		case !given("summary.size.max_tokens"):
			size.Max = size.Min
		}
	}
	return p
}

// round returns a fraction to three digits, unless they are too few.
func round(f float64) float64 {
	if r := math.Round(f*1000) / 1000; f >= 0.01 {
		return r
	}
	return f
}
