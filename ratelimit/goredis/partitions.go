package goredis

// This file spreads partitions over the slots of a Redis Cluster.

import (
	"fmt"
	"math/bits"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/ratelimit"
)

// MaxPartitions is the largest number of partitions of one client.
const MaxPartitions = 256

const (
	slotBits = 14
	slots    = 1 << slotBits // of a Redis Cluster
)

// Partitions returns n partitions, 1 … [MaxPartitions], that share the client: p0,
// p1 and so on. Each has a hash tag of its own, and so its keys have one slot; the
// slots halve what the ones before left, so that they spread over the cluster for
// every n, best for powers of two.
//
// The name and tag of a partition never change. A larger n adds partitions, which
// take over their share of the keys and no others.
//
// The client must be fit for [New].
func Partitions(client redis.UniversalClient, n int) ([]ratelimit.Partition, error) {
	if n < 1 || n > MaxPartitions {
		return nil, fmt.Errorf("goredis: %d partitions, want 1 … %d", n, MaxPartitions)
	}
	partitions := make([]ratelimit.Partition, n)
	for i, tag := range tags(n) {
		s, err := New(client)
		if err != nil {
			return nil, err
		}
		partitions[i] = ratelimit.Partition{Name: "p" + strconv.Itoa(i), Store: s, HashTag: tag}
	}
	return partitions, nil
}

// slotOf is the slot that partition i is to have: its bits in reverse, and away
// from the multiples of powers of two, where the ranges of nodes begin and end.
func slotOf(i int) int {
	reversed := int(bits.Reverse16(uint16(i)) >> (16 - slotBits))
	return (reversed + slots/MaxPartitions/2) % slots
}

// tags returns for each of n partitions the first text that has its slot: shortest
// first, then in the order of the alphabet.
func tags(n int) []string {
	wanted := make(map[int]int, n) // the partition by its slot
	for i := range n {
		wanted[slotOf(i)] = i
	}
	found := make([]string, n)
	text := []byte{alphabet[0]}
	for len(wanted) > 0 {
		slot := int(crc16(text)) % slots
		if i, ok := wanted[slot]; ok {
			found[i] = string(text)
			delete(wanted, slot)
		}
		text = next(text)
	}
	return found
}

const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"

// next returns the text after this one, which it overwrites.
func next(text []byte) []byte {
	for i := len(text) - 1; i >= 0; i-- {
		switch c := text[i]; c {
		case 'z':
			text[i] = '0'
			continue
		case '9':
			text[i] = 'a'
		default:
			text[i] = c + 1
		}
		return text
	}
	return append(text, '0')
}

// crc16 is the checksum by which a Redis Cluster finds the slot of a hash tag:
// CRC-16/XMODEM.
func crc16(text []byte) (crc uint16) {
	for _, c := range text {
		crc ^= uint16(c) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
