package stack

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// startRedis sets the Redis part of the stack.
func startRedis(ctx context.Context, s *Stack, o Options) error {
	if o.RedisURL != "" {
		s.RedisURL, s.Redis = o.RedisURL, Server{Kind: Given}
		return nil
	}
	if o.RealRedis {
		return startRedisServer(ctx, s, o)
	}
	return startMiniredis(s)
}

// startMiniredis starts the in-process Redis. A goroutine advances its clock, as miniredis
// does not expire keys by itself.
func startMiniredis(s *Stack) error {
	m := miniredis.NewMiniRedis()
	password := rand.Text()
	m.RequireAuth(password)
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return fmt.Errorf("start in-process redis: %w", err)
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-quit:
				return
			case <-tick.C:
				now := time.Now()
				m.FastForward(now.Sub(last))
				last = now
			}
		}
	}()
	s.stops = append(s.stops, func() error {
		close(quit)
		<-ended
		m.Close()
		return nil
	})
	s.RedisURL, s.Redis = redisURL(m.Server().Addr().Port, password), Server{Kind: InProcess}
	return nil
}

// startRedisServer starts a redis-server without persistence.
func startRedisServer(ctx context.Context, s *Stack, o Options) error {
	path, err := o.find.server(ctx, "redis-server")
	if err != nil {
		return err
	}
	f, err := s.open(ctx, o)
	if err != nil {
		return err
	}
	dir, err := f.mkdir("redis")
	if err != nil {
		return err
	}
	password, version := rand.Text(), ""
	p, port, err := s.launch(ctx, f, redisService(path, dir, password, &version))
	if err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	s.RedisURL, s.Redis = redisURL(port, password), Server{Kind: Private, Version: version, Dir: dir, PID: p.pid()}
	return nil
}

// redisService describes a redis-server, whose version it sets when the server is ready.
func redisService(path, dir, password string, version *string) service {
	return service{
		name: "redis", timeout: 20 * time.Second, taken: regexp.MustCompile("already in use|Failed listening"),
		death: syscall.SIGTERM, stop: []step{{syscall.SIGTERM, 5 * time.Second}},
		command: func(port int) *exec.Cmd {
			cmd := exec.Command(path, "-") // all users can read arguments, so the settings are on stdin
			cmd.Stdin = strings.NewReader(fmt.Sprintf("bind 127.0.0.1\nport %d\ndir %q\nsave \"\"\nappendonly no\nmaxmemory-policy noeviction\ndaemonize no\nrequirepass %s\n",
				port, dir, password))
			return cmd
		},
		ready: func(ctx context.Context, port, pid int) bool {
			// Another server on the port may accept the connection and never reply.
			client := redis.NewClient(&redis.Options{
				Addr: address(port), Password: password, MaxRetries: -1, DialerRetries: 1,
				DialTimeout: 500 * time.Millisecond, ReadTimeout: 500 * time.Millisecond,
			})
			defer client.Close()
			info, err := client.Info(ctx, "server").Result()
			_, *version, _ = strings.Cut(info, "redis_version:")
			*version, _, _ = strings.Cut(*version, "\r")
			return err == nil && strings.Contains(info, "process_id:"+strconv.Itoa(pid)+"\r")
		},
	}
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func redisURL(port int, password string) string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", password), Host: address(port), Path: "/0"}
	return u.String()
}
