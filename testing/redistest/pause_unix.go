// This file lets a program hang where signals can do that.

//go:build unix

package redistest

import "syscall"

func (p *process) pause() error  { return p.signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.signal(syscall.SIGCONT) }
