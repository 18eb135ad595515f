package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/metrics"
	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
	"github.com/sessionstore/compactor/worker"
)

// Config holds all settings. Default returns the defaults, Load reads the sources; the
// zero value is not valid.
type Config struct {
	// Tenant is the default tenant of commands.
	Tenant   string   `yaml:"tenant"`
	Database Database `yaml:"database"`
	// Databases are those of a fleet on several, by name; database.url is empty then.
	Databases map[string]Database `yaml:"databases"`
	Redis     Redis               `yaml:"redis"`
	Policy    policy.Policy       `yaml:"policy"`
	LLM       llm.Config          `yaml:"llm"`
	Worker    worker.Config       `yaml:"worker"`
	Scheduler scheduler.Config    `yaml:"scheduler"`
	// Schedules start sweeps, by name. Without any, policy.cron does.
	Schedules map[string]policy.Schedule `yaml:"schedules"`
	Metrics   metrics.Config             `yaml:"metrics"`
	API       API                        `yaml:"api"`
	Traces    Traces                     `yaml:"traces"`
	Log       Log                        `yaml:"log"`
	// Models adds to the built-in table of models, or overrides it.
	Models tokens.Table `yaml:"models"`

	name     string   // of the database of a fleet
	siblings []string // names of its other databases
	file     string
	origins  map[string]Origin
}

// Database is the connection to Postgres.
type Database struct {
	// URL is a postgres:// URL or a key=value connection string. It may be empty;
	// commands that need a database check it with Require.
	URL Secret `yaml:"url"`
	// Schema holds all objects of the application.
	Schema string `yaml:"schema"`
	// MaxConns bounds the pool; 0 selects worker.concurrency + 4, at most store.DefaultConns.
	MaxConns int `yaml:"max_conns"`
}

// Redis is the connection to the queue.
type Redis struct {
	// URL is one of jobs.RedisURLs.
	URL Secret `yaml:"url"`
	// Installation names the queues and tasks beside the schema; "" derives a name from
	// the database. See store.Installation.
	Installation string `yaml:"installation"`
}

// Log holds the settings of the log.
type Log struct {
	// Level is debug, info, warn or error.
	Level string `yaml:"level"`
	// Format is auto (text on a terminal, else JSON), json or text.
	Format string `yaml:"format"`
}

// Default returns the configuration without any source.
func Default() Config {
	return Config{
		Tenant:    "default",
		Database:  Database{Schema: migrations.DefaultSchema},
		Policy:    policy.Default(),
		LLM:       llm.Default(),
		Worker:    worker.Default(),
		Scheduler: scheduler.Default(),
		Metrics:   metrics.DefaultConfig(),
		API:       defaultAPI(),
		Log:       Log{Level: "info", Format: "auto"},
	}
}

// Name returns the name of the database that On has selected, "" for one without a name.
func (c Config) Name() string { return c.name }

// Siblings returns the names of the other databases of its fleet.
func (c Config) Siblings() []string { return c.siblings }

// SchedulerConfig returns the settings of a scheduler with its policy and its schedules.
func (c Config) SchedulerConfig() scheduler.Config {
	out := c.Scheduler
	out.Policy, out.Schedules = c.Policy, c.Schedules
	return out
}

// Fleet returns a configuration for each database, in the order of their names; without
// databases, this one.
func (c Config) Fleet() []Config {
	if len(c.Databases) == 0 {
		return []Config{c}
	}
	var out []Config
	for _, name := range slices.Sorted(maps.Keys(c.Databases)) {
		out = append(out, c.on(name))
	}
	return out
}

// On returns the configuration with one of the databases as its only one.
func (c Config) On(name string) (Config, error) {
	if _, ok := c.Databases[name]; !ok {
		return c, fmt.Errorf("--database: %q: want one of databases in the configuration [%s]", name, strings.Join(slices.Sorted(maps.Keys(c.Databases)), " "))
	}
	return c.on(name), nil
}

func (c Config) on(name string) Config {
	d := c.Databases[name]
	d.Schema, d.MaxConns = cmp.Or(d.Schema, c.Database.Schema), cmp.Or(d.MaxConns, c.Database.MaxConns)
	for _, other := range slices.Sorted(maps.Keys(c.Databases)) {
		if other != name {
			c.siblings = append(c.siblings, other)
		}
	}
	c.Database, c.Databases, c.name = d, nil, name
	if c.Redis.Installation != "" { // which names the queues of one database
		c.Redis.Installation += "." + name
	}
	return c
}

// PoolSize returns the maximum size of the connection pool (see Database.MaxConns).
func (c Config) PoolSize() int {
	if c.Database.MaxConns > 0 {
		return c.Database.MaxConns
	}
	return min(c.Worker.Concurrency+4, store.DefaultConns)
}

// File returns the path of the configuration file, "" if none was read.
func (c Config) File() string { return c.file }

// Require returns an error that lists the given keys that are empty and how to set them.
func (c Config) Require(keys ...string) error {
	var fs faults
	for _, key := range keys {
		for _, f := range fields(&c) {
			if f.key == key && f.value.IsZero() {
				fs.addf(Origin{}, key, "not set; give %s, --%s, or %s in the configuration file",
					strings.Join(EnvNames(key), " or "), FlagName(key), key)
			}
		}
	}
	return fs.err()
}

// Origin is the source of a value.
type Origin struct {
	// Source is default, preset, file, env or flag.
	Source Source `json:"source"`
	// Name is the name of the preset, file, variable or flag.
	Name string `json:"name,omitempty"`
	// Line is the line in a file, 0 if unknown.
	Line int `json:"line,omitempty"`
}

// Source is a kind of Origin.
type Source string

// The sources in ascending order of precedence.
const (
	FromDefault Source = "default"
	FromPreset  Source = "preset"
	FromFile    Source = "file"
	FromEnv     Source = "env"
	FromFlag    Source = "flag"
)

// String returns "default", "preset chat", "compactor.yaml:7", "env DATABASE_URL" or "flag --tenant".
func (o Origin) String() string {
	switch o.Source {
	case FromPreset:
		return "preset " + o.Name
	case FromFile:
		if o.Line == 0 {
			return o.Name
		}
		return fmt.Sprintf("%s:%d", o.Name, o.Line)
	case FromEnv:
		return "env " + o.Name
	case FromFlag:
		return "flag --" + o.Name
	default:
		return string(FromDefault)
	}
}

// Origin returns the source of the value of a key. For a key inside a list or a map
// ("policy.pipeline[1].strategy") it is the source of the innermost element recorded.
func (c Config) Origin(key string) Origin {
	for {
		if o, ok := c.origins[key]; ok {
			return o
		}
		i := strings.LastIndexAny(key, ".[")
		if i < 0 {
			return Origin{Source: FromDefault}
		}
		key = key[:i]
	}
}
