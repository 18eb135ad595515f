package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/backoff"
)

var errLocked = errors.New("is in use by another process")

// tempPrefix starts the name of every temporary folder.
const tempPrefix = "compactor-stack-"

// folder holds the data and logs of the servers. It is locked while it is open.
type folder struct {
	path      string
	temporary bool
	lock      *os.File
	as        *identity // of the servers
}

// openFolder opens or creates the data folder; for an empty path it creates a temporary
// one. It removes temporary folders whose owner was killed.
func openFolder(ctx context.Context, path string, as *identity) (*folder, error) {
	f := &folder{path: path, temporary: path == "", as: as}
	var err error
	if f.temporary {
		base := os.TempDir()
		if blocker(base, as) != "" {
			base = "/tmp"
		}
		sweep(base)
		f.path, err = os.MkdirTemp(base, tempPrefix)
	} else if f.path, err = filepath.Abs(path); err == nil {
		if block := blocker(filepath.Dir(f.path), as); block != "" {
			return nil, fmt.Errorf("run by root, the servers run as user %s, which may not enter %s: choose a folder open to it", as.name, block)
		}
		err = claim(f.path)
	}
	if err != nil {
		return nil, err
	}
	if f.temporary {
		// Lock the file before it has its name, so that no other sweep removes the folder.
		if f.lock, err = lockFile(ctx, f.join("lock.new"), lockTimeout); err == nil {
			err = os.Rename(f.lock.Name(), f.join("lock"))
		}
	} else {
		f.lock, err = lockFile(ctx, f.join("lock"), lockTimeout)
	}
	if err == nil {
		err = give(f.path, as)
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// claim creates the folder, or checks that an existing one is empty or was created by
// this package, because it changes the owner of the folder to the servers' user.
func claim(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) == 0 {
		return err
	}
	if _, err := os.Stat(filepath.Join(path, "lock")); err != nil {
		return fmt.Errorf("%s holds other files: choose an empty or a new folder", path)
	}
	return nil
}

// close releases the lock and removes a temporary folder.
func (f *folder) close() error {
	var errs []error
	if f.temporary {
		errs = append(errs, os.RemoveAll(f.path))
	}
	if f.lock != nil {
		errs = append(errs, f.lock.Close())
	}
	return errors.Join(errs...)
}

func (f *folder) join(name string) string { return filepath.Join(f.path, name) }

// mkdir creates a folder that only the servers' user may enter.
func (f *folder) mkdir(name string) (string, error) {
	path := f.join(name)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", err
	}
	return path, give(path, f.as)
}

// password returns the stored password and its file, which it creates on first use. Only
// the servers' user and root may read the file.
func (f *folder) password() (value, path string, err error) {
	path = f.join("password")
	raw, err := os.ReadFile(path)
	if err == nil && len(raw) > 0 {
		return strings.TrimSpace(string(raw)), path, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	value = rand.Text()
	if err := os.WriteFile(path, []byte(value+"\n"), 0o600); err != nil {
		return "", "", err
	}
	return value, path, give(path, f.as)
}

// blocker returns the first parent folder of path that the identity may not enter, or "".
// Folders that do not exist yet are created with access for it.
func blocker(path string, as *identity) string {
	if as == nil {
		return ""
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err == nil && !mayEnter(info, as) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// lockTimeout bounds the wait for a data folder: the servers of a killed process end a
// moment after it.
const lockTimeout = 2 * time.Second

// lockFile opens and locks a file. It waits for the lock.
func lockFile(ctx context.Context, path string, timeout time.Duration) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(timeout)
	for {
		ok, err := tryLock(file)
		if ok {
			return file, nil
		}
		if err == nil && time.Now().After(deadline) {
			err = fmt.Errorf("%s %w", filepath.Dir(path), errLocked)
		}
		if err == nil {
			err = backoff.Wait(ctx, 20*time.Millisecond)
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
}

// sweep removes unlocked temporary folders, whose owner was killed, if it can.
func sweep(base string) {
	dirs, _ := filepath.Glob(filepath.Join(base, tempPrefix+"*"))
	for _, dir := range dirs {
		file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
		if err != nil {
			continue // another user's, or about to be locked
		}
		if ok, err := tryLock(file); ok && err == nil && !alive(postmaster(filepath.Join(dir, "postgres")).pid) {
			_ = os.RemoveAll(dir)
		}
		_ = file.Close()
	}
}

// pidFile holds the state that a running Postgres writes to its data folder.
type pidFile struct {
	pid   int
	ready bool
}

// postmaster reads the pid file of a data folder; it returns the zero value if there is none.
func postmaster(data string) pidFile {
	raw, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return pidFile{}
	}
	lines := strings.Split(string(raw), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil {
		return pidFile{}
	}
	return pidFile{pid: pid, ready: len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready"}
}
