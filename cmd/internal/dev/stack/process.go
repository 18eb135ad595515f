package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is a child process.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // of its end; valid after done is closed
}

// startProcess starts the command. A goroutine locked to its thread starts it and waits for
// its end, because the kernel sends the parent-death signal when the thread that forked ends
// (https://go.dev/issue/27505).
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

// step is a signal that ends a process, and the time to wait for its effect.
type step struct {
	signal syscall.Signal
	wait   time.Duration
}

// stop sends the signals of the steps one after the other until the process has ended, and
// at last kills it. It ignores the exit code.
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

// run runs a command to its end and returns its output. When ctx ends, run interrupts and
// then kills the process group. The error includes the last lines of the output.
func run(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := startProcess(cmd)
	if err != nil {
		return "", err
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
		return "", context.Cause(ctx)
	}
	if p.err != nil {
		return "", fmt.Errorf("%w: %s", p.err, lastLines(out.String(), 8))
	}
	return out.String(), nil
}

// lastLines returns the last n non-empty lines as one line.
func lastLines(text string, n int) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}

// environ returns the environment of a binary: that of this process without the variables of
// Postgres and of locales, so that messages are in English. A binary of an unpacked package
// gets the folders of the libraries unpacked with it.
func environ(binary string) []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PG") && !strings.HasPrefix(kv, "LC_") && !strings.HasPrefix(kv, "LANG") {
			env = append(env, kv)
		}
	}
	if i := strings.LastIndex(binary, "/usr/"); i > 0 {
		libraries, _ := filepath.Glob(filepath.Join(binary[:i], "usr/lib/*-linux-*"))
		older, _ := filepath.Glob(filepath.Join(binary[:i], "lib/*-linux-*"))
		if libraries = append(libraries, older...); len(libraries) > 0 {
			env = append(env, "LD_LIBRARY_PATH="+strings.Join(append(libraries, filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))...), ":"))
		}
	}
	return append(env, "LC_ALL=C")
}
