package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWriteSVG(t *testing.T) {
	r := &Report{Paths: []Result{
		{Path: "k", NS: 500, Low: 480, High: 530, Floor: 400, Profile: "6.1"},
		{Path: "<&>", NS: 5, Floor: 10, Others: 10},
		{Path: "disabled", NS: -1, Low: -2, High: 1},
	}}
	for _, rep := range []*Report{r, {}} {
		var b bytes.Buffer
		require.NoError(t, rep.WriteSVG(&b))
		bars := 0
		for d := xml.NewDecoder(&b); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
				bars++
				for _, a := range e.Attr {
					require.NotContains(t, a.Value, "-", "a rectangle of less than nothing")
				}
			}
		}
		require.Equal(t, 3+2*len(rep.Paths), bars)
	}
}

func TestTick(t *testing.T) {
	for most, want := range map[float64]float64{1: 0.2, 8: 1, 9: 2, 500: 100, 740: 100, 810: 200, 1900: 500} {
		require.InDelta(t, want, tick(most), 1e-9, "%v", most)
	}
}
