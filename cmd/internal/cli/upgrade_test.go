package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store/storetest"
)

// A process of this version goes on when a later one has migrated, starts again on that schema, also where it is to
// migrate, and leaves the functions of the later one.
func TestAProgramGoesOnWithTheSchemaOfALaterOne(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	c := p.run(p.config.Database.URL, p.config.Redis.URL, "serve", "--api-listen=off")
	compacted := func(name string) {
		t.Helper()
		p.written(name)
		p.await(name+" is compacted", func() bool { return p.session(name).Revision == 1 })
	}
	compacted("before")
	later := migrations.Newest() + 7
	execute(t.Context(), t, p.config.Database.URL.Reveal(), fmt.Sprintf(`
		ALTER TABLE compactor.sessions ADD COLUMN later text NOT NULL DEFAULT 'x';
		ALTER TABLE compactor.runs ADD COLUMN later text;
		ALTER TABLE compactor.outbox ADD COLUMN later bigint NOT NULL DEFAULT 7;
		INSERT INTO compactor.compactor_migrations (version_id, is_applied) VALUES (%d, true);
		UPDATE compactor.installed_functions SET hash = 'later'`, later))
	env := []string{"DATABASE_URL=" + p.config.Database.URL.Reveal(), "REDIS_URL=" + p.config.Redis.URL.Reveal()}
	compacted("during")
	invoke(t, env, "migrate", "up").want(t, 0, fmt.Sprintf("of a later version: it is at %d, this program ends at %d; nothing was done", later, migrations.Newest()))
	invoke(t, env, "migrate", "status").want(t, 0, fmt.Sprintf("%05d, of a later version", later), "functions")
	c.stop()
	<-c.done
	for _, args := range [][]string{{"serve", "--api-listen=off"}, {"serve", "--api-listen=off", "--migrate"}} {
		again := p.run(p.config.Database.URL, p.config.Redis.URL, args...)
		p.await("it is ready, or has ended", func() bool {
			status, _ := again.get("/readyz")
			select {
			case <-again.done:
				return true
			default:
				return status == http.StatusOK
			}
		})
		compacted(strings.Join(args, " "))
		again.stop()
		<-again.done
	}
	if r := invoke(t, env, "doctor", "--deep"); !strings.Contains(r.stdout, "✓ migrations: all ") || !strings.Contains(r.stdout, "✓ sessions checked: 4 of 4") {
		t.Error(r)
	}
	if n := p.number(`SELECT count(*) FROM compactor.runs WHERE status = 'failed' OR status <> 'applied' AND attempts > 1`); n > 0 {
		t.Errorf("%d runs failed", n)
	}
	if n := p.number(`SELECT count(*) FROM compactor.installed_functions WHERE hash = 'later'`); n != 1 {
		t.Error("the functions of the later version were replaced")
	}
}

var upgradeFrom = flag.String("from", "", "commit or tag that TestTwoVersionsAtOnce upgrades from; the last release by default")

// upgrade is an installation on which programs of two versions run.
type upgrade struct {
	t     *testing.T
	env   []string
	db    *pgxpool.Pool
	wrote int // sessions
}

// The version before runs beside this one on one database, is killed and started in the middle of the upgrade, and takes over
// again, as deploy/docs/upgrade.md has it, while an application writes.
func TestTwoVersionsAtOnce(t *testing.T) {
	t.Parallel()
	from := *upgradeFrom
	if from == "" {
		tag, err := exec.CommandContext(t.Context(), "git", "describe", "--tags", "--abbrev=0", "--match=v*").Output()
		if err != nil {
			t.Skip("there is no release in the history; -from names another commit")
		}
		from = strings.TrimSpace(string(tag))
	}
	dsn := storetest.DB(t, "", nil)
	u := &upgrade{t: t, env: []string{"DATABASE_URL=" + dsn, "REDIS_URL=" + storetest.RealRedis(t)}}
	before, now := u.build(from), os.Args[0]
	u.command(before, "migrate", "up")
	var err error
	if u.db, err = pgxpool.New(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.db.Close)

	first := u.serve(before)
	u.write()
	u.await(first)
	u.command(now, "migrate", "up")
	u.write()
	u.await(first)
	second := u.serve(now)
	u.await(first, second)
	first.kill()
	u.command(before, "migrate", "up") // of a unit that migrates when it starts
	first = u.serve(before)
	u.await(first, second)
	second.kill() // back to the version before
	u.await(first)
	first.kill()
	u.serve(now)
	u.rest()
	if out := u.command(now, "doctor", "--deep"); !strings.Contains(out, fmt.Sprintf("✓ sessions checked: %d of %[1]d", u.wrote)) {
		t.Error(out)
	}
}

// build returns the program of a commit.
func (u *upgrade) build(commit string) string {
	u.t.Helper()
	dir := u.t.TempDir()
	build := `git -C "$0" archive "$1" | tar -x -C "$2" && cd "$2" && go build -trimpath -tags nodev -o "$2/compactor" ./cmd/compactor`
	if out, err := exec.CommandContext(u.t.Context(), "bash", "-c", build, filepath.Join("..", "..", ".."), commit, dir).CombinedOutput(); err != nil {
		u.t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "compactor")
}

// command runs a command of a program, which must succeed.
func (u *upgrade) command(program string, args ...string) string {
	u.t.Helper()
	cmd := exec.CommandContext(u.t.Context(), program, args...)
	cmd.Env = append(u.env, asProgram+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		u.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// serve starts a program. It is killed at the end of the test.
func (u *upgrade) serve(program string) process {
	u.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(u.t.Context()), program, "serve", "--log-format=json", "--metrics-listen=off", "--api-listen=off",
		"--policy-debounce=0s", "--policy-min-gain-tokens=50", "--policy-start-tokens=600", "--policy-target-tokens=300",
		"--worker-lease=2s", "--worker-heartbeat=500ms", "--scheduler-leader-ttl=2s", "--scheduler-reconcile-interval=1s", "--wait-timeout=20s")
	cmd.Env = append(u.env, asProgram+"=1")
	var logs bytes.Buffer
	cmd.Stderr = &logs
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	kill := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); !strings.Contains(fmt.Sprint(err), "killed") || u.t.Failed() {
			u.t.Errorf("%s ended: %v\n%s", filepath.Base(program), err, logs.String())
		}
	})
	u.t.Cleanup(kill)
	return process{cmd, kill}
}

// write appends a session that is due, as an application does by SQL.
func (u *upgrade) write() {
	u.t.Helper()
	u.wrote++
	_, err := u.db.Exec(u.t.Context(), `SELECT compactor.append('default', 'chat-' || $1, (SELECT json_agg(json_build_object(
		'id', i::text, 'role', CASE i % 2 WHEN 1 THEN 'user' ELSE 'assistant' END, 'content', repeat('word ', 100))) FROM generate_series(1, 13) i), 'gpt-4o')`,
		fmt.Sprint(u.wrote))
	if err != nil {
		u.t.Fatal(err)
	}
}

// await writes until each of the processes has applied three runs more.
func (u *upgrade) await(processes ...process) {
	u.t.Helper()
	var since int64
	u.read(&since, `SELECT coalesce(max(id), 0) FROM compactor.runs`)
	for _, p := range processes {
		u.until(fmt.Sprintf("process %d applies runs", p.cmd.Process.Pid), func() (done bool) {
			u.write()
			u.read(&done, `SELECT count(*) >= 3 FROM compactor.runs WHERE id > $1 AND status = 'applied' AND worker LIKE '%/' || $2`, since, fmt.Sprint(p.cmd.Process.Pid))
			return done
		})
	}
}

// rest waits until all is done, and checks that each session was compacted and no run failed.
func (u *upgrade) rest() {
	u.t.Helper()
	u.until("all runs have ended", func() (done bool) {
		u.read(&done, `SELECT NOT EXISTS (SELECT FROM compactor.runs WHERE status IN ('queued', 'running')) AND NOT EXISTS (SELECT FROM compactor.outbox)`)
		return done
	})
	var compacted, failed, lost int
	u.read(&compacted, `SELECT count(*) FROM compactor.sessions WHERE revision = 1 AND last_source_seq = 13`)
	u.read(&failed, `SELECT count(*) FROM compactor.runs WHERE status = 'failed'`)
	u.read(&lost, `SELECT count(*) FROM compactor.runs WHERE attempts > 1`) // of processes that were killed
	if compacted != u.wrote || failed > 0 {
		u.t.Errorf("%d of %d sessions were compacted; %d runs failed, %d were lost", compacted, u.wrote, failed, lost)
	}
	u.t.Logf("%d sessions, %d runs of processes that were killed", u.wrote, lost)
}

func (u *upgrade) until(what string, done func() bool) {
	u.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			u.t.Fatal("waited in vain until " + what)
		}
	}
}

func (u *upgrade) read(into any, sql string, args ...any) {
	u.t.Helper()
	if err := u.db.QueryRow(u.t.Context(), sql, args...).Scan(into); err != nil {
		u.t.Fatal(err)
	}
}
