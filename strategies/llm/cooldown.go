package llm

import (
	"context"
	"sync"
	"time"
)

// Cooldowns remembers which models are not to be asked for a while.
// Implementations are safe for concurrent use. model is the name and the host of a
// model's server; code is the class of the failure.
type Cooldowns interface {
	// Until is when the model may be asked again; a time that has passed, or the
	// zero time, where it may be asked now.
	Until(ctx context.Context, model string) (time.Time, error)
	// Set leaves the model alone until then, or longer if it is already.
	Set(ctx context.Context, model string, until time.Time, code string) error
}

// localCooldowns are those of this process, for a Client that is given no others.
type localCooldowns struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (c *localCooldowns) Until(_ context.Context, model string) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.until[model], nil
}

func (c *localCooldowns) Set(_ context.Context, model string, until time.Time, _ string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if until.After(c.until[model]) {
		c.until[model] = until
	}
	return nil
}
