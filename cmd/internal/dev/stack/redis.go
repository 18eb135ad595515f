package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sessionstore/compactor/strategies/backoff"
)

// startRedis fills in the Redis part of the stack.
func startRedis(ctx context.Context, s *Stack, o Options) error {
	if o.RedisURL != "" {
		s.RedisURL, s.Redis = o.RedisURL, Server{Kind: Given}
		return nil
	}
	if o.RealRedis {
		path, err := o.find.look("redis-server")
		if err == nil {
			return startRedisServer(ctx, s, o, path)
		}
		o.Logger.Info("no redis-server found, using the in-process one")
	}
	return startMiniredis(s)
}

// startMiniredis starts the in-process Redis. Its clock for expiry stands still
// by itself, so a goroutine moves it with the real time.
func startMiniredis(s *Stack) error {
	m := miniredis.NewMiniRedis()
	password := newPassword()
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
	s.RedisURL, s.Redis = redisURL(m.Addr(), password), Server{Kind: InProcess}
	return nil
}

// startRedisServer starts a redis-server that keeps nothing on disk.
func startRedisServer(ctx context.Context, s *Stack, o Options, path string) error {
	f, err := s.open(ctx, o)
	if err != nil {
		return err
	}
	dir, err := f.mkdir("redis")
	if err != nil {
		return err
	}
	password := newPassword()
	for range portAttempts {
		var port int
		if port, err = freePort(ctx); err != nil {
			return err
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		var p *process
		var version string
		if p, version, err = launchRedis(ctx, f, path, dir, port, redisURL(addr, password)); err == nil {
			s.stops = append(s.stops, func() error { return p.stop(step{syscall.SIGTERM, 5 * time.Second}) })
			s.RedisURL = redisURL(addr, password)
			s.Redis = Server{Kind: Private, Version: version, Dir: dir, Bin: path, PID: p.pid()}
			return nil
		}
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return fmt.Errorf("start %s: %w", path, err)
}

func launchRedis(ctx context.Context, f *folder, path, dir string, port int, rawURL string) (*process, string, error) {
	options, err := redis.ParseURL(rawURL)
	if err != nil {
		return nil, "", err
	}
	log, err := os.OpenFile(f.join("redis.log"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, "", err
	}
	defer log.Close()
	cmd := exec.Command(path, "-") // settings come by stdin: arguments show the password to everybody
	cmd.Stdin = strings.NewReader(fmt.Sprintf("bind 127.0.0.1\nport %d\ndir %q\nsave \"\"\nappendonly no\nmaxmemory-policy noeviction\ndaemonize no\nrequirepass %s\n",
		port, dir, options.Password))
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, environ(), log, log
	detach(cmd, f.as, syscall.SIGTERM)
	p, err := startProcess(cmd)
	if err != nil {
		return nil, "", err
	}
	version, err := awaitRedis(ctx, p, options)
	if err == nil {
		return p, version, nil
	}
	err = errors.Join(err, p.stop(step{syscall.SIGTERM, 5 * time.Second}))
	said, _ := os.ReadFile(log.Name())
	switch {
	case ctx.Err() != nil:
		return nil, "", err
	case strings.Contains(string(said), "already in use"), strings.Contains(string(said), "Failed listening"):
		return nil, "", errPortTaken
	default:
		return nil, "", fmt.Errorf("%w: %s", err, lastLines(string(said), 5))
	}
}

// awaitRedis returns the version of the server once it answers.
func awaitRedis(ctx context.Context, p *process, options *redis.Options) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 20*time.Second, errors.New("no answer within 20s"))
	defer cancel()
	// Another server on the same port may take the connection and never answer.
	options.MaxRetries, options.DialerRetries = -1, 1
	options.DialTimeout, options.ReadTimeout = 500*time.Millisecond, 500*time.Millisecond
	client := redis.NewClient(options)
	defer client.Close()
	for {
		info, err := client.Info(ctx, "server").Result()
		if err == nil && strings.Contains(info, "process_id:"+strconv.Itoa(p.pid())+"\r") {
			_, version, _ := strings.Cut(info, "redis_version:")
			version, _, _ = strings.Cut(version, "\r")
			return version, nil
		}
		if p.ended() {
			return "", fmt.Errorf("it ended at once (%w)", p.err)
		}
		if err := backoff.Wait(ctx, 5*time.Millisecond); err != nil {
			return "", err
		}
	}
}

func redisURL(addr, password string) string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", password), Host: addr, Path: "/0"}
	return u.String()
}
