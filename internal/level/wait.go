package level

// This file finds waits.

// LeastWait returns the smallest wait from 0 to most after which ok holds, given that
// it holds after most and, once true, stays true.
func LeastWait(most int64, ok func(wait int64) bool) int64 {
	low, high := int64(-1), most // !ok(low) && ok(high)
	for high-low > 1 {
		middle := low + (high-low)/2
		if ok(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
