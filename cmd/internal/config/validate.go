package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/worker/jobs"
)

// validate appends an error for each invalid value whose key has none yet.
func (c Config) validate(fs *faults, registry *plan.Registry) {
	check := fs.checker(c.Origin)
	check(validName(c.Tenant), "tenant", fmt.Sprintf("%q", c.Tenant), "1 to 200 characters without control characters")
	c.validateConnections(check)
	validatePolicy(c.Policy, "policy", check, registry)
	for i, m := range c.Models {
		key := fmt.Sprintf("models[%d]", i)
		if err := m.Validate(); err != nil {
			fs.addf(c.Origin(key), key, "%v", err)
		}
	}
	checkSection(check, "llm", c.LLM.Validate())
	checkSection(check, "worker", c.Worker.Validate())
	checkSection(check, "scheduler", c.Scheduler.Validate())
	checkSection(check, "metrics", c.Metrics.Validate())
	checkSection(check, "api", c.API.Validate())
	fault := endpointFault(c.Traces.Endpoint.Reveal())
	check(fault == "", "traces.endpoint", "the value", "%s", fault)
	c.validateSchedules(check)
	check(c.Scheduler.RedeliverAfter >= c.Worker.Lease, "scheduler.redeliver_after", policy.Text(c.Scheduler.RedeliverAfter),
		"at least worker.lease (%s), or active runs are delivered again", policy.Text(c.Worker.Lease))

	check(slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level),
		"log.level", fmt.Sprintf("%q", c.Log.Level), "debug, info, warn or error")
	check(slices.Contains([]string{"auto", "json", "text"}, c.Log.Format),
		"log.format", fmt.Sprintf("%q", c.Log.Format), "auto, json or text")
}

// validateSchedules checks the schedules, and that nothing else gives another one.
func (c Config) validateSchedules(check checkFunc) {
	checkSection(check, "schedules", policy.ValidateSchedules(c.Schedules))
	for name, s := range c.Schedules {
		check(s.Tenant == "" || validName(s.Tenant), "schedules."+name+".tenant", fmt.Sprintf("%q", s.Tenant), "1 to 200 characters without control characters")
	}
	for key, name := range map[string]string{"policy.cron": "cron", "policy.timezone": "timezone", "scheduler.sweep_window": "window"} {
		_, given := c.origins[key]
		check(len(c.Schedules) == 0 || !given, key, "given beside schedules", "one of them: as schedules.%s.%s, or no schedules", scheduler.EntryNightly, name)
	}
}

type checkFunc func(ok bool, key string, value any, want string, args ...any)

// checker returns a function that adds an error unless ok, or unless the key has one yet.
func (fs *faults) checker(origin func(key string) Origin) checkFunc {
	reported := map[string]bool{}
	for _, err := range *fs {
		if f, ok := errors.AsType[*SettingError](err); ok {
			reported[f.Key] = true
		}
	}
	return func(ok bool, key string, value any, want string, args ...any) {
		if !ok && !reported[key] {
			fs.addf(origin(key), key, "%v: want %s", value, fmt.Sprintf(want, args...))
		}
	}
}

func (c Config) validateConnections(check checkFunc) {
	c.Database.validate("database", check)
	check(len(c.Databases) == 0 || c.Database.URL == "", "databases", "given beside database.url", "one of the two")
	seen := map[Database]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Databases)) {
		key, d := "databases."+name, c.on(name).Database
		check(regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`).MatchString(name), key, fmt.Sprintf("%q", name), "a name of lower-case letters, digits, _ and -, at most 32")
		check(d.URL != "", key+".url", "not set", "the URL of the database")
		d.validate(key, check)
		d.MaxConns = 0
		check(seen[d] == "", key, "the same as "+seen[d], "another database or schema")
		seen[d] = name
	}
	if dsn := c.Redis.URL.Reveal(); dsn != "" {
		if _, err := jobs.ParseRedis(dsn); err != nil {
			check(false, "redis.url", c.Redis.URL, "%s (%s)", jobs.RedisURLs, strings.TrimSuffix(err.Error(), ": want "+jobs.RedisURLs))
		}
	}
	check(regexp.MustCompile(`^[A-Za-z0-9_.-]{0,64}$`).MatchString(c.Redis.Installation), "redis.installation",
		fmt.Sprintf("%q", c.Redis.Installation), "letters, digits, _, . and -, at most 64")
}

func (d Database) validate(section string, check checkFunc) {
	if dsn := d.URL.Reveal(); dsn != "" {
		scheme, _, isURL := strings.Cut(dsn, "://")
		ok := isURL && (scheme == "postgres" || scheme == "postgresql") || !isURL && strings.Contains(dsn, "=")
		check(ok, section+".url", d.URL, "postgres://user:password@host:5432/database, or key=value pairs")
	}
	schema := regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)
	check(schema.MatchString(d.Schema) && !strings.HasPrefix(d.Schema, "pg_"),
		section+".schema", fmt.Sprintf("%q", d.Schema), "lower-case letters, digits and _, at most 63, not starting with pg_")
	check(d.MaxConns >= 0 && d.MaxConns <= store.MostConns, section+".max_conns", d.MaxConns, "0 to %d", store.MostConns)
}

// validatePolicy checks a policy whose settings are in a section, "" for none.
func validatePolicy(p policy.Policy, section string, check checkFunc, registry *plan.Registry) {
	err := p.Validate()
	if err == nil && registry != nil {
		err = p.Check(registry.Fill, func(name string, params map[string]any) error {
			_, err := registry.New(name, params)
			return err
		})
	}
	checkSection(check, section, err)
}

// checkSection reports the errors of the package that owns a section of the settings.
func checkSection(check checkFunc, section string, err error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return
	}
	for _, err := range joined.Unwrap() {
		f, ok := errors.AsType[*policy.FieldError](err)
		if ok && f.Key != "models" { // models are optional
			check(false, join(section, f.Key), f.Value, "%s", f.Want)
		}
	}
}

func validName(s string) bool {
	return s != "" && len(s) <= 200 && !strings.ContainsFunc(s, unicode.IsControl)
}
