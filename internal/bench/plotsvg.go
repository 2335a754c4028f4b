package bench

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"io"
)

// WriteSVG draws the time of each path as a bar in an SVG image: its floor dark, the rest light,
// with the quartiles as a whisker. The error is the writer's.
func (r *Report) WriteSVG(w io.Writer) error {
	var c svgCanvas
	height := r.plotHeight()
	fmt.Fprintf(&c, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif">`+"\n",
		plotWidth, height, plotWidth, height)
	r.draw(&c)
	c.WriteString("</svg>\n")
	_, err := w.Write(c.Bytes())
	return err
}

// svgCanvas is the text of an image; a Buffer takes all.
type svgCanvas struct{ bytes.Buffer }

func (c *svgCanvas) rect(x, y, width, height float64, fill color.RGBA) {
	fmt.Fprintf(c, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, y, width, height, hexColor(fill))
}

func (c *svgCanvas) text(x, y float64, text string, from anchor, size float64, fill color.RGBA) {
	place := [...]string{atStart: "start", atMiddle: "middle", atEnd: "end"}[from]
	fmt.Fprintf(c, `<text x="%.1f" y="%.1f" font-size="%g" text-anchor="%s" fill="%s">`, x, y, size, place, hexColor(fill))
	_ = xml.EscapeText(c, []byte(text))
	c.WriteString("</text>\n")
}

func hexColor(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }
