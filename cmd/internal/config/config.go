package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Config is everything that can be set. Default gives the defaults, Load reads
// the sources; the zero value is not valid.
type Config struct {
	// Tenant is the tenant that commands work on unless told otherwise.
	Tenant    string        `yaml:"tenant"`
	Database  Database      `yaml:"database"`
	Redis     Redis         `yaml:"redis"`
	Policy    policy.Policy `yaml:"policy"`
	LLM       llm.Config    `yaml:"llm"`
	Worker    Worker        `yaml:"worker"`
	Scheduler Scheduler     `yaml:"scheduler"`
	Log       Log           `yaml:"log"`

	file    string
	origins map[string]Origin
}

// Database is the connection to Postgres.
type Database struct {
	// URL is a postgres:// URL or a key=value connection string. Commands that
	// need a database ask for it with Require.
	URL Secret `yaml:"url"`
	// Schema holds all objects of the application.
	Schema string `yaml:"schema"`
	// MaxConns bounds the pool; 0 is the worker's concurrency and four more, at most 20.
	MaxConns int `yaml:"max_conns"`
}

// Redis is the connection to the queue.
type Redis struct {
	// URL is a redis://, rediss://, redis-socket:// or redis-sentinel:// URL.
	URL Secret `yaml:"url"`
}

// Worker is how jobs are carried out.
type Worker struct {
	// Concurrency is how many sessions are compacted at a time.
	Concurrency int `yaml:"concurrency"`
	// Lease is how long a run belongs to its worker without a sign of life.
	Lease time.Duration `yaml:"lease"`
	// Heartbeat is how often a worker extends its leases.
	Heartbeat time.Duration `yaml:"heartbeat"`
	// JobTimeout bounds one delivery of one run.
	JobTimeout time.Duration `yaml:"job_timeout"`
	// DrainTimeout is how long running jobs may take to end on shutdown.
	DrainTimeout time.Duration `yaml:"drain_timeout"`
	// CheckInterval is how often an idle worker looks for tasks.
	CheckInterval time.Duration `yaml:"check_interval"`
}

// Scheduler is how runs are started.
type Scheduler struct {
	// RelayInterval is how often written sessions are looked for.
	RelayInterval time.Duration `yaml:"relay_interval"`
	// PageSize is how many sessions are handled at a time.
	PageSize int `yaml:"page_size"`
	// RedeliverAfter is when a queued run that nobody took is delivered again.
	RedeliverAfter time.Duration `yaml:"redeliver_after"`
	// LeaderTTL is how long a scheduler leads without a sign of life.
	LeaderTTL time.Duration `yaml:"leader_ttl"`
	// ReconcileInterval is how often lost work is looked for.
	ReconcileInterval time.Duration `yaml:"reconcile_interval"`
}

// Log is what is logged, and how.
type Log struct {
	// Level is debug, info, warn or error.
	Level string `yaml:"level"`
	// Format is auto (text on a terminal, else JSON), json or text.
	Format string `yaml:"format"`
}

// Default is the configuration without any source.
func Default() Config {
	return Config{
		Tenant:   "default",
		Database: Database{Schema: "compactor"},
		Policy:   policy.Default(),
		LLM:      llm.Default(),
		Worker: Worker{
			Concurrency:   64,
			Lease:         time.Minute,
			Heartbeat:     15 * time.Second,
			JobTimeout:    45 * time.Minute,
			DrainTimeout:  25 * time.Second,
			CheckInterval: 20 * time.Millisecond,
		},
		Scheduler: Scheduler{
			RelayInterval:     25 * time.Millisecond,
			PageSize:          500,
			RedeliverAfter:    2 * time.Minute,
			LeaderTTL:         15 * time.Second,
			ReconcileInterval: 30 * time.Second,
		},
		Log: Log{Level: "info", Format: "auto"},
	}
}

// mostConns is the pool's size where none is given: runs share round trips, so
// more of them need no more connections.
const mostConns = 20

// PoolSize is the number of connections to open: MaxConns, or what the worker's
// concurrency asks for.
func (c Config) PoolSize() int {
	if c.Database.MaxConns > 0 {
		return c.Database.MaxConns
	}
	return min(c.Worker.Concurrency+4, mostConns)
}

// File is the path of the file that was read, "" for none.
func (c Config) File() string { return c.file }

// Require reports every one of the given keys that is empty, with the ways to set it.
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

// Origin says where a value comes from.
type Origin struct {
	// Source is default, preset, file, env or flag.
	Source Source `json:"source"`
	// Name is the preset, the path, the variable or the flag.
	Name string `json:"name,omitempty"`
	// Line is the line of a file.
	Line int `json:"line,omitempty"`
}

// Source is a kind of Origin.
type Source string

// The sources, from the weakest to the strongest.
const (
	FromDefault Source = "default"
	FromPreset  Source = "preset"
	FromFile    Source = "file"
	FromEnv     Source = "env"
	FromFlag    Source = "flag"
)

// String is "default", "preset chat", "compactor.yaml:7", "env DATABASE_URL" or "flag --tenant".
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

// Origin tells where the value of a key comes from; for a key inside a list or a
// map ("policy.pipeline[1].strategy") where that element or what holds it does.
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
