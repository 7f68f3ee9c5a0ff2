package ratelimit

// This file measures a group: its price is to be compared with that of as many checks.

import (
	"fmt"
	"testing"
)

func BenchmarkCheckAll(b *testing.B) {
	for _, size := range []int{1, 3, 8} {
		b.Run(fmt.Sprintf("items=%d", size), func(b *testing.B) {
			l := benchLimiter(b, nil)
			items := make([]Item, size)
			for i := range items {
				items[i] = Item{Key: fmt.Sprintf("key_%d", i), Units: 1}
			}
			l.CheckAll(items)
			b.ReportAllocs()
			for b.Loop() {
				l.CheckAll(items)
			}
		})
	}
}
