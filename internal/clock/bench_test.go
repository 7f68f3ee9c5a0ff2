package clock

// This file measures what a reading costs, and how old it is.

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func BenchmarkNow(b *testing.B) {
	b.Run("time.Now", func(b *testing.B) {
		for b.Loop() {
			_ = time.Now()
		}
	})
	b.Run("System", func(b *testing.B) {
		s := NewSystem()
		defer runSystem(s)()
		for b.Loop() {
			s.Now()
		}
	})
	b.Run("System/parallel", func(b *testing.B) {
		s := NewSystem()
		defer runSystem(s)()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				s.Now()
			}
		})
	})
	b.Run("System/stopped", func(b *testing.B) {
		s := NewSystem()
		for b.Loop() {
			s.Now()
		}
	})
	b.Run("Fake", func(b *testing.B) {
		f := NewFake(time.Time{})
		for b.Loop() {
			f.Now()
		}
	})
}

// BenchmarkAge says how old a coarse reading is when it is made: on average, at
// worst, and how many of a thousand are older than 10 ms; with a core to spare,
// and with four goroutines on each core that never block.
func BenchmarkAge(b *testing.B) {
	b.Run("spare core", func(b *testing.B) { benchmarkAge(b, 0) })
	b.Run("saturated", func(b *testing.B) { benchmarkAge(b, 4*runtime.GOMAXPROCS(0)) })
}

func benchmarkAge(b *testing.B, busy int) {
	s := NewSystem()
	defer runSystem(s)()
	var stop atomic.Bool
	var others sync.WaitGroup
	defer others.Wait()
	defer stop.Store(true)
	for range busy {
		others.Go(func() {
			for !stop.Load() {
				s.Now()
			}
		})
	}
	start := time.Now()
	_, first := s.Precise()
	offset := first - int64(time.Since(start))
	var worst, sum time.Duration
	var old int
	for b.Loop() {
		_, mono := s.Now()
		age := time.Duration(int64(time.Since(start)) + offset - mono)
		worst = max(worst, age)
		sum += age
		if age > 10*time.Millisecond {
			old++
		}
	}
	b.ReportMetric(worst.Seconds()*1e3, "worst-ms")
	b.ReportMetric(sum.Seconds()*1e3/float64(b.N), "mean-ms")
	b.ReportMetric(float64(old)*1e3/float64(b.N), "old-permille")
}

// BenchmarkFleetHour advances a clock with 100 nodes that tick every second by
// one hour: 360,000 calls.
func BenchmarkFleetHour(b *testing.B) {
	f := NewFake(time.Time{})
	calls := 0
	for range 100 {
		f.Node(0).Tick(time.Second, func() { calls++ })
	}
	for b.Loop() {
		f.Advance(time.Hour)
	}
	if want := b.N * 360_000; calls != want {
		b.Fatalf("%d calls, want %d", calls, want)
	}
}
