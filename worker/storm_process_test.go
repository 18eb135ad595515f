package worker

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sessionstore/compactor/strategies/backoff"
)

// serve is a process of the program.
type serve struct {
	name string
	cmd  *exec.Cmd
	log  *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (in *installation) start(i int) *serve {
	s := &serve{name: fmt.Sprintf("%s-%d", in.schema, i), log: &lockedBuffer{}}
	in.logs = append(in.logs, s.log)
	s.run(in)
	return s
}

// environ is the environment of the program's processes.
func (in *installation) environ() []string {
	return append(os.Environ(), "HOME="+in.folder, "COMPACTOR_DATABASE_URL="+in.dsn, "COMPACTOR_REDIS_URL="+in.redis, "COMPACTOR_DATABASE_SCHEMA="+in.schema)
}

func (s *serve) run(in *installation) {
	s.cmd = exec.Command(in.binary, "serve", "--config", in.config)
	s.cmd.Env = in.environ()
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		in.t.Error(err)
	}
}

// end sends a signal that ends the process, and returns how it ended.
func (s *serve) end(sig os.Signal) error {
	_ = s.cmd.Process.Signal(syscall.SIGCONT)
	_ = s.cmd.Process.Signal(sig)
	slow := time.AfterFunc(stormQuiet, func() { _ = s.cmd.Process.Kill() })
	defer slow.Stop()
	return s.cmd.Wait()
}

// stop stops the processes as an operator does. Each has to end well.
func (in *installation) stop() {
	for _, s := range in.serves {
		if err := s.end(syscall.SIGTERM); err != nil {
			in.t.Errorf("%s: %v\n%s", s.name, err, s.tail())
		}
		if text := s.log.String(); strings.Contains(text, "panic") {
			in.t.Errorf("%s panicked:\n%s", s.name, text)
		}
	}
	in.serves = nil
}

// tail returns the end of the log.
func (s *serve) tail() string {
	lines := strings.Split(s.log.String(), "\n")
	return fmt.Sprintf("%s:\n%s\n", s.name, strings.Join(lines[max(0, len(lines)-12):], "\n"))
}

// kill breaks something every few seconds.
func (in *installation) kill(ctx context.Context, r *rand.Rand) {
	for backoff.Wait(ctx, time.Duration(1000+r.IntN(3000))*time.Millisecond) == nil {
		s := in.serves[r.IntN(len(in.serves))]
		switch r.IntN(8) {
		case 0, 1:
			in.counted.add("killed: process by SIGKILL")
			_ = s.end(syscall.SIGKILL)
			s.run(in)
		case 2:
			in.counted.add("killed: process by SIGTERM")
			if err := s.end(syscall.SIGTERM); err != nil {
				in.t.Errorf("%s: %v\n%s", s.name, err, s.tail())
			}
			s.run(in)
		case 3: // for longer than a lease: it wakes up as a worker whose runs others have taken
			in.counted.add("killed: process stopped")
			_ = s.cmd.Process.Signal(syscall.SIGSTOP)
			_ = backoff.Wait(ctx, 7*time.Second)
			_ = s.cmd.Process.Signal(syscall.SIGCONT)
		case 4:
			in.counted.add("killed: database connections")
			_, _ = in.pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' ORDER BY random() LIMIT $1) p`, 1+r.IntN(40))
		case 5:
			in.counted.add("killed: Redis connections")
			c := in.client()
			_ = c.ClientKillByFilter(ctx, "TYPE", "normal").Err()
			_ = c.Close()
		case 6:
			in.counted.add("killed: all tasks in Redis")
			in.loseTasks(ctx)
		case 7:
			in.counted.add("killed: nothing, a stranger locks a session")
			in.lock(ctx, r, time.Duration(r.IntN(6000))*time.Millisecond)
		}
	}
}

// loseTasks deletes what the installation has in Redis.
func (in *installation) loseTasks(ctx context.Context) {
	name, err := in.store.Installation(ctx)
	if err != nil {
		return // the database is away
	}
	c := in.client()
	defer func() { _ = c.Close() }()
	keys, err := c.Keys(ctx, "asynq:{compactor:"+name+":*").Result()
	if err == nil && len(keys) > 0 {
		_ = c.Del(ctx, keys...).Err()
	}
}

// lock holds the row of a session for d in a transaction that does nothing.
func (in *installation) lock(ctx context.Context, r *rand.Rand, d time.Duration) {
	tx, err := in.pool.Begin(ctx)
	if err != nil {
		return
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	s := in.recent(r)
	if _, err := tx.Exec(ctx, in.q(`SELECT FROM @schema@.sessions WHERE tenant = $1 AND id = $2 FOR UPDATE`), s.key.Tenant, s.key.Session); err == nil {
		_ = backoff.Wait(ctx, d)
	}
}
