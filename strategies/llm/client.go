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

// Deps is what a Client needs beside its configuration. All of it is optional.
type Deps struct {
	// Env looks up the variables that profiles name as key_env.
	Env func(name string) (string, bool)
	// Log gets failed attempts, as names and numbers only.
	Log *slog.Logger
	// Limiter shares the limits per minute with other workers; without one they hold
	// for this Client alone.
	Limiter Limiter
	// Cooldowns are shared with other workers; without them they are this Client's.
	Cooldowns Cooldowns
	// Transport carries the requests instead of one of the Client's own.
	Transport http.RoundTripper
}

// Client asks a chain of models. Safe for concurrent use.
type Client struct {
	cfg       Config
	models    []*model
	http      *http.Client
	limiter   Limiter
	cooldowns Cooldowns
	log       *slog.Logger
}

// model is one link of the chain.
type model struct {
	Profile
	keys     *keySource
	breaker  *breaker
	id       string
	limitKey string
}

// New returns a client for the models of the configuration. It makes no request. The
// error is that of Config.Validate, or else names every key that is not where it should
// be.
func New(c Config, d Deps) (*Client, error) {
	c = c.withDefaults()
	if err := c.Validate(); err != nil {
		return nil, err // before keys are looked for: what is in the place of a name may be one
	}
	var errs []error
	client := &Client{
		cfg: c, limiter: d.Limiter, cooldowns: d.Cooldowns,
		log: cmp.Or(d.Log, slog.New(slog.DiscardHandler)),
	}
	if client.limiter == nil {
		client.limiter = NewLocalLimiter()
	}
	if client.cooldowns == nil {
		client.cooldowns = &localCooldowns{until: map[string]time.Time{}}
	}
	transport := d.Transport
	if transport == nil {
		transport = newTransport(c.Deadline)
	}
	client.http = newHTTPClient(transport)
	for i, p := range c.Models {
		keys, err := openKey(p, d.Env)
		if err != nil {
			errs = append(errs, fmt.Errorf("models[%d].%w", i, err))
			continue
		}
		client.models = append(client.models, client.newModel(p, keys))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return client, nil
}

func (c *Client) newModel(p Profile, keys *keySource) *model {
	m := &model{Profile: p, keys: keys, id: p.ID()}
	m.breaker = &breaker{Breaker: c.cfg.Breaker, model: m.id, log: c.log}
	// Limits are those of an account, which the place of its key stands for.
	sum := sha256.Sum256([]byte(p.BaseURL + "\n" + p.Name + "\n" + p.KeyEnv + "\n" + p.KeyFile))
	m.limitKey = hex.EncodeToString(sum[:8])
	return m
}

// Close closes connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Usable returns the first model that may be asked now, which is the one that the next
// call asks first; the first of the chain where none may be asked.
func (c *Client) Usable(ctx context.Context) Profile {
	now := time.Now()
	i := slices.IndexFunc(c.models, func(m *model) bool { return !c.availableAt(ctx, m, false).After(now) })
	return c.models[max(0, i)].Profile
}

// Identity returns a text of everything here that shapes an answer, for the key of a
// cache: the models, in order, and what they are sent beside the prompt. It holds no
// keys and no places of keys.
func (c *Client) Identity() string {
	type shape struct {
		Name, BaseURL, MaxTokensField, Effort string
		Window, MaxOutput, ReasoningTokens    int
		FixedTemperature                      bool
	}
	shapes := make([]shape, len(c.models))
	for i, m := range c.models {
		shapes[i] = shape{
			Name: m.Name, BaseURL: m.BaseURL, MaxTokensField: string(cmp.Or(m.MaxTokensField, MaxCompletionTokens)),
			Effort: m.ReasoningEffort, Window: m.Window, MaxOutput: m.MaxOutput,
			ReasoningTokens: m.ReasoningTokens, FixedTemperature: m.FixedTemperature,
		}
	}
	out, err := json.Marshal(shapes)
	if err != nil {
		panic("llm: identity: " + err.Error()) // strings, numbers and flags always marshal
	}
	return "llm/1 " + string(out)
}

// askableAt returns when a model may be asked: now or earlier where it may.
func (c *Client) availableAt(ctx context.Context, m *model, ignoreCooldown bool) time.Time {
	at := m.breaker.heldUntil()
	if ignoreCooldown {
		return at
	}
	until, err := c.cooldowns.Until(ctx, m.id)
	if err != nil {
		c.log.WarnContext(ctx, "cooldown of a model not known, it is asked", "model", m.id)
		return at
	}
	if until.After(at) {
		return until
	}
	return at
}

// coolDown starts the cooldown that a failure asks for and returns when it ends.
func (c *Client) coolDown(ctx context.Context, m *model, v classification) time.Time {
	var d time.Duration
	switch rules()[v.class].cooldown {
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
	// The caller's time may be over; this is for the calls after it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := c.cooldowns.Set(ctx, m.id, until, string(v.class)); err != nil {
		c.log.WarnContext(ctx, "cooldown of a model not stored", "model", m.id, "code", string(v.class))
	}
	return until
}
