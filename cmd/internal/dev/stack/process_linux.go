package stack

import "syscall"

func setParentDeath(attr *syscall.SysProcAttr, s syscall.Signal) { attr.Pdeathsig = s }
