package onekey

// This file draws the levels beside the truth.

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// curves are what is drawn of each life.
var curves = []struct {
	name   string
	color  color.RGBA
	dashed bool
	value  func(*moment) float64
}{
	{"in the last window", color.RGBA{R: 110, G: 110, B: 110, A: 255}, false, func(m *moment) float64 { return float64(m.inWindow) }},
	{"A's level", color.RGBA{R: 40, G: 90, B: 190, A: 255}, false, func(m *moment) float64 { return m.levels[0] }},
	{"B's level", color.RGBA{R: 200, G: 60, B: 40, A: 255}, false, func(m *moment) float64 { return m.levels[1] }},
	{"the threshold", color.RGBA{A: 255}, true, func(*moment) float64 { return threshold }},
}

// writePicture draws the lives as SVG, one above the other.
func writePicture(w io.Writer, lives []life) error {
	const height = 250
	canvas := vgsvg.New(vg.Points(760), vg.Points(float64(height*len(lives))))
	whole := draw.New(canvas)
	for i := range lives {
		p, err := lives[i].plot()
		if err != nil {
			return err
		}
		top := vg.Points(float64(height * i))
		bottom := vg.Points(float64(height * (len(lives) - 1 - i)))
		p.Draw(draw.Crop(whole, vg.Points(12), -vg.Points(12), bottom+vg.Points(6), -top-vg.Points(6)))
	}
	_, err := canvas.WriteTo(w)
	return err
}

// plot draws one life.
func (l *life) plot() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = string(l.kind)
	p.X.Label.Text, p.Y.Label.Text = "second", "units"
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, seconds, 0, 100
	var ticks plot.ConstantTicks
	for at := 0; at <= seconds; at += 5 {
		ticks = append(ticks, plot.Tick{Value: float64(at), Label: fmt.Sprint(at)})
	}
	p.X.Tick.Marker = ticks
	p.Add(plotter.NewGrid())
	for _, c := range curves {
		points := make(plotter.XYs, len(l.curve))
		for i := range l.curve {
			points[i] = plotter.XY{X: l.curve[i].at, Y: c.value(&l.curve[i])}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = c.color, vg.Points(1.5)
		if c.dashed {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		}
		p.Add(line)
		p.Legend.Add(c.name, line)
	}
	return p, nil
}
