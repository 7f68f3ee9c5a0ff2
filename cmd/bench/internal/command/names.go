package command

// This file is what the runs are called.

// Names are what the runs are called on the command line, sorted. The first argument
// chooses one; without it the throughput run is made.
func Names() []string { return []string{"accuracy", "one-key", "page", "throughput", "tick"} }
