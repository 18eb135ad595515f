// Package wait waits no longer than a context allows.
package wait

import (
	"context"
	"time"
)

// For waits for d, or returns why the context ended.
func For(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
