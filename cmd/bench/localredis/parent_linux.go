package localredis

// This file ties the server's life to this process's on Linux.

import "syscall"

// endWithParent has the kernel kill the server when this process dies.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
