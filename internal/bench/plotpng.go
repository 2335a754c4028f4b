package bench

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// pngScale is the number of pixels per unit of the SVG image: 2 is enough for print.
const pngScale = 2

// WritePNG draws the image of WriteSVG as a PNG image of twice the size, with the Go project's
// font. The error is the writer's.
func (r *Report) WritePNG(w io.Writer) error {
	c, err := newPNGCanvas(plotWidth*pngScale, r.plotHeight()*pngScale)
	if err != nil {
		return err
	}
	r.draw(c)
	return (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(w, c.image)
}

// pngCanvas is an image of pixels.
type pngCanvas struct {
	image *image.RGBA
	// faces are the font's, by the letters' size.
	faces map[float64]font.Face
}

func newPNGCanvas(width, height int) (*pngCanvas, error) {
	f, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, fmt.Errorf("the plot's font: %w", err)
	}
	c := &pngCanvas{image: image.NewRGBA(image.Rect(0, 0, width, height)), faces: map[float64]font.Face{}}
	for _, size := range []float64{plotText, plotTitle} {
		// At 72 dots an inch a point is a pixel.
		if c.faces[size], err = opentype.NewFace(f, &opentype.FaceOptions{Size: size * pngScale, DPI: 72}); err != nil {
			return nil, fmt.Errorf("the plot's font: %w", err)
		}
	}
	return c, nil
}

func (c *pngCanvas) rect(x, y, width, height float64, fill color.RGBA) {
	left, top := float32(x*pngScale), float32(y*pngScale)
	right, bottom := float32((x+width)*pngScale), float32((y+height)*pngScale)
	size := c.image.Bounds().Size()
	z := vector.NewRasterizer(size.X, size.Y)
	z.MoveTo(left, top)
	z.LineTo(right, top)
	z.LineTo(right, bottom)
	z.LineTo(left, bottom)
	z.ClosePath()
	z.DrawOp = draw.Over
	z.Draw(c.image, c.image.Bounds(), image.NewUniform(fill), image.Point{})
}

func (c *pngCanvas) text(x, y float64, text string, from anchor, size float64, fill color.RGBA) {
	d := font.Drawer{Dst: c.image, Src: image.NewUniform(fill), Face: c.faces[size]}
	dot := fixed.Point26_6{X: fixed.Int26_6(x * pngScale * 64), Y: fixed.Int26_6(y * pngScale * 64)}
	switch width := d.MeasureString(text); from {
	case atMiddle:
		dot.X -= width / 2
	case atEnd:
		dot.X -= width
	case atStart:
	}
	d.Dot = dot
	d.DrawString(text)
}
