package goredis

// This file has the masters of a cluster replaced under a fleet that counts: planned, by
// force, by their hanging and by their death. docs/failures.md and docs/redis.md say
// what comes of it.

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/ratelimit"
)

// withReplicas adds a replica to each master, by the index of its master.
func (c *cluster) withReplicas(t *testing.T) []*clusterNode {
	t.Helper()
	replicas := make([]*clusterNode, len(c.nodes))
	for i, master := range c.nodes {
		p := startServer(t, c.settings...)
		n := &clusterNode{process: p, Client: p.client(t)}
		n.id = n.must(t, "CLUSTER", "MYID").(string)
		host, port, _ := strings.Cut(c.nodes[0].addr, ":")
		n.must(t, "CLUSTER", "MEET", host, port)
		eventually(t, "the replica's meeting its master", func() error {
			return n.Do(context.Background(), "CLUSTER", "REPLICATE", master.id).Err()
		})
		replicas[i] = n
	}
	for _, n := range replicas {
		eventually(t, "replication", func() error {
			info, err := n.Info(context.Background(), "replication").Result()
			if err == nil && !strings.Contains(info, "master_link_status:up") {
				err = fmt.Errorf("%s", info)
			}
			return err
		})
	}
	for _, n := range append(replicas, c.nodes...) {
		eventually(t, "everybody's knowing the replicas", func() error {
			nodes, err := n.ClusterNodes(context.Background()).Result()
			if err == nil && (strings.Count(nodes, " slave ")+strings.Count(nodes, "myself,slave ") != len(replicas)) {
				err = fmt.Errorf("%s", nodes)
			}
			return err
		})
	}
	return replicas
}

// documented are the options of docs/redis.md.
func documented(o *redis.ClusterOptions) {
	o.DialTimeout, o.DialerRetries = time.Second, 1
	o.ReadTimeout, o.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
}

// A master is replaced while a fleet counts. Its partitions are back soon after; every
// unit is accounted for.
func TestClusterFailovers(t *testing.T) {
	t.Parallel()
	c := startCluster(t, "cluster-node-timeout 1000", "cluster-replica-validity-factor 0", "repl-diskless-sync-delay 0")
	replicas := c.withReplicas(t)
	const partitions = 12
	for i, row := range []struct {
		name   string
		master int
		fault  func(t *testing.T, master, replica *clusterNode)
		// exact: nothing may be lost by the servers, or be of unknown fate, either.
		exact bool
	}{
		{"planned", 0, func(t *testing.T, _, replica *clusterNode) { replica.must(t, "CLUSTER", "FAILOVER") }, true},
		{"forced", 1, func(t *testing.T, _, replica *clusterNode) { replica.must(t, "CLUSTER", "FAILOVER", "FORCE") }, false},
		{"taken over", 0, func(t *testing.T, _, replica *clusterNode) { replica.must(t, "CLUSTER", "FAILOVER", "TAKEOVER") }, false},
		{"hanging", 2, func(t *testing.T, master, replica *clusterNode) {
			signal(t, master.command, syscall.SIGSTOP)
			t.Cleanup(func() { signal(t, master.command, syscall.SIGCONT) })
			promoted(t, replica.Client)
			time.AfterFunc(2*time.Second, func() { _ = master.command.Process.Signal(syscall.SIGCONT) })
		}, false},
		{"killed", 1, func(t *testing.T, master, _ *clusterNode) { signal(t, master.command, syscall.SIGKILL) }, false},
	} {
		ok := t.Run(row.name, func(t *testing.T) {
			f := startFleet(t, fmt.Sprint("p", i), 2, func() []ratelimit.Partition {
				parts, err := Partitions(c.client(t, documented), partitions)
				if err != nil {
					t.Fatal(err)
				}
				return parts
			})
			affected := map[int]bool{}
			for partition := range partitions {
				if slotOf(partition)*3/slots == row.master {
					affected[partition] = true
				}
			}
			master, replica := c.nodes[row.master], replicas[row.master]
			row.fault(t, master, replica)
			since := promoted(t, replica.Client)
			took := f.awaitHeard(since, affected)
			if took > soon {
				t.Errorf("%d partitions were back %v after the promotion, want %v at most", len(affected), took, soon)
			}
			time.Sleep(time.Second) // the fleet goes on counting
			l := f.finish(c.client(t, func(o *redis.ClusterOptions) { o.Addrs = []string{replica.addr} }))
			if row.exact && (l.held != l.counted || l.unknown != 0) {
				t.Errorf("%+v, want every unit held", l)
			}
			if row.name != "planned" {
				t.Logf("servers lost %d acknowledged units of %d; %d are of unknown fate", l.lost(), l.delivered, l.unknown)
			}
			t.Logf("partitions were back %v after the promotion", took.Round(time.Millisecond))
			c.nodes[row.master], replicas[row.master] = replica, master // for the next one
		})
		if !ok {
			return // the cluster is not what the next one expects
		}
		if row.name == "killed" {
			break
		}
		old := replicas[row.master]
		eventually(t, "the old master's becoming a replica", func() error {
			info, err := old.Info(context.Background(), "replication").Result()
			if err == nil && !strings.Contains(info, "master_link_status:up") {
				err = fmt.Errorf("%s", info)
			}
			return err
		})
	}
}

// signal sends a signal to a server.
func signal(t *testing.T, server *exec.Cmd, s syscall.Signal) {
	t.Helper()
	if err := server.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// The same behind sentinels, which forget more: a planned failover demotes the master
// while it is written to, and what it acknowledges until its clients know is lost.
func TestSentinelFailovers(t *testing.T) {
	t.Parallel()
	set := startSentinels(t)
	for _, row := range []struct {
		name  string
		fault func(t *testing.T, master *process)
	}{
		{"planned", func(t *testing.T, _ *process) {
			c := redis.NewSentinelClient(&redis.Options{Addr: set.sentinels[0].addr})
			defer func() { _ = c.Close() }()
			if err := c.Failover(context.Background(), "main").Err(); err != nil {
				t.Fatal(err)
			}
		}},
		{"killed", func(t *testing.T, master *process) { signal(t, master.command, syscall.SIGKILL) }},
		{"hanging", func(t *testing.T, master *process) {
			signal(t, master.command, syscall.SIGSTOP)
			t.Cleanup(func() { signal(t, master.command, syscall.SIGCONT) })
		}},
	} {
		ok := t.Run(row.name, func(t *testing.T) {
			f := startFleet(t, row.name, 2, func() []ratelimit.Partition {
				s, err := New(set.documentedClient(t))
				if err != nil {
					t.Fatal(err)
				}
				return []ratelimit.Partition{{Name: "main", Store: s}}
			})
			master := set.master(t)
			row.fault(t, master)
			eventually(t, "a failover", func() error {
				if set.master(t) == master {
					return fmt.Errorf("the sentinels keep the old master")
				}
				return nil
			})
			since := promoted(t, set.master(t).client(t))
			took := f.awaitHeard(since, nil)
			if took > soon {
				t.Errorf("the partition was back %v after the promotion, want %v at most", took, soon)
			}
			time.Sleep(time.Second) // the fleet goes on counting
			l := f.finish(set.master(t).client(t))
			t.Logf("servers lost %d acknowledged units of %d; %d are of unknown fate", l.lost(), l.delivered, l.unknown)
			t.Logf("the partition was back %v after the promotion", took.Round(time.Millisecond))
		})
		if !ok {
			return // the servers are not what the next one expects
		}
		if row.name != "hanging" {
			set.awaitReplica(t)
		}
	}
}
