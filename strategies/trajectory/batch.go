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

// Batch says how a stream of trajectories is compressed.
type Batch struct {
	Options Options
	// Summarizer writes the summaries; without one they are digests. It is used by
	// several goroutines.
	Summarizer plan.Summarizer
	// Workers is how many trajectories are worked on at a time; 0 is 4.
	Workers int
	// Done is told about every trajectory, in order, once it is written; may be nil.
	Done func(Outcome)
}

// Outcome is what became of one trajectory of a batch.
type Outcome struct {
	// Line is where it stood in the input, from 1.
	Line int
	Metrics
	// Err is why it could not be compressed; it is written as it was read.
	Err error
}

// MaxLine is how long a line of a batch may be, in bytes.
const MaxLine = 256 << 20

// ErrLineTooLong is the error of a batch with a line of more than MaxLine bytes.
var ErrLineTooLong = fmt.Errorf("line is longer than %d MiB", MaxLine>>20)

// Run compresses trajectories, one JSON object or array of turns per line, and
// writes them in the order in which they came; blank lines are left out. One that
// cannot be read, or fails, is reported and passed through byte for byte. At most
// three lines for each worker are in memory.
//
// It ends early when ctx does, or when reading or writing fails; what was written
// until then is whole lines, and the report counts them.
func Run(ctx context.Context, in io.Reader, out io.Writer, b Batch) (Report, error) {
	if err := b.Options.Validate(); err != nil {
		return Report{}, err
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
				j.out, j.Metrics, j.Err = b.one(ctx, j.in)
				close(j.done)
			}
			return nil
		})
	}
	var report Report
	g.Go(func() error {
		for j := range inOrder {
			select {
			case <-j.done:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				return ctx.Err() // what failed did so because of that
			}
			if _, err := out.Write(append(j.out, '\n')); err != nil {
				return err
			}
			report.Add(reportOf(j.Outcome))
			if b.Done != nil {
				b.Done(j.Outcome)
			}
		}
		return nil
	})
	err := g.Wait()
	return report, err
}

// job is a trajectory on its way from the input to the output.
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

// readBytes reads a line.
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

// one compresses one line. Whatever goes wrong, it returns something to write.
func (b *Batch) one(ctx context.Context, raw []byte) (out []byte, m Metrics, err error) {
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
