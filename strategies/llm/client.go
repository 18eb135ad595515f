package llm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"
)

// Deps are the dependencies of a Client. All of them are optional.
type Deps struct {
	// Env looks up the environment variables in key_env of profiles.
	Env func(name string) (string, bool)
	// Log receives failed attempts: names and numbers, and the responses of servers as a
	// ServerError.
	Log *slog.Logger
	// Limiter shares the limits per minute with other workers; if it is nil they apply
	// to this Client only.
	Limiter Limiter
	// Cooldowns shares cooldowns with other workers; if it is nil they apply to this
	// Client only.
	Cooldowns Cooldowns
	// Transport replaces the default transport.
	Transport http.RoundTripper
}

// Client calls a chain of models. Safe for concurrent use.
type Client struct {
	cfg       Config
	models    []*model
	transport http.RoundTripper
	limiter   Limiter
	cooldowns Cooldowns
	log       *slog.Logger
}

// model is one model of the chain.
type model struct {
	Profile
	keys     *keySource
	breaker  *breaker
	id       string
	limitKey string
}

// New returns a client for the models of the configuration. It makes no request. The
// error is that of Config.Validate, or lists all missing keys.
func New(c Config, d Deps) (*Client, error) {
	c = c.withDefaults()
	if err := c.Validate(); err != nil {
		return nil, err // before the lookup of keys, as a key may be in place of a name
	}
	var errs []error
	client := &Client{
		cfg:       c,
		limiter:   cmp.Or[Limiter](d.Limiter, NewLocalLimiter()),
		cooldowns: cmp.Or[Cooldowns](d.Cooldowns, &localCooldowns{until: map[string]time.Time{}}),
		log:       cmp.Or(d.Log, slog.New(slog.DiscardHandler)),
		transport: cmp.Or[http.RoundTripper](d.Transport, newTransport(c.Deadline)),
	}
	for i, p := range c.Models {
		keys, err := openKey(p, d.Env)
		if err != nil {
			errs = append(errs, fmt.Errorf("models[%d].%w", i, err))
			continue
		}
		m := &model{Profile: p, keys: keys, id: p.ID()}
		m.breaker = &breaker{Breaker: c.Breaker, model: m.id, log: client.log}
		// Limits apply to an account, which the location of its key identifies.
		sum := sha256.Sum256([]byte(p.BaseURL + "\n" + p.Name + "\n" + p.KeyEnv + "\n" + p.KeyFile))
		m.limitKey = hex.EncodeToString(sum[:8])
		client.models = append(client.models, m)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return client, nil
}

// Close closes idle connections.
func (c *Client) Close() { (&http.Client{Transport: c.transport}).CloseIdleConnections() }

// Usable returns the first available model, which the next call tries first, or the first
// of the chain if none is available.
func (c *Client) Usable(ctx context.Context) Profile {
	now := time.Now()
	i := slices.IndexFunc(c.models, func(m *model) bool { return !c.availableAt(ctx, m, false).After(now) })
	return c.models[max(0, i)].Profile
}

// Identity returns a cache key for the settings that affect answers: the models in order,
// and the parameters of their requests. It holds neither keys nor locations of keys.
func (c *Client) Identity() string {
	profiles := make([]Profile, len(c.models))
	for i, m := range c.models {
		p := m.Profile
		p.KeyEnv, p.KeyFile, p.Price, p.RequestsPerMinute, p.TokensPerMinute = "", "", Price{}, 0, 0
		p.MaxTokensField = cmp.Or(p.MaxTokensField, MaxCompletionTokens)
		profiles[i] = p
	}
	out, err := json.Marshal(profiles)
	if err != nil {
		panic("llm: identity: " + err.Error()) // strings, numbers and flags always marshal
	}
	return "llm/1 " + string(out)
}

// availableAt returns the time from which a model is available, which may be past.
func (c *Client) availableAt(ctx context.Context, m *model, ignoreCooldown bool) time.Time {
	at := m.breaker.heldUntil()
	if ignoreCooldown {
		return at
	}
	until, err := c.cooldowns.Until(ctx, m.id)
	if err != nil {
		c.log.WarnContext(ctx, "cooldown of a model unavailable, calling it", "model", m.id)
		return at
	}
	if until.After(at) {
		return until
	}
	return at
}

// coolDown starts the cooldown for a failure and returns its end.
func (c *Client) coolDown(ctx context.Context, m *model, v classification) time.Time {
	var d time.Duration
	switch rules[v.class].cooldown {
	case transient:
		d = c.cfg.Cooldown.Transient
	case noProvider:
		d = c.cfg.Cooldown.NoProvider
	case noCooldown:
	}
	until := time.Now().Add(max(d, v.retryAfter))
	if d <= 0 {
		return until
	}
	// Independent of the caller's deadline, as the cooldown is for later calls.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := c.cooldowns.Set(ctx, m.id, until, string(v.class)); err != nil {
		c.log.WarnContext(ctx, "cooldown of a model not stored", "model", m.id, "code", string(v.class))
	}
	return until
}
