package policy

import "github.com/sessionstore/compactor/strategies/chat"

// Size holds the limits of the length of a summary. A model's text takes about a tenth of it.
type Size struct {
	// Share is the length of a summary as a fraction of the covered tokens.
	Share float64 `yaml:"share" json:"share"`
	// Min is the minimum budget, in tokens, within the limits below.
	Min chat.Tokens `yaml:"min_tokens" json:"min_tokens"`
	// Max, in tokens, and WindowShare, a fraction of the window, are the maximum: the
	// smaller applies, also against Min, so that no summary fills a small window.
	Max         chat.Tokens `yaml:"max_tokens" json:"max_tokens"`
	WindowShare float64     `yaml:"window_share" json:"window_share"`
	// TargetShare limits a summary with its references and everything put around it, as a
	// fraction of the target. It applies to explicit sizes too.
	TargetShare float64 `yaml:"target_share" json:"target_share"`
	// Slack is the output limit of a call as a multiple of its budget, so that the model
	// can end its last sentence.
	Slack float64 `yaml:"slack" json:"slack"`
}

// DefaultSize returns the default size.
func DefaultSize() Size {
	return Size{Share: 0.4, Min: 2000, Max: 12_000, WindowShare: 0.4, TargetShare: 0.75, Slack: 1.3}
}

func (s Size) validate(fs *FieldErrors) {
	fs.Check(s.Share > 0 && s.Share <= 1, "share", s.Share, "more than 0 and at most 1")
	fs.Check(s.Min >= 1, "min_tokens", s.Min, "at least 1")
	fs.Check(s.Max >= s.Min && s.Max <= maxTokens, "max_tokens", s.Max, "min_tokens to %d", maxTokens)
	fs.Check(s.WindowShare > 0 && s.WindowShare <= 1, "window_share", s.WindowShare, "more than 0 and at most 1")
	fs.Check(s.TargetShare > 0 && s.TargetShare <= 1, "target_share", s.TargetShare, "more than 0 and at most 1")
	fs.Check(s.Slack >= 1 && s.Slack <= 4, "slack", s.Slack, "1 to 4")
}

// Budget returns the budget, at least 1 token, of a summary that covers so many tokens in
// a window; 0 for an unknown window.
func (s Size) Budget(covered, window chat.Tokens) chat.Tokens {
	most := s.Max
	if window > 0 {
		most = min(most, chat.Tokens(float64(window)*s.WindowShare))
	}
	return max(1, min(most, max(s.Min, chat.Tokens(float64(covered)*s.Share))))
}

// Limit returns the most tokens that a summary may take up in a view with a target,
// references and delimiters included; 0 for an unknown target.
func (s Size) Limit(target chat.Tokens) chat.Tokens {
	if target <= 0 {
		return 0
	}
	return max(1, fraction(target, s.TargetShare))
}

// Prose returns the largest budget of a model's text within a limit: the text, at the output
// limit of its call, and references of a fraction of the budget take at most that many
// tokens.
func (s Size) Prose(limit chat.Tokens, references float64) chat.Tokens {
	return chat.Tokens(float64(limit) / (s.Slack + references))
}

// minModel is the least that a model is asked for, in tokens, where the summary may have as much.
const minModel chat.Tokens = 700

// Model returns the budget of a model's text where an extract has the given one: 700 tokens hand a
// session over, and a tenth of a larger budget, which is 1,200 by default.
func (s Size) Model(budget chat.Tokens) chat.Tokens { return min(budget, max(minModel, budget/10)) }

// CallTokens returns the output limit of a call with a budget.
func (s Size) CallTokens(budget chat.Tokens) chat.Tokens {
	return chat.Tokens(float64(budget) * s.Slack)
}
