// This file says that only Linux ties a child's life to its parent's.

//go:build !linux

package redistest

import "syscall"

// dieWithParent does nothing here.
func dieWithParent() *syscall.SysProcAttr { return nil }
