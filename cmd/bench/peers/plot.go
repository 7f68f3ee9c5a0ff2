package main

// This file draws the readings.

import (
	"fmt"
	"image/color"
	"os"
	"runtime"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// drawn are the kinds of run that the plot shows: one goroutine, and all cores.
var drawn = []struct {
	kind, legend string
	colour       color.Color
	shape        draw.GlyphDrawer
}{
	{"Serial", "one goroutine", color.RGBA{R: 0x1f, G: 0x5a, B: 0xa6, A: 0xff}, draw.CircleGlyph{}},
	{"Parallel", "all cores, distinct keys", color.RGBA{R: 0xc4, G: 0x5a, B: 0x11, A: 0xff}, draw.BoxGlyph{}},
}

// spread is a median with the least and the greatest value, for the plot.
type spread struct {
	plotter.XYs
	plotter.YErrors
}

// spreads returns how long decisions took, for the contestants in the order of
// names, moved to the right by offset.
func spreads(all table, kind string, names []string, offset float64) (s spread) {
	for i, name := range names {
		var times []float64
		for _, r := range all[kind][name] {
			times = append(times, r.ns)
		}
		if len(times) == 0 {
			continue
		}
		middle, least, greatest := median(times), times[0], times[0]
		for _, ns := range times {
			least, greatest = min(least, ns), max(greatest, ns)
		}
		s.XYs = append(s.XYs, plotter.XY{X: float64(i) + offset, Y: middle})
		s.YErrors = append(s.YErrors, struct{ Low, High float64 }{middle - least, greatest - middle})
	}
	return s
}

// writePlot draws the time of a decision by contestant into an SVG file.
func writePlot(path string, o *options, all table, names []string) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("Time per decision, %d keys, %d cores: median of %d rounds, least to greatest",
		o.keys, runtime.GOMAXPROCS(0), o.rounds)
	p.Y.Label.Text = "ns, elapsed / decisions (log)"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.NominalX(names...)
	p.X.Padding = vg.Points(20)
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	for i, d := range drawn {
		s := spreads(all, d.kind, names, 0.16*float64(i)-0.08)
		points, err := plotter.NewScatter(s.XYs)
		if err != nil {
			return err
		}
		points.Color, points.Shape, points.Radius = d.colour, d.shape, vg.Points(3.5)
		bars, err := plotter.NewYErrorBars(s)
		if err != nil {
			return err
		}
		bars.Color = d.colour
		p.Add(bars, points)
		p.Legend.Add(d.legend, points)
	}
	canvas := vgsvg.New(8*vg.Inch, 4.5*vg.Inch)
	p.Draw(draw.New(canvas))
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
