//go:build unix

package tick

// This file reads how much processor time this process took.

import (
	"syscall"
	"time"
)

// processorTime is what all threads took since the start, the kernel's part
// included. 0 if that is not known.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
