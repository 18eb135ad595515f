package trajectory

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/sessionstore/compactor/strategies/plan"
)

// Batch configures Run.
type Batch struct {
	Options Options
	// Summarizer writes the summaries; if it is nil they are digests. It must be safe
	// for concurrent use.
	Summarizer plan.Summarizer
	// Workers is the number of trajectories processed concurrently; 0 means 4.
	Workers int
	// Done is called for every trajectory, in order, after it is written; may be nil.
	Done func(Outcome)
}

// Outcome is the result for one trajectory of a batch.
type Outcome struct {
	// Line is its line in the input, from 1.
	Line int
	Metrics
	// Err is the reason if it could not be compressed; it is then written unchanged.
	Err error
}

// MaxLine is the maximum length of a line of a batch, in bytes.
const MaxLine = 256 << 20

// ErrLineTooLong is wrapped by the error of Run for a line of more than MaxLine bytes.
var ErrLineTooLong = fmt.Errorf("line is longer than %d MiB", MaxLine>>20)

// Run compresses trajectories, one JSON object or array of turns per line, and writes
// them in input order, without blank lines. A trajectory that cannot be parsed or
// compressed is reported and copied byte for byte. At most three lines per worker are in
// memory.
//
// Run stops early when ctx ends or when reading or writing fails. The output then
// consists of complete lines, and the report counts them.
func Run(ctx context.Context, in io.Reader, out io.Writer, b Batch) (BatchReport, error) {
	if err := b.Options.Validate(); err != nil {
		return BatchReport{}, err
	}
	workers := b.Workers
	if workers <= 0 {
		workers = 4
	}
	g, ctx := errgroup.WithContext(ctx)
	todo := make(chan *job)
	inOrder := make(chan *job, workers)
	g.Go(func() error {
		defer close(todo)
		defer close(inOrder)
		return read(ctx, in, func(j *job) error {
			for _, to := range []chan<- *job{inOrder, todo} {
				select {
				case to <- j:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
	})
	for range workers {
		g.Go(func() error {
			for j := range todo {
				j.out, j.Metrics, j.Err = b.compressLine(ctx, j.in)
				close(j.done)
			}
			return nil
		})
	}
	var report BatchReport
	g.Go(func() error {
		for j := range inOrder {
			select {
			case <-j.done:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				return ctx.Err() // the failure may be a consequence
			}
			if _, err := out.Write(append(j.out, '\n')); err != nil {
				return err
			}
			report.Add(j.Outcome)
			if b.Done != nil {
				b.Done(j.Outcome)
			}
		}
		return nil
	})
	err := g.Wait()
	return report, err
}

// job is a trajectory in processing.
type job struct {
	Outcome
	in, out []byte
	done    chan struct{}
}

func read(ctx context.Context, in io.Reader, each func(*job) error) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for n := 1; ; n++ {
		raw, err := readBytes(r)
		if n == 1 {
			raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
		}
		if raw = bytes.TrimSpace(raw); len(raw) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			if err := each(&job{Outcome: Outcome{Line: n}, in: raw, done: make(chan struct{})}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("line %d: %w", n, err)
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// readBytes reads a line of at most MaxLine bytes.
func readBytes(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > MaxLine:
			return nil, ErrLineTooLong
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// compressLine compresses one line. If that fails or panics, it returns the line
// unchanged with the error.
func (b *Batch) compressLine(ctx context.Context, raw []byte) (out []byte, m Metrics, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = raw, fmt.Errorf("panic: %v", p)
		}
	}()
	if b.Options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.Options.Timeout)
		defer cancel()
	}
	l, err := readLine(raw)
	if err != nil {
		return raw, m, err
	}
	turns, m, err := Compress(ctx, l.turns, b.Options, b.Summarizer)
	if err != nil || !m.Compressed {
		return raw, m, err
	}
	out, err = l.compressed(m.Region, turns[m.Region.Start], b.Options.notice())
	if err != nil {
		return raw, m, err
	}
	return out, m, nil
}
