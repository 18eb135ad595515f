package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is a child that somebody waits for from its first moment.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how it ended, once done is closed
}

// startProcess starts the command. One goroutine starts it and waits for it on
// a thread of its own, because the kernel ties the parent-death signal to the
// thread that forked: were the thread to end, the child would be killed under a
// living parent (https://go.dev/issue/27505).
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// step is one way to ask a process to end, and how long to wait for it.
type step struct {
	signal syscall.Signal
	wait   time.Duration
}

// stop asks in the given steps, then kills. It returns when the process has
// ended; how it ended is of no interest, only that it did.
func (p *process) stop(steps ...step) error {
	for _, s := range steps {
		if err := p.cmd.Process.Signal(s.signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stop process %d: %w", p.pid(), err)
		}
		select {
		case <-p.done:
			return nil
		case <-time.After(s.wait):
		}
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill process %d: %w", p.pid(), err)
	}
	<-p.done
	return nil
}

// run runs a command to its end. A cancelled context interrupts its process
// group, then kills it. The error holds the last lines of the output.
func run(ctx context.Context, cmd *exec.Cmd) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := startProcess(cmd)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		signalGroup(p.pid(), syscall.SIGINT)
		select {
		case <-p.done:
		case <-time.After(5 * time.Second):
			signalGroup(p.pid(), syscall.SIGKILL)
			<-p.done
		}
		return context.Cause(ctx)
	}
	if p.err != nil {
		return fmt.Errorf("%w: %s", p.err, lastLines(out.String(), 8))
	}
	return nil
}

// lastLines returns the last n lines that say something, as one line.
func lastLines(text string, n int) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}

// environ returns the environment of a server: ours, without what would redirect a
// Postgres, and with messages that can be read by program.
func environ() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PG") && !strings.HasPrefix(kv, "LC_") && !strings.HasPrefix(kv, "LANG") {
			env = append(env, kv)
		}
	}
	return append(env, "LC_ALL=C")
}
