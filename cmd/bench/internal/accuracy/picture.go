package accuracy

// This file draws what one burst gets through under each kind of window.

import (
	"fmt"
	"image/color"
	"io"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// The burst of the picture: ten times a limit of 6,000 per minute, from 0:45 to 2:00.
const (
	burstLoad  = 10
	burstFrom  = 45 * time.Second
	burstUntil = 120 * time.Second
	drawnUntil = 135 * time.Second
	drawnStep  = 250 * time.Millisecond
)

// drawn are the kinds, in the order of the legend.
var drawn = []struct {
	name  string
	set   func(*ratelimit.Config)
	color color.RGBA
}{
	{"fixed", func(cfg *ratelimit.Config) { cfg.Window = ratelimit.WindowFixed }, color.RGBA{R: 200, G: 60, B: 40, A: 255}},
	{"leaky", func(*ratelimit.Config) {}, color.RGBA{R: 40, G: 90, B: 190, A: 255}},
	{"sliding", func(cfg *ratelimit.Config) { cfg.Window = ratelimit.WindowSliding }, color.RGBA{R: 40, G: 140, B: 70, A: 255}},
	{"leaky, with a burst interval of 3 s", func(cfg *ratelimit.Config) { cfg.BurstInterval = 3 * time.Second }, color.RGBA{R: 130, G: 90, B: 160, A: 255}},
}

// throughBurst offers the burst to one node and returns what it has admitted by each
// time, in thresholds.
func throughBurst(set func(*ratelimit.Config)) plotter.XYs {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.LocalCacheMaxEntries = usualThreshold, 16
	set(&cfg)
	f := ratelimittest.NewFleet(nil, 1, cfg)
	defer f.Close()
	perStep := int(burstLoad * usualThreshold * drawnStep / cfg.WindowInterval)
	admitted := 0
	var points plotter.XYs
	for at := time.Duration(0); at <= drawnUntil; at += drawnStep {
		for range perStep {
			if at >= burstFrom && at < burstUntil && f.Offer(0, "key", 1) {
				admitted++
			}
		}
		points = append(points, plotter.XY{X: at.Seconds(), Y: float64(admitted) / usualThreshold})
		f.Advance(drawnStep)
	}
	return points
}

// writePicture draws the kinds as SVG. It shows no rows.
func writePicture(w io.Writer, _ []row) error {
	p := plot.New()
	p.Title.Text = "One burst under each kind: ten times the limit from 0:45 to 2:00, one node"
	p.X.Label.Text = "time (a window is a minute)"
	p.Y.Label.Text = "admitted so far, in thresholds"
	p.Y.Min, p.Y.Max = 0, 2.4
	var ticks plot.ConstantTicks
	for at := time.Duration(0); at <= drawnUntil; at += 15 * time.Second {
		ticks = append(ticks, plot.Tick{Value: at.Seconds(), Label: fmt.Sprintf("%d:%02d", at/time.Minute, at%time.Minute/time.Second)})
	}
	p.X.Tick.Marker = ticks
	p.Add(plotter.NewGrid())
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding = vg.Points(3)
	for _, kind := range drawn {
		line, err := plotter.NewLine(throughBurst(kind.set))
		if err != nil {
			return err
		}
		line.Color, line.Width = kind.color, vg.Points(2)
		p.Add(line)
		p.Legend.Add(kind.name, line)
	}
	canvas := vgsvg.New(vg.Points(760), vg.Points(330))
	p.Draw(draw.Crop(draw.New(canvas), vg.Points(12), -vg.Points(12), vg.Points(6), -vg.Points(6)))
	_, err := canvas.WriteTo(w)
	return err
}
