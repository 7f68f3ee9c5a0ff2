package clock

// This file orders what a fake clock has to call.

// A tick is one periodic call of a [Fake].
type tick struct {
	interval int64  // immutable; ns
	order    uint64 // immutable; the how manieth to be registered
	call     func() // immutable

	due   int64 // guarded by the clock's mu; mono
	index int   // guarded by the clock's mu; place in the queue, -1 when not in it
}

// A tickQueue is a heap (container/heap) whose first tick is the next to run.
type tickQueue []*tick

func (q tickQueue) Len() int { return len(q) }

func (q tickQueue) Less(i, j int) bool {
	if q[i].due != q[j].due {
		return q[i].due < q[j].due
	}
	return q[i].order < q[j].order
}

func (q tickQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *tickQueue) Push(x any) {
	t := x.(*tick)
	t.index = len(*q)
	*q = append(*q, t)
}

func (q *tickQueue) Pop() any {
	old := *q
	last := len(old) - 1
	t := old[last]
	old[last] = nil
	t.index = -1
	*q = old[:last]
	return t
}
