// Package beside runs the service of envoylimit beside the one it takes the place of,
// github.com/envoyproxy/ratelimit: its tests compare answers, its command the cost.
package beside
