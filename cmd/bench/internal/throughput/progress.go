package throughput

// This file shows that a run is alive: a bar on a terminal, a line now and then
// elsewhere.

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/hanzoai/limiters/cmd/bench/internal/figures"
)

// A progress shows how far a run is. It belongs to one goroutine.
type progress interface {
	// show is called every step().
	show(elapsed time.Duration, checks uint64)
	step() time.Duration
	// end clears what show left on a terminal.
	end()
}

// newProgress returns what suits w.
func newProgress(w io.Writer, total time.Duration) progress {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return newBar(w, total)
	}
	return &lines{w: w, total: total}
}

// A bar redraws itself ten times a second.
type bar struct {
	total time.Duration
	bar   *progressbar.ProgressBar
}

// newBar returns an empty bar on w.
func newBar(w io.Writer, total time.Duration) *bar {
	return &bar{total: total, bar: progressbar.NewOptions64(total.Milliseconds(),
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(40),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionClearOnFinish(),
	)}
}

func (b *bar) step() time.Duration { return 100 * time.Millisecond }

func (b *bar) show(elapsed time.Duration, checks uint64) {
	b.bar.Describe(rateText(elapsed, checks))
	// A bar that cannot be drawn is no reason to end a run.
	_ = b.bar.Set64(min(elapsed, b.total).Milliseconds())
}

func (b *bar) end() { _ = b.bar.Finish() }

// lines writes one line every two seconds.
type lines struct {
	w     io.Writer
	total time.Duration
}

func (l *lines) step() time.Duration { return 2 * time.Second }

func (l *lines) show(elapsed time.Duration, checks uint64) {
	fmt.Fprintf(l.w, "%s of %s: %s\n", figures.Seconds(elapsed), figures.Seconds(l.total), rateText(elapsed, checks))
}

func (l *lines) end() {}

// rateText says how fast the run is on average.
func rateText(elapsed time.Duration, checks uint64) string {
	return figures.Grouped(perSecond(checks, elapsed)) + " checks/s"
}

// perSecond is a rate, in whole numbers.
func perSecond(n uint64, elapsed time.Duration) uint64 {
	if elapsed <= 0 {
		return 0
	}
	return uint64(float64(n) / elapsed.Seconds())
}
