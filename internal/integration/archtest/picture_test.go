package archtest

import (
	"bytes"
	"image/png"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// README's picture of the page is a whole PNG of the size that make picture takes (internal/page/browser), small enough for a README.
func TestThePictureOfThePage(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	m := regexp.MustCompile(`!\[The page[^]]*\]\((docs/[^)]*\.png)\)`).FindSubmatch(readme)
	require.NotNil(t, m, "README has no picture of the page")
	b, err := os.ReadFile("../../../" + string(m[1]))
	require.NoError(t, err)
	p, err := png.Decode(bytes.NewReader(b))
	require.NoError(t, err)
	require.Equal(t, [2]int{1200, 532}, [2]int{p.Bounds().Dx(), p.Bounds().Dy()})
	require.Less(t, len(b), 64<<10)
	colours := map[any]int{}
	for y := range p.Bounds().Dy() {
		for x := range p.Bounds().Dx() {
			colours[p.At(x, y)]++
		}
	}
	require.Greater(t, len(colours), 20, "there is next to nothing in it")
}
