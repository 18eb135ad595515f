package llm

import (
	"cmp"
	"fmt"
	"time"

	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Config configures a Client. A number that is 0 takes its default.
type Config struct {
	// Models is the chain: each model is called if those before it fail.
	Models   []Profile `yaml:"models"`
	Deadline Deadline  `yaml:"deadline"`
	Budget   Budget    `yaml:"budget"`
	Retry    Retry     `yaml:"retry"`
	Breaker  Breaker   `yaml:"breaker"`
	Cooldown Cooldown  `yaml:"cooldown"`
}

// Deadline bounds one attempt: by PerToken times its input tokens, but at least Min and at
// most Max. With a fixed deadline, long sessions would always fail.
type Deadline struct {
	// Min defaults to 120 s.
	Min time.Duration `yaml:"min"`
	// PerToken defaults to 2 ms.
	PerToken time.Duration `yaml:"per_token"`
	// Max defaults to 30 min.
	Max time.Duration `yaml:"max"`
	// Connect bounds connecting to the server. Defaults to 10 s.
	Connect time.Duration `yaml:"connect"`
}

// For returns the deadline of an attempt with so many input tokens.
func (d Deadline) For(tokens int) time.Duration {
	if d.PerToken > 0 && int64(tokens) > int64(d.Max/d.PerToken) {
		return d.Max // before the product can overflow
	}
	return min(max(d.Min, d.PerToken*time.Duration(max(0, tokens))), d.Max)
}

// Budget bounds one call of Complete over all its attempts and models, including the first.
type Budget struct {
	// Attempts is the maximum number of requests. Defaults to 6.
	Attempts int `yaml:"attempts"`
	// Tokens is the maximum of the sum of input and output. Defaults to four times the
	// maximum of one attempt. An attempt that may have been billed without reported usage
	// counts as its maximum.
	Tokens int `yaml:"tokens"`
	// Cost is the maximum cost in the currency of the prices; 0 for no limit.
	Cost float64 `yaml:"cost"`
	// Time bounds the call, including waits. Defaults to 30 min.
	Time time.Duration `yaml:"time"`
}

// Retry holds the delays between attempts.
type Retry struct {
	// Base bounds the first delay; the bound doubles with each attempt up to Max. Delays
	// are random between 0 and the bound. Base defaults to 1 s, Max to 30 s.
	Base time.Duration `yaml:"base"`
	Max  time.Duration `yaml:"max"`
	// Wait is the longest wait for Retry-After or a limit per minute; if it would be
	// longer, the next model is called. Defaults to 60 s.
	Wait time.Duration `yaml:"wait"`
}

// delays returns the delays between attempts.
func (r Retry) delays() backoff.Backoff {
	return backoff.Backoff{First: r.Base, Most: r.Max, Jitter: true}
}

// Breaker configures the circuit breaker of a model.
type Breaker struct {
	// Failures is the number of consecutive failures that opens it. Defaults to 5.
	Failures int `yaml:"failures"`
	// Open is the time without calls until one trial is allowed. Defaults to 30 s.
	Open time.Duration `yaml:"open"`
}

// Cooldown holds the time for which no call uses a model that failed, except calls with
// IgnoreCooldown. A negative time disables it.
type Cooldown struct {
	// Transient follows failures that may resolve themselves. Defaults to 60 s.
	Transient time.Duration `yaml:"transient"`
	// NoProvider follows failures that an operator has to resolve, of the key or the
	// quota. Defaults to 600 s.
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
	c.Deadline.Min = cmp.Or(c.Deadline.Min, d.Deadline.Min)
	c.Deadline.PerToken = cmp.Or(c.Deadline.PerToken, d.Deadline.PerToken)
	c.Deadline.Max = cmp.Or(c.Deadline.Max, d.Deadline.Max)
	c.Deadline.Connect = cmp.Or(c.Deadline.Connect, d.Deadline.Connect)
	c.Budget.Attempts = cmp.Or(c.Budget.Attempts, d.Budget.Attempts)
	c.Budget.Time = cmp.Or(c.Budget.Time, d.Budget.Time)
	c.Retry.Base = cmp.Or(c.Retry.Base, d.Retry.Base)
	c.Retry.Max = cmp.Or(c.Retry.Max, d.Retry.Max)
	c.Retry.Wait = cmp.Or(c.Retry.Wait, d.Retry.Wait)
	c.Breaker.Failures = cmp.Or(c.Breaker.Failures, d.Breaker.Failures)
	c.Breaker.Open = cmp.Or(c.Breaker.Open, d.Breaker.Open)
	c.Cooldown.Transient = cmp.Or(c.Cooldown.Transient, d.Cooldown.Transient)
	c.Cooldown.NoProvider = cmp.Or(c.Cooldown.NoProvider, d.Cooldown.NoProvider)
	return c
}

// Validate returns every error of the configuration and its profiles, as an errors.Join of
// *policy.FieldError values.
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
