package stack

import (
	"context"
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

// tempPrefix starts the name of every temporary folder.
const tempPrefix = "compactor-stack-"

// folder is where the servers keep their data and logs. Who has it open holds
// its lock.
type folder struct {
	path      string
	temporary bool
	lock      *os.File
	as        *identity // who the servers run as
}

// openFolder opens the data folder, making it where it does not exist; an empty
// path is a temporary one. It removes temporary folders whose owner was killed.
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
			return nil, fmt.Errorf("run by root, the servers run as user %s, who may not enter %s: choose a folder open to it", as.name, block)
		}
		err = claim(f.path)
	}
	if err != nil {
		return nil, err
	}
	if f.temporary {
		// It gets its name locked: a sweep elsewhere must not find it free.
		if f.lock, err = lockFile(ctx, f.join("lock.new")); err == nil {
			err = os.Rename(f.lock.Name(), f.join("lock"))
		}
	} else {
		f.lock, err = lockFile(ctx, f.join("lock"))
	}
	if err == nil {
		err = give(f.path, as)
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// claim makes the folder, or makes sure that an existing one is ours: it will
// belong to the servers' user.
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

// close gives the folder back; a temporary one is removed.
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

// mkdir makes a folder that only the servers' user may enter.
func (f *folder) mkdir(name string) (string, error) {
	path := f.join(name)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", err
	}
	return path, give(path, f.as)
}

// secret returns the password kept under that name, made on first use. Only the
// servers' user and we may read it.
func (f *folder) secret(name string) (value, path string, err error) {
	path = f.join(name)
	raw, err := os.ReadFile(path)
	if err == nil && len(raw) > 0 {
		return strings.TrimSpace(string(raw)), path, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	value = newPassword()
	if err := os.WriteFile(path, []byte(value+"\n"), 0o600); err != nil {
		return "", "", err
	}
	return value, path, give(path, f.as)
}

// blocker returns the first folder on the way to path that the identity may not
// enter, or nothing. Folders that do not exist yet will be made open to it.
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

// lockFile opens and locks a file. A server that was told to end by its
// parent's death may need a moment, so a taken lock is waited for, briefly.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(2 * time.Second)
	for {
		ok, err := tryLock(file)
		if ok {
			return file, nil
		}
		if err == nil && time.Now().After(deadline) {
			err = fmt.Errorf("%s is in use by another process", filepath.Dir(path))
		}
		if err == nil {
			err = backoff.Wait(ctx, 20*time.Millisecond)
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
}

// sweep removes the temporary folders that nobody holds: their owner was killed
// before it could. One that cannot be judged or removed is left alone.
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

// pidFile is what a running Postgres says about itself in its data folder.
type pidFile struct {
	pid   int
	ready bool
}

// postmaster reads the pid file of a data folder; zero where there is none.
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
