// Package scriptcall is what every Redis client needs to call lua/sync.lua: the
// batch as its arguments, its reply as the store's, and what a refusal tells. It
// knows no client, so that stores on different ones cannot differ.
package scriptcall
