//go:build unix

package storetest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// lockFolder creates the folder if it is missing and waits for its lock, which ends when
// the file is closed.
func lockFolder(dir string) (*os.File, error) {
	for {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		// Any user may create it in the temporary folder.
		info, err := os.Lstat(dir)
		if err != nil {
			continue // removed by a server that ended
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
			return nil, errors.New("the folder belongs to another user or is accessible to others")
		}
		file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := flock(file); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		// The server removes the folder when it ends: the lock must still be in it.
		held, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if now, err := os.Stat(file.Name()); err == nil && os.SameFile(held, now) {
			return file, nil
		}
		_ = file.Close()
	}
}

func flock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
