package llm

import (
	"context"
	"sync"
	"time"
)

// Cooldowns stores the cooldowns of models after failures. Implementations are safe for
// concurrent use. model is that of Profile.ID; code is the class of the failure.
type Cooldowns interface {
	// Until returns the end of a model's cooldown: the zero time, or one that has passed,
	// if there is none.
	Until(ctx context.Context, model string) (time.Time, error)
	// Set starts or extends a cooldown. It never shortens one.
	Set(ctx context.Context, model string, until time.Time, code string) error
}

// localCooldowns implements Cooldowns for one process.
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
