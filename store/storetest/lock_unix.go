//go:build unix

package storetest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// lockFolder makes the folder where it is missing and takes its lock, waiting
// for it. Closing the file gives the lock back.
func lockFolder(dir string) (*os.File, error) {
	for {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		// The temporary folder is everybody's: somebody else may have made it.
		info, err := os.Lstat(dir)
		if err != nil {
			continue // removed by an ending lender
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
			return nil, errors.New("the folder belongs to somebody else or is open to others")
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
		// The lender removes the folder when it ends: is this still the lock?
		mine, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if now, err := os.Stat(file.Name()); err == nil && os.SameFile(mine, now) {
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
