//go:build unix

package stack

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// identity is the user that a server runs as; nil means the current user.
type identity struct {
	name     string
	uid, gid uint32
}

// unprivileged returns the user for servers if this process runs as root, which Postgres
// refuses; else nil.
func unprivileged() *identity {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uerr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gerr := strconv.ParseUint(u.Gid, 10, 32)
		if uerr == nil && gerr == nil && uid != 0 {
			return &identity{name: name, uid: uint32(uid), gid: uint32(gid)}
		}
	}
	return &identity{name: "65534", uid: 65534, gid: 65534}
}

// detach gives the command a process group, its user, and a signal for the death of this
// process.
func detach(cmd *exec.Cmd, as *identity, death syscall.Signal) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: as.uid, Gid: as.gid}
	}
	setParentDeath(cmd.SysProcAttr, death)
}

func signalGroup(pid int, s syscall.Signal) { _ = syscall.Kill(-pid, s) }

// alive reports whether a process with this id exists.
func alive(pid int) bool {
	return pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// give changes the owner of a file to the identity.
func give(path string, as *identity) error {
	if as == nil {
		return nil
	}
	return os.Chown(path, int(as.uid), int(as.gid))
}

// mayEnter reports whether the identity may pass through the folder.
func mayEnter(info fs.FileInfo, as *identity) bool {
	mode := info.Mode().Perm()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		switch {
		case st.Uid == as.uid:
			return mode&0o100 != 0
		case st.Gid == as.gid:
			return mode&0o010 != 0
		}
	}
	return mode&0o001 != 0
}

// tryLock locks an open file and returns false if another process has locked it. The kernel
// releases the lock when the file is closed or the process ends.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
