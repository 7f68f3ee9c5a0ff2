package goredis

import "syscall"

// dieWithParent ends a server with this process, however that ends.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
