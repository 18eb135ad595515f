package jobs_test

import (
	"crypto/tls"
	"reflect"
	"strings"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/sessionstore/compactor/worker/jobs"
)

func TestParseRedis(t *testing.T) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	for raw, want := range map[string]asynq.RedisConnOpt{
		"redis://h":                           asynq.RedisClientOpt{Addr: "h:6379"},
		"redis://[::1]":                       asynq.RedisClientOpt{Addr: "[::1]:6379"},
		"redis://u:p%2F@h:1/3":                asynq.RedisClientOpt{Addr: "h:1", Username: "u", Password: "p/", DB: 3},
		"rediss://:p@h:1":                     asynq.RedisClientOpt{Addr: "h:1", Password: "p", TLSConfig: secure},
		"redis-socket://:p@/run/r.sock?db=2":  asynq.RedisClientOpt{Network: "unix", Addr: "/run/r.sock", Password: "p", DB: 2},
		"redis-cluster://:p@a:1,b,c:3":        asynq.RedisClusterClientOpt{Addrs: []string{"a:1", "b:6379", "c:3"}, Password: "p"},
		"rediss-cluster://a:1":                asynq.RedisClusterClientOpt{Addrs: []string{"a:1"}, TLSConfig: secure},
		"redis-sentinel://a,b:2/1?master=one": asynq.RedisFailoverClientOpt{MasterName: "one", SentinelAddrs: []string{"a:26379", "b:2"}, DB: 1},
		"rediss-sentinel://u:p@a?master=m&sentinel_username=x&sentinel_password=y": asynq.RedisFailoverClientOpt{
			MasterName: "m", SentinelAddrs: []string{"a:26379"}, SentinelUsername: "x", SentinelPassword: "y",
			Username: "u", Password: "p", TLSConfig: secure,
		},
	} {
		if got, err := jobs.ParseRedis(raw); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", raw, got, err, want)
		}
	}
}

func TestParseRedisRefusesWithoutThePassword(t *testing.T) {
	for raw, want := range map[string]string{
		"redis://:hush/%zz@h":                   "must be escaped",
		"http://:hush@h":                        `scheme "http"`,
		"redis-ring://:hush@h":                  `scheme "redis-ring"`,
		"rediss-socket://:hush@/s":              `scheme "rediss-socket"`,
		"redis-socket://:hush@":                 "no path",
		"redis://:hush@":                        "no host",
		"redis://:hush@a,b":                     "several hosts",
		"redis://:hush@h/one":                   `database "one"`,
		"redis://:hush@h/-1":                    `database "-1"`,
		"redis://:hush@h?db=1":                  `parameter "db"`,
		"redis-cluster://:hush@h/1":             "only database 0",
		"redis-sentinel://:hush@h":              "no master",
		"redis-sentinel://:hush@h?mastername=m": `parameter "mastername"`,
	} {
		if _, err := jobs.ParseRedis(raw); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v; want %q", raw, err, want)
		}
	}
}
