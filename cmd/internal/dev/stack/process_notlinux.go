//go:build unix && !linux

package stack

import "syscall"

// setParentDeath does nothing: only Linux tells a child that its parent died.
func setParentDeath(*syscall.SysProcAttr, syscall.Signal) {}
