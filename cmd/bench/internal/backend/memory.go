package backend

// This file is the backend in plain Go memory, for configurations with memory://.

import (
	"fmt"

	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/ratelimit"
)

// Memory is one store for each partition, shared by all nodes.
type Memory struct {
	shared []ratelimit.Partition
	stores []*memstore.Store
}

// NewMemory returns that many empty stores.
func NewMemory(partitions int) *Memory {
	m := &Memory{}
	for i := range partitions {
		s := memstore.New(nil)
		m.stores = append(m.stores, s)
		m.shared = append(m.shared, ratelimit.Partition{Name: fmt.Sprintf("memory-%d", i), Store: s})
	}
	return m
}

func (m *Memory) Kind() string { return "memory" }

func (m *Memory) Partitions() int { return len(m.stores) }

func (m *Memory) Options(ratelimit.Config) ([]ratelimit.Option, error) {
	return []ratelimit.Option{ratelimit.WithPartitions(m.shared...)}, nil
}

func (m *Memory) Bytes() (sent, received uint64) { return 0, 0 }

func (m *Memory) Read(keys []string, totals []uint64) error {
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

func (m *Memory) Clean(string) error { return nil }

func (m *Memory) Close() error { return nil }
