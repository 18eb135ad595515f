package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestBudget(t *testing.T) {
	t.Parallel()
	s := DefaultSize()
	tests := map[string]struct{ covered, window, want chat.Tokens }{
		"two fifths":                   {20_000, 200_000, 8000},
		"no less than the minimum":     {3000, 200_000, 2000},
		"no more than the maximum":     {500_000, 1_000_000, 12_000},
		"no more than of the window":   {100_000, 20_000, 8000},
		"a small window beats Min":     {100_000, 3_000, 1200},
		"an unknown window limits not": {100_000, 0, 12_000},
		"never nothing":                {0, 1, 1},
	}
	for name, tt := range tests {
		if got := s.Budget(tt.covered, tt.window); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
	if got := s.CallTokens(2000); got != 2600 {
		t.Errorf("the call may have %d", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		covered := rapid.Int64Range(0, 1<<40).Draw(t, "covered")
		window := rapid.Int64Range(0, 1<<30).Draw(t, "window")
		if b := s.Budget(chat.Tokens(covered), chat.Tokens(window)); b < 1 || b > s.Max || window >= 20 && b > chat.Tokens(window)*2/5 {
			t.Fatalf("%d", b)
		}
	})
}

func TestALimitIsAShareOfTheTarget(t *testing.T) {
	t.Parallel()
	s := DefaultSize()
	for target, want := range map[chat.Tokens]chat.Tokens{0: 0, 1: 1, 4000: 3000, 100_000: 75_000} {
		if got := s.Limit(target); got != want {
			t.Errorf("target %d: %d, want %d", target, got, want)
		}
	}
	if p := s.Prose(2000, 0.25); s.CallTokens(p)+p/4 > 2000 || p < 1280 {
		t.Errorf("a prose of %d", p)
	}
}

func TestSizeValidate(t *testing.T) {
	t.Parallel()
	p := Default()
	p.Summary.Size = Size{Share: 2, Min: 0, Max: -1, WindowShare: -1, TargetShare: 1.5, Slack: 0.5}
	err := p.Validate()
	for _, key := range []string{"share: 2", "min_tokens: 0", "max_tokens: -1", "window_share: -1", "target_share: 1.5", "slack: 0.5"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("no %q in %v", key, err)
		}
	}
}
