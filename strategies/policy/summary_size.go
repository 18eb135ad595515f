package policy

import (
	"errors"
	"fmt"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Size says how large a summary should be, and may be.
type Size struct {
	// Share is the part of the covered tokens that a summary should have.
	Share float64 `yaml:"share" json:"share"`
	// Min is the least it is given room for, where the limits below allow that.
	Min chat.Tokens `yaml:"min_tokens" json:"min_tokens"`
	// Max and WindowShare, a part of the window, are the most: the smaller counts,
	// also against Min, so that a summary never fills a small window.
	Max         chat.Tokens `yaml:"max_tokens" json:"max_tokens"`
	WindowShare float64     `yaml:"window_share" json:"window_share"`
	// Slack is how much longer than its budget an answer may be before the model is
	// stopped, as a factor: room to end a sentence.
	Slack float64 `yaml:"slack" json:"slack"`
}

// DefaultSize returns the size where nothing else is configured.
func DefaultSize() Size {
	return Size{Share: 0.20, Min: 2000, Max: 12_000, WindowShare: 0.05, Slack: 1.3}
}

// Validate reports everything that is wrong with s at once, nil for nothing.
func (s Size) Validate() error {
	var faults []error
	check := func(ok bool, key string, value any, want string) {
		if !ok {
			faults = append(faults, fmt.Errorf("%s: %v: want %s", key, value, want))
		}
	}
	check(s.Share > 0 && s.Share <= 1, "share", s.Share, "more than 0 and at most 1")
	check(s.Min >= 1, "min_tokens", s.Min, "at least 1")
	check(s.Max >= s.Min && s.Max <= 1_000_000_000, "max_tokens", s.Max, "min_tokens to 1000000000")
	check(s.WindowShare > 0 && s.WindowShare <= 1, "window_share", s.WindowShare, "more than 0 and at most 1")
	check(s.Slack >= 1 && s.Slack <= 4, "slack", s.Slack, "1 to 4")
	return errors.Join(faults...)
}

// Budget returns how many tokens a summary of covered tokens should have in a window,
// which is 0 where it is not known; 1 at least.
func (s Size) Budget(covered, window chat.Tokens) chat.Tokens {
	most := s.Max
	if window > 0 {
		most = min(most, chat.Tokens(float64(window)*s.WindowShare))
	}
	return max(1, min(most, max(s.Min, chat.Tokens(float64(covered)*s.Share))))
}

// CallTokens returns the most that the model may answer for a budget.
func (s Size) CallTokens(budget chat.Tokens) chat.Tokens {
	return chat.Tokens(float64(budget) * s.Slack)
}
