//go:build !linux

package localredis

// This file is for systems that cannot tie a child's life to its parent's.

import "syscall"

func endWithParent() *syscall.SysProcAttr { return nil }
