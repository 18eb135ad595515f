//go:build unix && !linux

package stack

import "syscall"

// setParentDeath does nothing: only Linux signals the death of a parent.
func setParentDeath(*syscall.SysProcAttr, syscall.Signal) {}
