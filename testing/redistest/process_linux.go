// This file ties a server's life to this process's on Linux.

package redistest

import "syscall"

// dieWithParent has the kernel kill the child when its parent dies.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
