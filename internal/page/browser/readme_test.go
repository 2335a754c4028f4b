package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// The size of README's picture of the page, docs/page.png. internal/integration/archtest has it, too.
const readmeWidth, readmeHeight = 1200, 532

// README's picture is the table of a function, with a byte chosen. With $KPROBELAB_README_PICTURE it is written to that file
// (make picture).
func TestThePictureOfREADME(t *testing.T) {
	ctx := tab(t, page(t)+viewsOf["image"])
	appear(t, ctx, "light", readmeWidth)
	settled(t, ctx, "image")
	until(t, ctx, `document.querySelector("#asking").hidden`)
	top := eval[float64](t, ctx, `[...document.querySelectorAll("h2, h3")].find((h) => h.textContent === "The function").getBoundingClientRect().top + scrollY`)
	b, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	whole, err := png.Decode(bytes.NewReader(b))
	require.NoError(t, err)
	part := image.Rect(0, int(top), readmeWidth, int(top)+readmeHeight)
	require.True(t, part.In(whole.Bounds()), "%v has no %v", whole.Bounds(), part)
	few := inFewColours(whole, part)
	require.Greater(t, len(few.Palette), 20, "there is next to nothing in it")
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few))
	require.Less(t, out.Len(), 64<<10)
	if name := os.Getenv("KPROBELAB_README_PICTURE"); name != "" {
		require.NoError(t, os.WriteFile(name, out.Bytes(), 0o666))
	}
}

// inFewColours is a part of a picture in its 256 most frequent colours.
func inFewColours(of image.Image, part image.Rectangle) *image.Paletted {
	counts := map[color.RGBA]int{}
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			counts[color.RGBAModel.Convert(of.At(x, y)).(color.RGBA)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for _, c := range colours[:min(256, len(colours))] {
		palette = append(palette, c)
	}
	p := image.NewPaletted(image.Rect(0, 0, part.Dx(), part.Dy()), palette)
	draw.Draw(p, p.Bounds(), of, part.Min, draw.Src)
	return p
}
