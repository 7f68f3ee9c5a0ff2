//go:build !linux

package goredis

import "syscall"

// dieWithParent can promise nothing here: the test's end alone ends a server.
func dieWithParent() *syscall.SysProcAttr { return nil }
