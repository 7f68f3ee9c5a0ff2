// Package group decides about the limits of one request, some of which may ask the fleet:
// all are counted, or none.
package group

import (
	"context"

	"github.com/hanzoai/limiters/ratelimit"
)

// An Item is one limit of a request.
type Item struct {
	ratelimit.Item      // with its Limiter
	Fleet          bool // decided as by Limiter.CheckFleet
}

// Decide returns the answers to the items, in their order. Those of this node are
// decided together, in one step; then the fleet is asked about the others, one after the
// other, and what was counted is given back if it refuses. Once a limit refuses, the fleet is not
// asked any more: what it was not asked about is answered by the zero Decision. Where it cannot
// be asked this node decides.
func Decide(ctx context.Context, items []Item) ratelimit.Decisions {
	asks := 0
	local := make([]ratelimit.Item, 0, 8)
	for _, item := range items {
		if item.Fleet {
			asks++
		} else {
			local = append(local, item.Item)
		}
	}
	if len(items) == 0 {
		return nil
	}
	if asks == 0 {
		return local[0].Limiter.CheckAll(local)
	}
	ds := make(ratelimit.Decisions, len(items))
	var held ratelimit.Reservations // of the local items, then of those that asked
	if len(local) > 0 {
		held = local[0].Limiter.ReserveAll(local)
		for i, at := 0, 0; i < len(items); i++ {
			if !items[i].Fleet {
				ds[i] = held[at].Decision()
				at++
			}
		}
		if !ds.Allowed() {
			return ds // nothing is held, but by limiters that count what they limit
		}
	}
	for i, item := range items {
		if !item.Fleet {
			continue
		}
		res, _ := item.Limiter.ReserveFleet(ctx, item.Key, item.Units) // counted by the limiter, if it is not the fleet's
		if ds[i] = res.Decision(); !ds[i].Allowed() {
			giveBack(held, local)
			return ds
		}
		held, local = append(held, res), append(local, item.Item)
	}
	return ds
}

// giveBack gives back what the reservations hold, each of an item, but of limiters that count
// what is limited, too.
func giveBack(held ratelimit.Reservations, items []ratelimit.Item) {
	for i, res := range held {
		if !items[i].Limiter.Config().CountLimited {
			res.Cancel()
		}
	}
}
