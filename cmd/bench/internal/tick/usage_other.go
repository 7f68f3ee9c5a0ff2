//go:build !unix

package tick

// This file is for systems that do not tell a process its processor time that way.

import "time"

func processorTime() time.Duration { return 0 }
