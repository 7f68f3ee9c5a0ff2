package main

// This file says what a contestant is.

// Names with a ratio of their own.
const (
	ours  = "limiters"
	floor = "floor"
	loop  = "loop"
)

// A contestant is one way to decide about a request.
type contestant struct {
	name string
	// variant says that it is one of ours, set in another way: it is compared with
	// another variant, and not with peers.
	variant bool
	// remote says that it asks a server: it takes no part in the runs on one key.
	remote bool
	// serial says that it takes part in the serial runs on all keys alone.
	serial bool
	// open makes one that allows everything, for so many keys. check decides about
	// one unit of a key and is safe for concurrent use.
	open func(keys int) (*instance, error)
}

// An instance is a contestant at work.
type instance struct {
	check func(key string) (allowed bool)
	// settle is called once after the keys were met: what the contestant does in
	// the background of a steady state. nil is nothing.
	settle func() error
	close  func() error // nil: nothing to close
}

// names lists the contestants' names, those of variants left out.
func names(contestants []contestant) []string {
	var list []string
	for _, c := range contestants {
		if !c.variant {
			list = append(list, c.name)
		}
	}
	return list
}
