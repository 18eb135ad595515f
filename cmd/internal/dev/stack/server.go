package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"time"

	"github.com/sessionstore/compactor/strategies/backoff"
)

// portAttempts bounds the starts of a server whose port another process takes meanwhile.
const portAttempts = 5

// service describes a server that runs as a child process.
type service struct {
	name    string // of the log file
	command func(port int) *exec.Cmd
	// ready reports whether the process accepts connections. Another server may listen
	// on the port.
	ready   func(ctx context.Context, port, pid int) bool
	timeout time.Duration // for ready
	// taken matches the log of a server whose port is in use.
	taken *regexp.Regexp
	death syscall.Signal // received when this process dies
	stop  []step
}

var errPortTaken = errors.New("port taken by another process")

// launch starts a server on a free port and returns when it is ready. The stack stops it.
func (s *Stack) launch(ctx context.Context, f *folder, v service) (*process, int, error) {
	for attempt := 1; ; attempt++ {
		port, err := freePort(ctx)
		if err != nil {
			return nil, 0, err
		}
		p, err := v.launchAt(ctx, f, port)
		if err == nil {
			s.stops = append(s.stops, func() error { return p.stop(v.stop...) })
			return p, port, nil
		}
		if attempt == portAttempts || !errors.Is(err, errPortTaken) {
			return nil, 0, err
		}
	}
}

func (v service) launchAt(ctx context.Context, f *folder, port int) (*process, error) {
	log, err := os.OpenFile(f.join(v.name+".log"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	cmd := v.command(port)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = f.path, environ(cmd.Path), log, log
	detach(cmd, f.as, v.death)
	p, err := startProcess(cmd)
	if err != nil {
		return nil, err
	}
	err = v.await(ctx, p, port)
	if err == nil {
		return p, nil
	}
	err = errors.Join(err, p.stop(v.stop...))
	output, rerr := io.ReadAll(io.NewSectionReader(log, from, 1<<20))
	switch {
	case ctx.Err() != nil || rerr != nil:
		return nil, err
	case v.taken.Match(output):
		return nil, errPortTaken
	default:
		return nil, fmt.Errorf("%w: %s", err, lastLines(string(output), 8))
	}
}

// await polls until the server is ready.
func (v service) await(ctx context.Context, p *process, port int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, v.timeout, fmt.Errorf("not ready within %s", v.timeout))
	defer cancel()
	for !v.ready(ctx, port, p.pid()) {
		select {
		case <-p.done:
			return fmt.Errorf("it ended at once (%w)", p.err)
		default:
		}
		if err := backoff.Wait(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// freePort returns a free port of the loopback interface.
func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
