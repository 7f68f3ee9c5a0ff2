package level

// This file keeps what part of an entity's traffic is this node's own.

// A Share is a node's own part of what a fleet counts of an entity, in 255ths, so that
// an entry has room for it. 0 is unknown: a node that counts anything has at least 1.
type Share uint8

const alone Share = 255 // nobody else counted for some replies

// Learn takes a reply into account, half of it as news: own of the units by which the
// totals grew are this node's. A reply without growth, or with less than the node's own
// (a store that lost counts), tells nothing.
func (s Share) Learn(own, growth uint64) Share {
	if own == 0 && s == 0 || growth == 0 || growth < own {
		return s
	}
	news := float32(own) / float32(growth) * 255
	if s != 0 {
		news = (float32(s) + news) / 2
	}
	return Share(max(1, news+0.5))
}

// Part is the share as a number from 0 to 1; 0 if it is unknown.
func (s Share) Part() float64 { return float64(s) / 255 }

// Of is the node's part of so many units.
func (s Share) Of(units uint64) uint64 {
	return units/255*uint64(s) + units%255*uint64(s)/255
}
