package llm

import (
	"fmt"
	"time"

	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Config is how a Client asks. Every number that is 0 stands for its default.
type Config struct {
	// Models is the chain: the first is asked first, each other one when those before
	// it fail.
	Models   []Profile `yaml:"models"`
	Deadline Deadline  `yaml:"deadline"`
	Budget   Budget    `yaml:"budget"`
	Retry    Retry     `yaml:"retry"`
	Breaker  Breaker   `yaml:"breaker"`
	Cooldown Cooldown  `yaml:"cooldown"`
}

// Deadline bounds one attempt. It grows with the input, because reading takes time:
// a fixed one would make long sessions fail for ever.
type Deadline struct {
	// Min is the least an attempt gets, by default 120 s.
	Min time.Duration `yaml:"min"`
	// PerToken is what an attempt gets for each token of its input if that is more
	// than Min, by default 2 ms.
	PerToken time.Duration `yaml:"per_token"`
	// Max is the most, by default 30 min.
	Max time.Duration `yaml:"max"`
	// Connect bounds reaching the server, by default 10 s.
	Connect time.Duration `yaml:"connect"`
}

// For returns the deadline of an attempt with that much input.
func (d Deadline) For(tokens int) time.Duration {
	if d.PerToken > 0 && int64(tokens) > int64(d.Max/d.PerToken) {
		return d.Max // before the product can overflow
	}
	return min(max(d.Min, d.PerToken*time.Duration(max(0, tokens))), d.Max)
}

// Budget bounds one call of Complete, over all its attempts and models. The first
// attempt has to be within it, too.
type Budget struct {
	// Attempts is how many requests are made at most, by default 6.
	Attempts int `yaml:"attempts"`
	// Tokens is how many tokens are read and written at most; by default four times
	// what one attempt may take. An attempt that may have been billed without a
	// report counts as what it was allowed.
	Tokens int `yaml:"tokens"`
	// Cost is how much money is spent at most, in the currency of the prices; 0 for
	// no bound.
	Cost float64 `yaml:"cost"`
	// Time bounds everything, waiting included; by default 30 min.
	Time time.Duration `yaml:"time"`
}

// within returns the tighter of two budgets, number by number.
func (b Budget) within(o Budget) Budget {
	return Budget{
		Attempts: tighter(b.Attempts, o.Attempts), Tokens: tighter(b.Tokens, o.Tokens),
		Cost: tighter(b.Cost, o.Cost), Time: tighter(b.Time, o.Time),
	}
}

func tighter[T int | float64 | time.Duration](a, b T) T {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Retry is how long is waited before an attempt that follows a failed one.
type Retry struct {
	// Base is the bound of the first wait; each other one is twice the one before.
	// Waits are drawn between nothing and the bound. By default 1 s.
	Base time.Duration `yaml:"base"`
	// Max is the largest bound, by default 30 s.
	Max time.Duration `yaml:"max"`
	// Wait is how long a server's Retry-After or the limits per minute are waited
	// for; for longer ones the next model is asked. By default 60 s.
	Wait time.Duration `yaml:"wait"`
}

// delays returns the delays between attempts.
func (r Retry) delays() backoff.Backoff {
	return backoff.Backoff{First: r.Base, Most: r.Max, Jitter: true}
}

// Breaker holds a model back whose server fails again and again.
type Breaker struct {
	// Failures is how many in a row hold the model back, by default 5.
	Failures int `yaml:"failures"`
	// Open is how long no call is made then; after that, one call is let through. By
	// default 30 s.
	Open time.Duration `yaml:"open"`
}

// Cooldown is how long a model that failed is not asked by any call, unless that
// call says so. Negative for not at all.
type Cooldown struct {
	// Transient is for failures that pass by themselves, by default 60 s.
	Transient time.Duration `yaml:"transient"`
	// NoProvider is for those that somebody has to see to, key and quota, by default
	// 600 s.
	NoProvider time.Duration `yaml:"no_provider"`
}

// Default returns the configuration without models.
func Default() Config {
	return Config{
		Deadline: Deadline{Min: 2 * time.Minute, PerToken: 2 * time.Millisecond, Max: 30 * time.Minute, Connect: 10 * time.Second},
		Budget:   Budget{Attempts: 6, Time: 30 * time.Minute},
		Retry:    Retry{Base: time.Second, Max: 30 * time.Second, Wait: time.Minute},
		Breaker:  Breaker{Failures: 5, Open: 30 * time.Second},
		Cooldown: Cooldown{Transient: backoff.Cooldown, NoProvider: backoff.CooldownNoProvider},
	}
}

func (c Config) withDefaults() Config {
	d := Default()
	fill(&c.Deadline.Min, d.Deadline.Min)
	fill(&c.Deadline.PerToken, d.Deadline.PerToken)
	fill(&c.Deadline.Max, d.Deadline.Max)
	fill(&c.Deadline.Connect, d.Deadline.Connect)
	fill(&c.Budget.Attempts, d.Budget.Attempts)
	fill(&c.Budget.Time, d.Budget.Time)
	fill(&c.Retry.Base, d.Retry.Base)
	fill(&c.Retry.Max, d.Retry.Max)
	fill(&c.Retry.Wait, d.Retry.Wait)
	fill(&c.Breaker.Failures, d.Breaker.Failures)
	fill(&c.Breaker.Open, d.Breaker.Open)
	fill(&c.Cooldown.Transient, d.Cooldown.Transient)
	fill(&c.Cooldown.NoProvider, d.Cooldown.NoProvider)
	return c
}

func fill[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Validate reports everything that is wrong at once, profiles included, as an
// errors.Join of *policy.FieldError values, and nil when nothing is.
func (c Config) Validate() error {
	c = c.withDefaults()
	var fs policy.FieldErrors
	fs.Check(len(c.Models) > 0, "models", "none", "at least one model")
	seen := map[string]int{}
	for i, p := range c.Models {
		fs.Prefix = fmt.Sprintf("models[%d].", i)
		p.validate(&fs)
		same := p.Name + " " + p.BaseURL
		first, twice := seen[same]
		fs.Check(!twice, "name", fmt.Sprintf("%q", p.Name), "a model once: models[%d] is the same on the same server", first)
		if !twice {
			seen[same] = i
		}
	}
	fs.Prefix = ""
	policy.CheckRange(&fs, "deadline.min", c.Deadline.Min, time.Millisecond, 24*time.Hour)
	policy.CheckRange(&fs, "deadline.per_token", c.Deadline.PerToken, 0, time.Minute)
	policy.CheckRange(&fs, "deadline.max", c.Deadline.Max, c.Deadline.Min, 24*time.Hour)
	policy.CheckRange(&fs, "deadline.connect", c.Deadline.Connect, time.Millisecond, time.Hour)
	policy.CheckRange(&fs, "budget.attempts", c.Budget.Attempts, 1, 100)
	fs.Check(c.Budget.Tokens >= 0, "budget.tokens", c.Budget.Tokens, "0 or more")
	fs.Check(c.Budget.Cost >= 0 && c.Budget.Cost <= maxTokens, "budget.cost", c.Budget.Cost, "0 to %d", maxTokens)
	policy.CheckRange(&fs, "budget.time", c.Budget.Time, time.Millisecond, 24*time.Hour)
	policy.CheckRange(&fs, "retry.base", c.Retry.Base, time.Microsecond, time.Hour)
	policy.CheckRange(&fs, "retry.max", c.Retry.Max, c.Retry.Base, 24*time.Hour)
	policy.CheckRange(&fs, "retry.wait", c.Retry.Wait, 0, 24*time.Hour)
	policy.CheckRange(&fs, "breaker.failures", c.Breaker.Failures, 1, 1000)
	policy.CheckRange(&fs, "breaker.open", c.Breaker.Open, time.Millisecond, 24*time.Hour)
	fs.Check(c.Cooldown.Transient <= 24*time.Hour, "cooldown.transient", c.Cooldown.Transient, "at most 24h")
	fs.Check(c.Cooldown.NoProvider <= 24*time.Hour, "cooldown.no_provider", c.Cooldown.NoProvider, "at most 24h")
	return fs.Join()
}
