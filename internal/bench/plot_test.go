package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// plotted has values that are hard to draw: XML's special letters, negative values, a floor above
// the figure.
func plotted() *Report {
	return &Report{Paths: []Result{
		{Path: "k", NS: 500, Low: 480, High: 530, Floor: 400, Profile: "6.1"},
		{Path: "<&>", NS: 5, Floor: 10, Others: 10},
		{Path: "disabled", NS: -1, Low: -2, High: 1},
	}}
}

func TestWriteSVG(t *testing.T) {
	for _, rep := range []*Report{plotted(), {}} {
		var b bytes.Buffer
		require.NoError(t, rep.WriteSVG(&b))
		fills := map[string]int{}
		for d := xml.NewDecoder(&b); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			e, ok := token.(xml.StartElement)
			if !ok || e.Name.Local != "rect" {
				continue
			}
			for _, a := range e.Attr {
				require.NotContains(t, a.Value, "-", "a rectangle of less than nothing")
				if a.Name.Local == "fill" {
					fills[a.Value]++
				}
			}
		}
		want := len(rep.Paths) + 1 // the legend
		require.Equal(t, want, fills[hexColor(colorFloor)])
		require.Equal(t, want, fills[hexColor(colorRest)])
		require.Equal(t, 1, fills[hexColor(colorPaper)])
	}
}

func TestWritePNG(t *testing.T) {
	rep := plotted()
	var b bytes.Buffer
	require.NoError(t, rep.WritePNG(&b))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	require.Equal(t, image.Pt(plotWidth*pngScale, rep.plotHeight()*pngScale), img.Bounds().Size())

	// k's bar: 400 of 530 of its width is the floor, up to 500 the rest. The
	// row just above the whisker is asked.
	const width, y = plotWidth - plotLeft - plotRight, plotTop + plotRow/2 - 6
	at := func(ns float64) color.Color {
		return color.RGBAModel.Convert(img.At(int((plotLeft+ns/530*width)*pngScale), y*pngScale))
	}
	for ns, want := range map[float64]color.Color{1: colorFloor, 399: colorFloor, 401: colorRest, 499: colorRest, 502: colorPaper} {
		require.Equal(t, want, at(ns), "at %g ns", ns)
	}
	// Its label ends, and is written, left of the bars.
	left, right := inked(img, plotTop*pngScale, (plotTop+plotRow)*pngScale, plotLeft*pngScale-1)
	require.Less(t, left, right)
	require.InDelta(t, (plotLeft-8)*pngScale, right, 2)

	require.NoError(t, (&Report{}).WritePNG(io.Discard))
	require.Error(t, rep.WritePNG(full{}))
}

// inked are the first and the last column with ink, left of a column.
func inked(img image.Image, top, bottom, before int) (first, last int) {
	first, last = before, -1
	for y := top; y < bottom; y++ {
		for x := range before {
			if r, _, _, _ := img.At(x, y).RGBA(); r < 0x8000 {
				first, last = min(first, x), max(last, x)
			}
		}
	}
	return first, last
}

// full takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestTick(t *testing.T) {
	for most, want := range map[float64]float64{1: 0.2, 8: 1, 9: 2, 500: 100, 740: 100, 810: 200, 1900: 500} {
		require.InDelta(t, want, tick(most), 1e-9, "%v", most)
	}
}
