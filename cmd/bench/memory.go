package main

// This file is the backend in plain Go memory, for configurations with memory://.

import (
	"fmt"

	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/ratelimit"
)

// memory is one store for each partition, shared by all nodes.
type memory struct {
	shared []ratelimit.Partition
	stores []*memstore.Store
}

// newMemory returns that many empty stores.
func newMemory(partitions int) *memory {
	m := &memory{}
	for i := range partitions {
		s := memstore.New(nil)
		m.stores = append(m.stores, s)
		m.shared = append(m.shared, ratelimit.Partition{Name: fmt.Sprintf("memory-%d", i), Store: s})
	}
	return m
}

func (m *memory) kind() string { return "memory" }

func (m *memory) partitions() int { return len(m.stores) }

func (m *memory) options(ratelimit.Config) ([]ratelimit.Option, error) {
	return []ratelimit.Option{ratelimit.WithPartitions(m.shared...)}, nil
}

func (m *memory) bytes() (sent, received uint64) { return 0, 0 }

func (m *memory) read(keys []string, totals []uint64) error {
	for _, s := range m.stores {
		for i, key := range keys {
			total, _ := s.Get(key)
			if total < 0 {
				return fmt.Errorf("%s holds no valid count", key)
			}
			totals[i] += uint64(total)
		}
	}
	return nil
}

func (m *memory) clean(string) error { return nil }

func (m *memory) close() error { return nil }
