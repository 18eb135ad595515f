package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Validate reports everything that is out of range, as Load does.
func (c Config) Validate() error {
	var fs faults
	c.validate(&fs, nil)
	return fs.err()
}

// validate adds what is wrong with the values. Keys that could not be read have
// been reported already and are left out.
func (c Config) validate(fs *faults, registry *strategies.Registry) {
	reported := map[string]bool{}
	for _, err := range *fs {
		if f, ok := errors.AsType[*Fault](err); ok {
			reported[f.Key] = true
		}
	}
	check := func(ok bool, key string, value any, want string, args ...any) {
		if !ok && !reported[key] {
			fs.addf(c.Origin(key), key, "%v: want %s", value, fmt.Sprintf(want, args...))
		}
	}
	between := func(key string, v, lo, hi time.Duration) {
		check(v >= lo && v <= hi, key, short(v), "%s to %s", short(lo), short(hi))
	}
	check(validName(c.Tenant), "tenant", fmt.Sprintf("%q", c.Tenant), "1 to 200 characters without control characters")
	c.validateConnections(check)
	c.validatePolicy(check, registry)

	c.validateLLM(check)

	w := c.Worker
	check(w.Concurrency >= 1 && w.Concurrency <= 10_000, "worker.concurrency", w.Concurrency, "1 to 10000")
	between("worker.lease", w.Lease, time.Second, time.Hour)
	between("worker.heartbeat", w.Heartbeat, 100*time.Millisecond, time.Hour)
	check(w.Heartbeat <= w.Lease/2, "worker.heartbeat", short(w.Heartbeat),
		"at most half of worker.lease (%s), or a lease ends under a worker that lives", short(w.Lease))
	between("worker.job_timeout", w.JobTimeout, time.Second, 24*time.Hour)
	between("worker.drain_timeout", w.DrainTimeout, 0, time.Hour)
	between("worker.check_interval", w.CheckInterval, time.Millisecond, time.Minute)

	s := c.Scheduler
	between("scheduler.relay_interval", s.RelayInterval, time.Millisecond, time.Minute)
	check(s.PageSize >= 1 && s.PageSize <= 100_000, "scheduler.page_size", s.PageSize, "1 to 100000")
	between("scheduler.redeliver_after", s.RedeliverAfter, time.Second, 24*time.Hour)
	check(s.RedeliverAfter >= w.Lease, "scheduler.redeliver_after", short(s.RedeliverAfter),
		"at least worker.lease (%s), or runs at work are delivered again", short(w.Lease))
	between("scheduler.leader_ttl", s.LeaderTTL, time.Second, time.Hour)
	between("scheduler.reconcile_interval", s.ReconcileInterval, time.Second, 24*time.Hour)

	check(slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level),
		"log.level", fmt.Sprintf("%q", c.Log.Level), "debug, info, warn or error")
	check(slices.Contains([]string{"auto", "json", "text"}, c.Log.Format),
		"log.format", fmt.Sprintf("%q", c.Log.Format), "auto, json or text")
}

type checkFunc func(ok bool, key string, value any, want string, args ...any)

func (c Config) validateConnections(check checkFunc) {
	if dsn := c.Database.URL.Reveal(); dsn != "" {
		scheme, _, isURL := strings.Cut(dsn, "://")
		ok := isURL && (scheme == "postgres" || scheme == "postgresql") || !isURL && strings.Contains(dsn, "=")
		check(ok, "database.url", c.Database.URL, "postgres://user:password@host:5432/database, or key=value pairs")
	}
	if dsn := c.Redis.URL.Reveal(); dsn != "" {
		scheme, _, _ := strings.Cut(dsn, "://")
		ok := slices.Contains([]string{"redis", "rediss", "redis-socket", "redis-sentinel"}, scheme)
		if _, err := url.Parse(dsn); err != nil {
			ok = false // its error would show the password
		}
		check(ok, "redis.url", c.Redis.URL, "redis://host:6379/0, rediss://, redis-socket:// or redis-sentinel://, with special characters of the password escaped")
	}
	schema := regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)
	check(schema.MatchString(c.Database.Schema) && !strings.HasPrefix(c.Database.Schema, "pg_"),
		"database.schema", fmt.Sprintf("%q", c.Database.Schema), "lower-case letters, digits and _, at most 63, not starting with pg_")
	check(c.Database.MaxConns >= 0 && c.Database.MaxConns <= 10_000, "database.max_conns", c.Database.MaxConns, "0 to 10000")
}

func (c Config) validatePolicy(check checkFunc, registry *strategies.Registry) {
	err := c.Policy.Validate()
	if err == nil && registry != nil {
		err = c.Policy.Check(registry.Fill, func(name string, params map[string]any) error {
			_, err := registry.New(name, params)
			return err
		})
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return
	}
	for _, err := range joined.Unwrap() {
		if f, ok := errors.AsType[*policy.Fault](err); ok {
			check(false, "policy."+f.Key, f.Value, "%s", f.Want)
		}
	}
}

func (c Config) validateLLM(check checkFunc) {
	joined, ok := c.LLM.Validate().(interface{ Unwrap() []error })
	if !ok {
		return
	}
	for _, err := range joined.Unwrap() {
		if f, ok := errors.AsType[*llm.Fault](err); ok && (f.Key != "models" || len(c.LLM.Models) > 0) {
			check(false, "llm."+f.Key, f.Value, "%s", f.Want)
		}
	}
}

func validName(s string) bool {
	return s != "" && len(s) <= 200 && !strings.ContainsFunc(s, unicode.IsControl)
}

// short is a duration without its zero parts: "10m", not "10m0s".
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
