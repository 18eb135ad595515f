package stack

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/sessionstore/compactor/store/storetest"
)

// envHelper makes the test binary start a stack, say where, and wait: a parent
// to be killed.
const envHelper = "STACK_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(envHelper) != "" {
		os.Exit(helper())
	}
	goleak.VerifyTestMain(m)
}

func helper() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := Start(ctx, Options{RealRedis: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
		return 1
	}
	<-ctx.Done()
	if err := s.Stop(); err != nil {
		return 1
	}
	return 0
}

// needServers skips where this machine has no servers, unless they are required. It fetches
// those that are missing.
func needServers(t *testing.T) {
	t.Helper()
	f := newFinder(false, func(line string) { t.Log(line) })
	_, err := f.postgres(t.Context(), 0)
	if err == nil {
		_, err = f.server(t.Context(), "redis-server")
	}
	if err != nil && os.Getenv("REQUIRE_DB") == "1" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
}

// openDir returns a folder that every user may enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, dir: os.ModeSticky | 0o777} {
		if err := os.Chmod(d, mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func mustStart(t *testing.T, o Options) *Stack {
	t.Helper()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func exec1(t *testing.T, dsn, sql string) (answer string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), sql).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func redisClient(t *testing.T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}

func TestStartServesAndStopLeavesNothing(t *testing.T) {
	t.Parallel()
	needServers(t)
	begin := time.Now()
	s := mustStart(t, Options{RealRedis: true})
	t.Logf("started in %s: %+v %+v", time.Since(begin), s.Postgres, s.Redis)
	if got := exec1(t, s.DatabaseURL, "select current_setting('fsync')"); got != "off" {
		t.Errorf("fsync = %s, want off", got)
	}
	if got := exec1(t, s.DatabaseURL, "select current_database()"); got != "compactor" {
		t.Errorf("database = %s", got)
	}
	if err := redisClient(t, s.RedisURL).Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	if s.Postgres.Kind != Private || s.Redis.Kind != Private {
		t.Errorf("kinds %q and %q, want private ones", s.Postgres.Kind, s.Redis.Kind)
	}
	begin = time.Now()
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("stopped in %s", time.Since(begin))
	if alive(s.Postgres.PID) || alive(s.Redis.PID) {
		t.Error("a server outlived Stop")
	}
	if !missing(filepath.Dir(s.Postgres.Dir)) {
		t.Error("the temporary folder outlived Stop")
	}
}

func TestServersRefuseStrangers(t *testing.T) {
	t.Parallel()
	needServers(t)
	s := mustStart(t, Options{})
	conn, err := pgx.Connect(t.Context(), strings.Replace(s.DatabaseURL, "compactor:", "compactor:x", 1))
	if err == nil {
		conn.Close(t.Context())
		t.Error("postgres let a wrong password in")
	}
	host := s.RedisURL[strings.Index(s.RedisURL, "@")+1:]
	if err := redisClient(t, "redis://"+host).Ping(t.Context()).Err(); err == nil {
		t.Error("redis let a stranger in")
	}
}

func TestGivenURLsAreUsedAsTheyAre(t *testing.T) {
	t.Parallel()
	s := mustStart(t, Options{DatabaseURL: "postgres://nowhere.invalid/x", RedisURL: "redis://nowhere.invalid", find: &finder{}})
	if s.DatabaseURL != "postgres://nowhere.invalid/x" || s.RedisURL != "redis://nowhere.invalid" {
		t.Errorf("got %q and %q", s.DatabaseURL, s.RedisURL)
	}
	if s.Postgres != (Server{Kind: Given}) || s.Redis != (Server{Kind: Given}) {
		t.Errorf("got %+v and %+v", s.Postgres, s.Redis)
	}
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	needServers(t)
	dir := openDir(t)
	t.Setenv("TMPDIR", dir)
	for _, after := range []time.Duration{0, 20 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond, 700 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		s, err := Start(ctx, Options{RealRedis: true})
		cancel()
		switch {
		case err == nil:
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		case !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("cancelled after %s: %v", after, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("cancelled after %s: left %v", after, left)
		}
		if pids := processesIn(t, dir); len(pids) > 0 {
			t.Errorf("cancelled after %s: left processes %v", after, pids)
		}
	}
}

// processesIn returns the processes that have the folder in their arguments.
func processesIn(t *testing.T, dir string) (pids []string) {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if args, err := os.ReadFile(file); err == nil && strings.Contains(string(args), dir) {
			pids = append(pids, strings.Split(file, "/")[2])
		}
	}
	return pids
}

func TestDataDirIsKeptAndOwnedByOne(t *testing.T) {
	t.Parallel()
	needServers(t)
	o := Options{DataDir: filepath.Join(openDir(t), "deep", "er"), Durable: true, Settings: map[string]string{"work_mem": "8MB"}}
	if err := os.Mkdir(filepath.Dir(o.DataDir), 0o755); err != nil {
		t.Fatal(err)
	}
	first := mustStart(t, o)
	if got := exec1(t, first.DatabaseURL, "select concat_ws(' ', current_setting('fsync'), current_setting('work_mem'))"); got != "on 8MB" {
		t.Errorf("fsync, work_mem = %s", got)
	}
	conn, err := pgx.Connect(t.Context(), first.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "create table kept as select 'yes'::text as answer"); err != nil {
		t.Fatal(err)
	}
	conn.Close(t.Context())
	if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second start on the same folder: %v", err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	// A dead server leaves a pid file, whose id may belong to another program later.
	pid := filepath.Join(o.DataDir, "postgres", "postmaster.pid")
	if err := os.WriteFile(pid, []byte(strconv.Itoa(os.Getpid())+"\n/x\n1\n1\n\n\n1 1\nready\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := mustStart(t, o)
	if got := exec1(t, again.DatabaseURL, "select answer from kept"); got != "yes" {
		t.Errorf("answer = %s", got)
	}
}

func TestDataDirOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	needServers(t)
	dir := openDir(t)
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{DataDir: dir}); err == nil || !strings.Contains(err.Error(), "other files") {
		t.Errorf("got %v", err)
	}
}

func TestRootNamesTheFolderInTheWay(t *testing.T) {
	t.Parallel()
	needServers(t)
	if os.Geteuid() != 0 {
		t.Skip("only root runs servers as another user")
	}
	closed := filepath.Join(openDir(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{DataDir: filepath.Join(closed, "data")}); err == nil || !strings.Contains(err.Error(), "may not enter "+closed) {
		t.Errorf("got %v", err)
	}
}

func TestFailedStartShowsTheLog(t *testing.T) {
	t.Parallel()
	needServers(t)
	_, err := Start(t.Context(), Options{Settings: map[string]string{"work_mem": "plenty"}})
	if err == nil || !strings.Contains(err.Error(), "plenty") {
		t.Errorf("got %v", err)
	}
}

func TestTakenPortIsReported(t *testing.T) {
	t.Parallel()
	needServers(t)
	s := mustStart(t, Options{RealRedis: true, DataDir: filepath.Join(openDir(t), "data")})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	f := s.folder
	find := newFinder(true, nil)
	path, err := find.server(t.Context(), "redis-server")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := redisService(path, s.Redis.Dir, "x", new(string)).launchAt(t.Context(), f, port); !errors.Is(err, errPortTaken) {
		t.Errorf("redis: got %v", err)
	}
	bin, err := find.postgres(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	data := f.join("second")
	if err := initCluster(t.Context(), f, bin, data, f.join("password")); err != nil {
		t.Fatal(err)
	}
	if _, err := postgresService(filepath.Join(bin, "postgres"), data, Options{}).launchAt(t.Context(), f, port); !errors.Is(err, errPortTaken) {
		t.Errorf("postgres: got %v", err)
	}
}

func TestMiniredisKeysExpire(t *testing.T) {
	t.Parallel()
	s, err := StartRedis(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Redis.Kind != InProcess || s.DatabaseURL != "" {
		t.Errorf("got %+v", s.Redis)
	}
	c := redisClient(t, s.RedisURL)
	if err := c.Set(t.Context(), "k", "v", 200*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	storetest.Await(t, "the key expires", func() bool { return c.Exists(t.Context(), "k").Val() == 0 })
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
}

// startHelper runs the test binary as a parent of a stack.
func startHelper(t *testing.T, cmd *exec.Cmd) *Stack {
	t.Helper()
	// Another user than root finds the servers that root has fetched.
	cmd.Env = append(os.Environ(), envHelper+"=1", "XDG_CACHE_HOME="+filepath.Dir(cacheDir()))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	s := &Stack{}
	if err := json.Unmarshal(line, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestKilledParentLeavesNothing(t *testing.T) {
	t.Parallel()
	needServers(t)
	if missing("/proc/self/stat") {
		t.Skip("only Linux tells a child that its parent died")
	}
	cmd := exec.Command(os.Args[0])
	s := startHelper(t, cmd)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// As a container's first process we may be who has to reap them.
	storetest.Await(t, "the servers end", func() bool { return gone(s.Postgres.PID) && gone(s.Redis.PID) })
	folder := filepath.Dir(s.Postgres.Dir)
	storetest.Await(t, "the next start removes the folder", func() bool {
		sweep(filepath.Dir(folder))
		return missing(folder)
	})
}

// gone reports whether the process has ended, reaped or not.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestUnprivilegedUser(t *testing.T) {
	t.Parallel()
	needServers(t)
	nobody := &identity{name: "65534", uid: 65534, gid: 65534}
	if os.Geteuid() != 0 {
		t.Skip("run by an unprivileged user already")
	}
	// The test binary lies in a folder that is closed to others.
	binary := filepath.Join(openDir(t), "stack.test")
	copyFile(t, os.Args[0], binary)
	cmd := exec.Command(binary)
	detach(cmd, nobody, syscall.SIGTERM)
	cmd.Dir = filepath.Dir(binary)
	s := startHelper(t, cmd)
	if got := exec1(t, s.DatabaseURL, "select 'here'"); got != "here" {
		t.Errorf("got %s", got)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the helper ended with %v", err)
	}
	if !missing(filepath.Dir(s.Postgres.Dir)) || !gone(s.Postgres.PID) || !gone(s.Redis.PID) {
		t.Error("something was left behind")
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	writeExecutable(t, to, text)
}

// writeExecutable writes a file that can be executed at once: a process that another test
// starts meanwhile would inherit the open file, and the file be busy until it has executed.
func writeExecutable(t *testing.T, path string, text []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
}
