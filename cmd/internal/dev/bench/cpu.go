package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sessionstore/compactor/strategies/backoff"
)

// idle returns the share of one core that a scheduler, a worker and their servers use while
// there is nothing to do.
func (s *system) idle(ctx context.Context) (share float64, err error) {
	err = s.work(ctx, func(ctx context.Context) error {
		if err := s.untilLeading(ctx); err != nil {
			return err
		}
		if err := backoff.Wait(ctx, idleTime); err != nil { // for a second after an event, the scheduler polls often
			return err
		}
		begin := time.Now()
		used, err := s.cpuOf(ctx, func() error { return backoff.Wait(ctx, idleTime) })
		share = used.sum() / time.Since(begin).Seconds()
		return err
	})
	return share, err
}

// CPU is CPU time by program: in microseconds for one compaction, or in seconds.
type CPU struct {
	Worker   float64 `json:"worker"` // this process: a scheduler and a worker
	Postgres float64 `json:"postgres"`
	Redis    float64 `json:"redis"`
}

func (c CPU) sum() float64 { return c.Worker + c.Postgres + c.Redis }

// add returns the sum of c and factor times o.
func (c CPU) add(o CPU, factor float64) CPU {
	return CPU{c.Worker + factor*o.Worker, c.Postgres + factor*o.Postgres, c.Redis + factor*o.Redis}
}

// cpuOf returns the CPU seconds that do takes.
func (s *system) cpuOf(ctx context.Context, do func() error) (seconds CPU, err error) {
	before, err := s.cpu(ctx)
	if err != nil {
		return seconds, err
	}
	if err := do(); err != nil {
		return seconds, err
	}
	after, err := s.cpu(ctx)
	return after.add(before, -1), err
}

// cpu returns the CPU seconds so far.
func (s *system) cpu(ctx context.Context) (seconds CPU, err error) {
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		return seconds, err
	}
	seconds.Worker = float64(self.Utime.Nano()+self.Stime.Nano()) / 1e9

	client := s.redis.MakeRedisClient().(redis.UniversalClient) // as all options of asynq do
	defer func() { _ = client.Close() }()
	info, err := client.Info(ctx, "cpu").Result()
	if err != nil {
		return seconds, fmt.Errorf("cpu of redis: %w", err)
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			n, _ := strconv.ParseFloat(value, 64)
			seconds.Redis += n
		}
	}
	var backend int
	if err := s.db.pool.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&backend); err != nil {
		return seconds, fmt.Errorf("cpu of postgres: %w", err)
	}
	seconds.Postgres = postgresCPU(backend)
	return seconds, nil
}

// postgresCPU returns the CPU seconds of the server of a backend, 0 if it is not on this
// machine, or the system does not report it.
func postgresCPU(backend int) float64 {
	const ticks = 100 // a second, on every Linux
	// stat returns the fields of a process from its state on; the name before may hold blanks.
	stat := func(pid string) []string {
		raw, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		_, rest, found := strings.Cut(string(raw), "(postgres) ")
		if err != nil || !found {
			return nil
		}
		return strings.Fields(rest)
	}
	sum := func(fields []string) (total float64) {
		for _, f := range fields {
			n, _ := strconv.ParseFloat(f, 64)
			total += n
		}
		return total
	}
	const parent, user = 1, 11 // indexes: user, system, and both of the children that have ended
	own := stat(strconv.Itoa(backend))
	if len(own) < user+4 {
		return 0
	}
	total := 0.0
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		pid := filepath.Base(p)
		f := stat(pid)
		switch {
		case len(f) < user+4:
		case pid == own[parent]:
			total += sum(f[user : user+4])
		case f[parent] == own[parent]:
			total += sum(f[user : user+2])
		}
	}
	return total / ticks
}
