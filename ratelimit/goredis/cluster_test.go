package goredis

// This file is a cluster of three masters, and the moving of its slots.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A cluster is three masters that share the slots.
type cluster struct {
	nodes    []*clusterNode
	settings []string
}

type clusterNode struct {
	*process
	id string
	*redis.Client
}

// startCluster starts one; its servers never take each other for dead, unless these
// settings say otherwise.
func startCluster(t *testing.T, settings ...string) *cluster {
	t.Helper()
	ctx := context.Background()
	c := &cluster{settings: append([]string{
		"cluster-enabled yes", "cluster-node-timeout 30000", "cluster-require-full-coverage no",
	}, settings...)}
	for i := range 3 {
		p := startServer(t, c.settings...)
		n := &clusterNode{process: p, Client: p.client(t)}
		n.must(t, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		add := []any{"CLUSTER", "ADDSLOTS"}
		for slot := range slots {
			if slot*3/slots == i {
				add = append(add, slot)
			}
		}
		n.must(t, add...)
		n.id = n.must(t, "CLUSTER", "MYID").(string)
		c.nodes = append(c.nodes, n)
	}
	for _, n := range c.nodes[1:] {
		host, port, _ := strings.Cut(n.addr, ":")
		c.nodes[0].must(t, "CLUSTER", "MEET", host, port)
	}
	for _, n := range c.nodes {
		eventually(t, "forming a cluster", func() error {
			info, err := n.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			for _, want := range []string{"cluster_state:ok", "cluster_slots_assigned:16384", "cluster_known_nodes:3", "cluster_size:3"} {
				if !strings.Contains(info, want) {
					return errors.New(info)
				}
			}
			return nil
		})
	}
	return c
}

// must runs a command that must succeed.
func (n *clusterNode) must(t *testing.T, args ...any) any {
	t.Helper()
	answer, err := n.Do(context.Background(), args...).Result()
	if err != nil {
		t.Fatalf("%.60v: %v", args, err)
	}
	return answer
}

// client returns a client of the cluster.
func (c *cluster) client(t *testing.T, options ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	t.Helper()
	o := &redis.ClusterOptions{ReadTimeout: 20 * time.Second}
	for _, n := range c.nodes {
		o.Addrs = append(o.Addrs, n.addr)
	}
	for _, option := range options {
		option(o)
	}
	client := redis.NewClusterClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// owner is the node that serves the slot.
func (c *cluster) owner(slot int) (*clusterNode, error) {
	shards, err := c.nodes[0].ClusterShards(context.Background()).Result()
	if err != nil {
		return nil, err
	}
	for _, shard := range shards {
		for _, r := range shard.Slots {
			for _, n := range c.nodes {
				if int(r.Start) <= slot && slot <= int(r.End) && shard.Nodes[0].ID == n.id {
					return n, nil
				}
			}
		}
	}
	return nil, fmt.Errorf("nobody serves slot %d", slot)
}

// A migration moves a slot, with its keys, from a node to another.
type migration struct {
	cluster  *cluster
	slot     int
	from, to *clusterNode
}

// begin opens the slot at both nodes.
func (m *migration) begin() error {
	ctx := context.Background()
	return errors.Join(
		m.to.Do(ctx, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.from.id).Err(),
		m.from.Do(ctx, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.to.id).Err(),
	)
}

// moveKeys moves up to n keys, and returns how many it moved.
func (m *migration) moveKeys(n int) (int, error) {
	ctx := context.Background()
	keys, err := m.from.ClusterGetKeysInSlot(ctx, m.slot, n).Result()
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	host, port, _ := strings.Cut(m.to.addr, ":")
	args := []any{"MIGRATE", host, port, "", 0, 10000, "KEYS"}
	for _, key := range keys {
		args = append(args, key)
	}
	return len(keys), m.from.Do(ctx, args...).Err()
}

// end makes the other node the slot's owner.
func (m *migration) end() error {
	ctx := context.Background()
	var errs []error
	for _, n := range append([]*clusterNode{m.to, m.from}, m.cluster.nodes...) {
		errs = append(errs, n.Do(ctx, "CLUSTER", "SETSLOT", m.slot, "NODE", m.to.id).Err())
	}
	return errors.Join(errs...)
}
