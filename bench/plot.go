package bench

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
)

// The plot's measures, in pixels, and its colours, which differ in lightness
// so that they do in print too.
const (
	plotWidth  = 760
	plotLeft   = 90
	plotRight  = 250
	plotTop    = 60
	plotRow    = 26
	plotBar    = 16
	plotBottom = 50
	colorFloor = "#1f4e79"
	colorRest  = "#9dc3e6"
)

// WriteSVG draws where the time goes: a bar for each path, its floor dark and
// what is above the floor light, with the quartiles as a whisker.
func (r *Report) WriteSVG(w io.Writer) error {
	var b bytes.Buffer
	scale := r.scale()
	height := plotTop + plotRow*len(r.Paths) + plotBottom
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		plotWidth, height, plotWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", plotWidth, height)
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="15">What a hit costs, in ns of the host</text>`+"\n", plotLeft)
	legend(&b, plotLeft, colorFloor, "the floor: traps, call-outs, guest instructions")
	legend(&b, plotLeft+290, colorRest, "above the floor")
	for i := range r.Paths {
		r.Paths[i].bar(&b, plotTop+plotRow*i, scale)
	}
	r.axis(&b, plotTop+plotRow*len(r.Paths), scale)
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// scale is pixels per nanosecond.
func (r *Report) scale() float64 {
	most := 1.0
	for _, p := range r.Paths {
		most = max(most, p.NS, p.High, p.Floor)
	}
	return (plotWidth - plotLeft - plotRight) / most
}

func legend(b *bytes.Buffer, x int, color, text string) {
	fmt.Fprintf(b, `<rect x="%d" y="34" width="12" height="12" fill="%s"/><text x="%d" y="45">%s</text>`+"\n", x, color, x+18, text)
}

// bar is a path's row, with its top at y.
func (p *Result) bar(b *bytes.Buffer, y int, scale float64) {
	middle := y + plotRow/2
	top := middle - plotBar/2
	ns := max(p.NS, 0)
	floor := min(max(p.Floor, 0), ns)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", plotLeft-8, middle+4, escaped(p.label()))
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", plotLeft, top, floor*scale, plotBar, colorFloor)
	fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", plotLeft+floor*scale, top, (ns-floor)*scale, plotBar, colorRest)
	low, high := plotLeft+max(p.Low, 0)*scale, plotLeft+max(p.High, 0)*scale
	fmt.Fprintf(b, `<path d="M%.1f %dH%.1fM%.1f %dv8M%.1f %dv8" stroke="#000000" fill="none"/>`+"\n",
		low, middle, high, low, middle-4, high, middle-4)
	fmt.Fprintf(b, `<text x="%.1f" y="%d">%.0f</text>`+"\n", max(high, plotLeft+ns*scale)+8, middle+4, math.Abs(math.Round(p.NS)))
	fmt.Fprintf(b, `<text x="%d" y="%d" fill="#555555">%s</text>`+"\n", plotWidth-plotRight+60, middle+4, escaped(p.Profile))
}

func (p *Result) label() string {
	if p.Others == 0 {
		return p.Path
	}
	return fmt.Sprintf("%s +%d", p.Path, p.Others)
}

// axis marks round numbers of nanoseconds.
func (r *Report) axis(b *bytes.Buffer, y int, scale float64) {
	width := float64(plotWidth - plotLeft - plotRight)
	step := tick(width / scale)
	fmt.Fprintf(b, `<path d="M%d %dh%.1f" stroke="#000000" fill="none"/>`+"\n", plotLeft, y+4, width)
	for v := 0.0; v*scale <= width; v += step {
		x := plotLeft + v*scale
		fmt.Fprintf(b, `<path d="M%.1f %dv5" stroke="#000000"/><text x="%.1f" y="%d" text-anchor="middle">%g</text>`+"\n", x, y+4, x, y+24, v)
	}
}

// tick is a step of 1, 2 or 5 times a power of ten that makes up to eight of them.
func tick(most float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(most/8)))
	for _, f := range []float64{1, 2, 5} {
		if most/(f*power) <= 8 {
			return f * power
		}
	}
	return 10 * power
}

func escaped(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a Buffer takes all
	return b.String()
}
