//go:build race

package accuracy

// raceEnabled says that the race detector watches, which takes ten times as long.
const raceEnabled = true
