package bench

import (
	"fmt"
	"image/color"
	"math"
)

// The plot's measures, in pixels of SVG.
const (
	plotWidth  = 760
	plotLeft   = 120
	plotRight  = 250
	plotTop    = 60
	plotRow    = 26
	plotBar    = 16
	plotBottom = 50
	plotText   = 12
	plotTitle  = 15
)

// The colours differ in lightness, so that they do in print too.
var (
	colorPaper = color.RGBA{0xff, 0xff, 0xff, 0xff}
	colorInk   = color.RGBA{0, 0, 0, 0xff}
	colorGrey  = color.RGBA{0x55, 0x55, 0x55, 0xff}
	colorFloor = color.RGBA{0x1f, 0x4e, 0x79, 0xff}
	colorRest  = color.RGBA{0x9d, 0xc3, 0xe6, 0xff}
)

// canvas is a surface for a plot: rectangles (lines are thin rectangles) and text.
type canvas interface {
	// rect fills a rectangle with a corner at x, y.
	rect(x, y, width, height float64, fill color.RGBA)
	// text writes a line of text in letters of that size, with its baseline at y.
	text(x, y float64, text string, from anchor, size float64, fill color.RGBA)
}

// anchor is the part of a text that is at its x.
type anchor int

const (
	atStart anchor = iota
	atMiddle
	atEnd
)

// drawing draws a report.
type drawing struct {
	canvas
	// scale is pixels per nanosecond.
	scale float64
}

// plotHeight returns the height of the report's plot.
func (r *Report) plotHeight() int { return plotTop + plotRow*len(r.Paths) + plotBottom }

// draw draws the time of each path as a bar: its floor dark, the rest light, with the quartiles as
// a whisker.
func (r *Report) draw(c canvas) {
	most := 1.0
	for _, p := range r.Paths {
		most = max(most, p.NS, p.High, p.Floor)
	}
	d := &drawing{canvas: c, scale: (plotWidth - plotLeft - plotRight) / most}
	d.rect(0, 0, plotWidth, float64(r.plotHeight()), colorPaper)
	d.text(plotLeft, 20, r.title(), atStart, plotTitle, colorInk)
	d.legend(plotLeft, colorFloor, "the floor: traps, call-outs, guest instructions")
	d.legend(plotLeft+290, colorRest, "above the floor")
	for i := range r.Paths {
		d.bar(&r.Paths[i], float64(plotTop+plotRow*i))
	}
	d.axis(float64(plotTop + plotRow*len(r.Paths)))
}

func (r *Report) title() string { return "What a hit costs, in ns of the host" }

func (d *drawing) legend(x float64, fill color.RGBA, text string) {
	d.rect(x, 34, 12, 12, fill)
	d.text(x+18, 45, text, atStart, plotText, colorInk)
}

// across and down are lines from a point.
func (d *drawing) across(x, y, length float64) { d.rect(x, y-0.5, length, 1, colorInk) }
func (d *drawing) down(x, y, length float64)   { d.rect(x-0.5, y, 1, length, colorInk) }

// bar is a path's row, with its top at y.
func (d *drawing) bar(p *Result, y float64) {
	middle := y + plotRow/2
	top := middle - plotBar/2
	ns := max(p.NS, 0)
	floor := min(max(p.Floor, 0), ns)
	d.text(plotLeft-8, middle+4, p.label(), atEnd, plotText, colorInk)
	d.rect(plotLeft, top, floor*d.scale, plotBar, colorFloor)
	d.rect(plotLeft+floor*d.scale, top, (ns-floor)*d.scale, plotBar, colorRest)
	low, high := plotLeft+max(p.Low, 0)*d.scale, plotLeft+max(p.High, 0)*d.scale
	d.across(low, middle, high-low)
	d.down(low, middle-4, 8)
	d.down(high, middle-4, 8)
	figure := fmt.Sprintf("%.0f", math.Abs(math.Round(p.NS)))
	d.text(max(high, plotLeft+ns*d.scale)+8, middle+4, figure, atStart, plotText, colorInk)
	d.text(plotWidth-plotRight+60, middle+4, p.Profile, atStart, plotText, colorGrey)
}

func (p *Result) label() string {
	name := p.Path
	if p.Others > 0 {
		name += fmt.Sprintf(" +%d", p.Others)
	}
	return name
}

// axis marks round numbers of nanoseconds.
func (d *drawing) axis(y float64) {
	const width = plotWidth - plotLeft - plotRight
	d.across(plotLeft, y+4, width)
	step := tick(width / d.scale)
	for v := 0.0; v*d.scale <= width; v += step {
		x := plotLeft + v*d.scale
		d.down(x, y+4, 5)
		d.text(x, y+24, fmt.Sprintf("%g", v), atMiddle, plotText, colorInk)
	}
}

// tick returns a step of 1, 2 or 5 times a power of ten that makes up to eight ticks.
func tick(most float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(most/8)))
	for _, f := range []float64{1, 2, 5} {
		if most/(f*power) <= 8 {
			return f * power
		}
	}
	return 10 * power
}
