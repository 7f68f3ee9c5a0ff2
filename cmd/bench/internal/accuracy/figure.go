package accuracy

// This file draws the worst windows: a line for each scenario, a mark for each
// schedule.

import (
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// marks are how the schedules look, in the order in which they are drawn.
var marks = []struct {
	by    schedule
	name  string
	shape draw.GlyphDrawer
	color color.RGBA
}{
	{perfect, "exact", draw.PlusGlyph{}, color.RGBA{A: 255}},
	{timedReads, "timed reads", draw.TriangleGlyph{}, color.RGBA{R: 200, G: 60, B: 40, A: 255}},
	{oneNode, "one node", draw.CrossGlyph{}, color.RGBA{R: 110, G: 110, B: 110, A: 255}},
	{oursTick, "ours tick", draw.SquareGlyph{}, color.RGBA{R: 90, G: 140, B: 220, A: 255}},
	{ours, "ours", draw.CircleGlyph{}, color.RGBA{R: 40, G: 90, B: 190, A: 255}},
	{burst, "burst", draw.PyramidGlyph{}, color.RGBA{R: 130, G: 90, B: 160, A: 255}},
	{sliding, "sliding", draw.RingGlyph{}, color.RGBA{R: 40, G: 140, B: 70, A: 255}},
}

// writeFigure draws the rows as SVG.
func writeFigure(w io.Writer, rows []row) error {
	p := plot.New()
	p.Title.Text = "Units admitted in the worst window"
	p.X.Label.Text = "worst window / threshold (logarithmic)"
	p.X.Scale, p.X.Min, p.X.Max = plot.LogScale{}, 0.45, 11
	p.X.Tick.Marker = plot.ConstantTicks{
		{Value: 0.5, Label: "0.5"},
		{Value: 1, Label: "1"},
		{Value: 1.5, Label: "1.5"},
		{Value: 2, Label: "2"},
		{Value: 3, Label: "3"},
		{Value: 5, Label: "5"},
		{Value: 10, Label: "10"},
	}
	p.Add(plotter.NewGrid())
	p.Legend.Top = true
	p.Legend.Padding = vg.Points(3)

	var shown []*scenario
	for i := range rows {
		if s := rows[i].spec; isLimit(s) && (len(shown) == 0 || shown[len(shown)-1] != s) {
			shown = append(shown, s)
		}
	}
	n := len(shown)
	names := make([]string, n)
	for _, m := range marks {
		points := make(plotter.XYs, 0, n)
		for i, s := range shown {
			names[n-1-i] = s.name // the first scenario on top
			if r := lookup(rows, s, m.by); r != nil {
				points = append(points, plotter.XY{X: min(max(r.Worst, p.X.Min), p.X.Max), Y: float64(n - 1 - i)})
			}
		}
		scatter, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		scatter.GlyphStyle = draw.GlyphStyle{Color: m.color, Radius: vg.Points(4), Shape: m.shape}
		p.Add(scatter)
		p.Legend.Add(m.name, scatter)
	}
	p.NominalY(names...)

	canvas := vgsvg.New(vg.Points(760), vg.Points(float64(22*n+90)))
	p.Draw(draw.Crop(draw.New(canvas), vg.Points(12), -vg.Points(12), vg.Points(6), -vg.Points(6)))
	_, err := canvas.WriteTo(w)
	return err
}
