package stack

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// Private servers are not supported on Windows: tryLock fails.

type identity struct{ name string }

func unprivileged() *identity                     { return nil }
func detach(*exec.Cmd, *identity, syscall.Signal) {}
func signalGroup(int, syscall.Signal)             {}
func alive(int) bool                              { return false }
func give(string, *identity) error                { return nil }
func mayEnter(fs.FileInfo, *identity) bool        { return true }
func tryLock(*os.File) (bool, error)              { return false, errors.ErrUnsupported }
