package stack

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// On Windows there are no private servers: the missing pieces say so.

type identity struct{ name string }

func unprivileged() *identity                     { return nil }
func detach(*exec.Cmd, *identity, syscall.Signal) {}
func signalGroup(int, syscall.Signal)             {}
func alive(int) bool                              { return false }
func give(string, *identity) error                { return nil }
func mayEnter(fs.FileInfo, *identity) bool        { return true }
func tryLock(*os.File) (bool, error)              { return false, errors.ErrUnsupported }
