// Package goredis has a limiter keep its counters through a go-redis client: on a
// Redis Cluster, behind Redis Sentinel, or wherever a service has such a client
// already.
//
//	client := redis.NewClusterClient(&redis.ClusterOptions{
//		Addrs:       []string{"10.0.0.1:6379", "10.0.0.2:6379"},
//		DialTimeout: time.Second, DialerRetries: 1,
//		ReadTimeout: 100 * time.Millisecond, WriteTimeout: 100 * time.Millisecond,
//	})
//	partitions, err := goredis.Partitions(client, 16)
//	…
//	lim, err := ratelimit.New(cfg, ratelimit.WithPartitions(partitions...))
//
// It is a module of its own, so that users of the library do not get go-redis with
// it:
//
//	go get github.com/hanzoai/limiters/ratelimit/goredis
//
// Both modules are released from one commit under one version: the replace line in
// this one's go.mod is for work inside the repository and has no effect elsewhere.
//
// # Cluster
//
// [Partitions] gives each partition a hash tag, so that all its keys, the sequence
// key included, are in one slot and one script call serves it. The tags are chosen
// so that the slots spread evenly, and they never change: partition i has the same
// tag whatever their number, in every process and release. Take a power of two of
// at least four times as many partitions as the cluster has masters.
//
// MOVED and ASK are followed. While a slot migrates, Redis answers TRYAGAIN to a
// script whose keys are on both sides; that denies the batch, which the limiter
// sends again at its next tick. Resharding loses and doubles no unit.
//
// After a call that failed the store has the client read again which node serves which
// slot. By itself a client does so once a minute, and after some refusals: the
// partitions of a master that died would wait for that. So they are back within two
// ticks of its replica's promotion.
//
// # Sentinel
//
// For a client of redis.NewFailoverClient take one [New] store:
//
//	s, err := goredis.New(client)
//	…
//	ratelimit.WithPartitions(ratelimit.Partition{Name: "main", Store: s})
//
// # Failover
//
// Replication is asynchronous: a replica that is promoted may lack the last writes
// that its master acknowledged, and those units are lost from the fleet's counts.
// It lacks a batch and its number together, because the effects of one script
// arrive as one transaction; so nothing is counted twice. A planned failover of a
// cluster loses nothing. One of sentinels loses what the old master acknowledges after
// the promotion, until it is told.
//
// # Timeouts
//
// The client's own bound an attempt; those of the limiter's configuration have no
// effect on it. [New] refuses a client that reads or writes without a bound. A
// caller's context ends an attempt whatever the client's options say; what the client
// still does then ends within its own timeouts, and the next attempt waits for it.
//
// # Retries
//
// The client's retries stay off, whatever its options say, for the one command of a
// batch: the limiter retries on its own and says so in the batch. A hook of the client
// must not call the next one twice for a command whose NoRetry method returns true, and
// must not keep its arguments. The second of those is the script's name or text, as an
// encoding.BinaryMarshaler.
//
// # Answers
//
// An answer is read as it arrives, and refused if it announces more than was asked for.
//
// # Logs
//
// The limiter logs changes of state only. go-redis itself logs every connection
// that fails; redis.SetLogger silences it.
package goredis
