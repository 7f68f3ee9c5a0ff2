// This file says that a program cannot be made to hang here.

//go:build !unix

package redistest

func (p *process) pause() error  { return errNot }
func (p *process) resume() error { return errNot }
