package attach

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sessionstore/compactor/store"
)

// listEvery is the interval at which a Drainer looks for new attachments.
const listEvery = 5 * time.Second

// Drainer drains all attachments of an installation. Safe for concurrent use.
type Drainer struct {
	st *store.Store

	mu     sync.Mutex
	all    []*Attachment
	listed time.Time
}

// NewDrainer returns a Drainer on a store.
func NewDrainer(st *store.Store) *Drainer { return &Drainer{st: st} }

// list returns the attachments of the last listEvery.
func (d *Drainer) list(ctx context.Context) ([]*Attachment, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.listed) < listEvery {
		return d.all, nil
	}
	all, err := List(ctx, d.st)
	if err == nil {
		d.all, d.listed = all, time.Now()
	}
	return d.all, err
}

// Drain drains each attachment once: see Attachment.Drain. A table that cannot be read, such as one without a column
// that it had, keeps no other from being drained.
func (d *Drainer) Drain(ctx context.Context) (more bool, err error) {
	all, err := d.list(ctx)
	for _, a := range all {
		_, left, failed := a.Drain(ctx)
		if errors.Is(failed, store.ErrNotMigrated) || errors.Is(failed, store.ErrStale) {
			d.forget()
			if now, err := Get(ctx, d.st, a.Name); err != nil || !now.CreatedAt.Equal(a.CreatedAt) { // detached since
				continue
			}
			failed = fmt.Errorf("%s: the table was changed, or is gone: `compactor attach %s --check`: %w", a.Table, a.Name, failed)
		}
		more, err = more || left, errors.Join(err, later(failed)) // busy, as while it is detached
	}
	return more, err
}

func (d *Drainer) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listed = time.Time{}
}

// DrainKey drains a session of the log if it is that of an attached table, and reports whether it is.
func (d *Drainer) DrainKey(ctx context.Context, k store.Key) (bool, error) {
	all, err := d.list(ctx)
	for _, a := range all {
		if native, ours := strings.CutPrefix(k.Session, a.Name+":"); ours {
			err := a.DrainSession(ctx, native)
			if errors.Is(err, store.ErrInvalid) { // an id that no session of the table has, such as that of a fork
				return false, nil
			}
			return true, err
		}
	}
	return false, err
}
