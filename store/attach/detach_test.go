package attach_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/attach"
)

// A drain with the spec of an attachment that has been replaced.
func TestADrainerWithAnOldSpec(t *testing.T) {
	w := some(t, 4, attach.Keep)
	d := attach.NewDrainer(w.st)
	if _, err := d.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.att.Detach(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	s := generic
	s.OnDelete = attach.Erase
	w.attach(s)
	w.drain()
	w.exec(`DELETE FROM messages WHERE id = 2`)
	if _, err := d.Drain(t.Context()); err != nil { // within 5 s
		t.Fatal(err)
	}
	w.drain()
	w.want([]string{"0"}, bodies, "text 2")
}

// Detach while drains run.
func TestDetachWhileDrainsRun(t *testing.T) {
	w := some(t, 200, attach.Exclude)
	d := attach.NewDrainer(w.st)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		var first error
		for ctx.Err() == nil {
			if _, err := d.Drain(ctx); err != nil && ctx.Err() == nil && first == nil {
				first = err
			}
		}
		done <- first
	}()
	for i := range 50 {
		w.exec(`INSERT INTO messages (chat, sender, body) VALUES ($1, 'human', 'x')`, fmt.Sprint("c", i%5))
	}
	if err := w.att.Detach(t.Context(), false); err != nil {
		t.Error(err)
	}
	time.Sleep(300 * time.Millisecond) //nolint:forbidigo // drains go on for a while
	cancel()
	if err := <-done; err != nil {
		t.Error("drain:", err)
	}
}

// Apply twice at once.
func TestApplyTwiceAtOnce(t *testing.T) {
	w := newWorld(t)
	w.exec(chats)
	errs := make(chan error, 2)
	for range 2 {
		p, err := attach.NewPlan(t.Context(), w.st, generic)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := p.Apply(t.Context(), w.st)
			errs <- err
		}()
	}
	var failed []error
	for range 2 {
		if err := <-errs; err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) != 1 || !errors.Is(failed[0], store.ErrInUse) {
		t.Errorf("%v", failed)
	}
}
