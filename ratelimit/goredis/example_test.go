package goredis_test

import (
	"context"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/goredis"
)

// A limiter on a Redis Cluster, its keys spread over sixteen slots.
func ExamplePartitions() {
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:       []string{"10.0.0.1:6379", "10.0.0.2:6379"},
		DialTimeout: time.Second, DialerRetries: 1,
		ReadTimeout: 100 * time.Millisecond, WriteTimeout: 100 * time.Millisecond,
	})
	defer func() { _ = client.Close() }()
	partitions, err := goredis.Partitions(client, 16)
	if err != nil {
		log.Fatal(err)
	}
	lim, err := ratelimit.New(ratelimit.DefaultConfig(), ratelimit.WithPartitions(partitions...))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lim.Close(context.Background()) }()
}

// A limiter on the master that sentinels name.
func ExampleNew() {
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:    "main",
		SentinelAddrs: []string{"10.0.0.1:26379", "10.0.0.2:26379", "10.0.0.3:26379"},
		DialTimeout:   time.Second, DialerRetries: 1,
		ReadTimeout: 100 * time.Millisecond, WriteTimeout: 100 * time.Millisecond,
	})
	defer func() { _ = client.Close() }()
	s, err := goredis.New(client)
	if err != nil {
		log.Fatal(err)
	}
	lim, err := ratelimit.New(ratelimit.DefaultConfig(),
		ratelimit.WithPartitions(ratelimit.Partition{Name: "main", Store: s}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lim.Close(context.Background()) }()
}
