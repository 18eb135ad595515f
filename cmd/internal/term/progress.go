package term

import (
	"fmt"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// plainStep is the interval of progress lines in percent where lines cannot be redrawn.
const plainStep = 25

// stillAlive is the time without a plain line after which one is written at the next call.
const stillAlive = 2 * time.Second

// Progress shows a progress bar on a terminal; elsewhere a line at every 25 %, and after two
// seconds without one. Its
// methods are safe for concurrent use. Write errors are ignored.
type Progress struct {
	mu    sync.Mutex
	out   Output
	label string
	total int64
	done  int64
	next  int64     // the percentage at which the next plain line is due
	lined time.Time // of the last plain line
	ended bool
	bar   *progressbar.ProgressBar
}

// Progress starts a progress display. A total of 0 means unknown: except on a terminal,
// only Done writes then.
func (o Output) Progress(label string, total int64) *Progress {
	p := &Progress{out: o, label: Clean(label), total: max(0, total), next: plainStep, lined: time.Now()}
	if !o.TTY {
		if total > 0 {
			p.plain(0)
		}
		return p
	}
	size := total
	if total <= 0 {
		size = -1
	}
	p.bar = progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(o.W),
		progressbar.OptionSetDescription(p.label),
		progressbar.OptionSetWidth(min(40, max(10, o.Width/3))),
		progressbar.OptionShowCount(),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionThrottle(65*time.Millisecond),
		progressbar.OptionSetTheme(progressbar.Theme{
			Saucer: "█", SaucerPadding: "░", BarStart: "", BarEnd: "",
		}),
		progressbar.OptionClearOnFinish(),
		// By default the bar starts a goroutine that writes and never ends.
		progressbar.OptionSetSpinnerChangeInterval(0),
	)
	_ = p.bar.RenderBlank()
	return p
}

// Add advances the progress by n.
func (p *Progress) Add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(p.done + n)
}

// Set sets the progress to done, unless that is less than before.
func (p *Progress) Set(done int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(done)
}

func (p *Progress) set(done int64) {
	if p.total > 0 {
		done = min(done, p.total)
	}
	if p.ended {
		return
	}
	alive := p.bar == nil && time.Since(p.lined) >= stillAlive
	if done <= p.done && !alive {
		return
	}
	p.done = max(p.done, done)
	done = p.done
	if p.bar != nil {
		// The bar clears its line at the total; only Done may do that.
		if p.total == 0 || done < p.total {
			_ = p.bar.Set64(done)
		}
		return
	}
	switch {
	case p.total == 0 && alive:
		p.lined = time.Now()
		_, _ = fmt.Fprintf(p.out.W, "%s: %s\n", p.label, Count(p.done))
	case p.total == 0 || p.done == p.total: // Done writes the last line
	case 100*p.done/p.total >= p.next:
		p.next = (100*p.done/p.total)/plainStep*plainStep + plainStep
		p.plain(p.next - plainStep)
	case alive:
		p.plain(100 * p.done / p.total)
	}
}

func (p *Progress) plain(percent int64) {
	p.lined = time.Now()
	_, _ = fmt.Fprintf(p.out.W, "%s: %d %% (%s of %s)\n", p.label, percent, Count(p.done), Count(p.total))
}

// Done ends the progress and writes one line with the label, the count and the note.
// Further calls do nothing.
func (p *Progress) Done(note string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	of := ""
	if p.total > 0 && p.done < p.total {
		of = " of " + Count(p.total)
	}
	if note != "" {
		note = ", " + note
	}
	_, _ = fmt.Fprintf(p.out.W, "%s: %s%s%s\n", p.label, Count(p.done), of, note)
}
