package scheduler

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/backoff"
)

// markInterval is the interval at which the queue is marked, and the longest time until a
// loss of its content is noticed.
const markInterval = time.Second

// noteInterval is the interval at which the leader looks for workers and at the clock.
const noteInterval = 10 * time.Second

// watchQueue marks the queue again and again, see mark, and records in Postgres why runs do
// not reach workers. The error is that of ctx.
func (s *Scheduler) watchQueue(ctx context.Context, last string) error {
	noted := time.Now()
	s.correctTimes(ctx)
	for n := 2; ; n++ {
		if err := backoff.Wait(ctx, markInterval); err != nil {
			return err
		}
		var err error
		if last, err = s.mark(ctx, n, last); err != nil {
			return err
		}
		if time.Since(noted) >= noteInterval {
			noted = time.Now()
			s.note(ctx)
		}
	}
}

// note stores whether the queue answers and whether a worker serves it.
func (s *Scheduler) note(ctx context.Context) {
	away, unserved := !s.redis.SucceededSince(time.Now().Add(-3*markInterval)), false
	if !away {
		served, err := s.queue.Served()
		unserved = err == nil && !served
	}
	callCtx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := s.store.NoteProcesses(callCtx, s.cfg.Holder, away, unserved); err != nil {
		s.left(ctx, "processes not noted", err)
		return
	}
	s.correctTimes(ctx)
}

// correctTimes corrects the times that are stored if the clock of the database was set back.
func (s *Scheduler) correctTimes(ctx context.Context) {
	for told := false; ; told = true {
		callCtx, cancel := context.WithTimeout(ctx, storeTimeout)
		back, err := s.store.CorrectTimes(callCtx, s.cfg.PageSize)
		cancel()
		if err != nil {
			s.left(ctx, "times not corrected", err)
		}
		if err != nil || back == 0 {
			return
		}
		if !told {
			s.log.WarnContext(ctx, "the clock of the database was set back, correcting the times that it has stored", "back", back)
		}
	}
}

// left logs an error of an operation that is repeated the next time.
func (s *Scheduler) left(ctx context.Context, text string, err error) {
	if ctx.Err() == nil && !s.noteUnavailable(err) {
		s.log.WarnContext(ctx, text+", trying again", "error", err) //nolint:sloglint // the text is a constant of the caller
	}
}

// since reports whether a mark is of this holder and not older than last.
func (s *Scheduler) since(last, mark string) bool {
	number := func(mark string) int {
		text, own := strings.CutPrefix(mark, s.cfg.Holder+":")
		n, err := strconv.Atoi(text)
		if !own || err != nil {
			return 0
		}
		return n
	}
	return mark == last || number(mark) > 0 && number(mark) >= number(last)
}

// mark marks the queue and returns its mark, or last if it could not. If the last mark is not
// there any more, Redis has lost later writes: it was flushed, restarted without its newest
// writes, or replaced. Then all runs that were enqueued are delivered again, which are as many as the
// workers take in about a second; a run that is delivered twice has one effect. The error is
// that of ctx.
func (s *Scheduler) mark(ctx context.Context, n int, last string) (string, error) {
	mark := fmt.Sprintf("%s:%d", s.cfg.Holder, n)
	callCtx, cancel := context.WithTimeout(ctx, enqueueTimeout)
	before, err := s.queue.Mark(callCtx, mark)
	cancel()
	switch {
	case ctx.Err() != nil:
		return last, ctx.Err()
	case err != nil:
		s.redis.Failed(err.Error())
		return last, nil
	}
	s.redis.Succeeded()
	// The first mark replaces one of an earlier leader. A mark whose answer was lost may have
	// been made, so one of this leader's that is newer than last is no loss.
	if before == "" || last != "" && !s.since(last, before) {
		runs, err := retry(ctx, s, "redeliver", s.store.RedeliverAll)
		if err != nil {
			return last, err
		}
		if last != "" {
			s.log.WarnContext(ctx, "the queue has lost its tasks, delivering them again", "runs", runs)
		}
	}
	return mark, nil
}
