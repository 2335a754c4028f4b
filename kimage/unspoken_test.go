package kimage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

// Rule: sites whose form only the release tells are counted, and UnspokenAt names the fact.
func TestUnspokenSites(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want int
	}{
		"a_table_of_no-operations": {table(8), 0},
		"no_table":                 {nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			img := formsOf(t, "6.3.8", c.data, nil).img
			img.opts = Options{}
			img.tables.sites[SiteFtrace] = []Site{{Addr: testText, Len: 5}, {Addr: testText + 0x20, Len: 5}}
			img.tables.longest[SiteFtrace] = 5
			require.Equal(t, c.want, img.Unspoken())
			require.Equal(t, c.want > 0, img.UnspokenAt(x86.Range{Start: testText + 2, End: testText + 3}) != "")
			require.Empty(t, img.UnspokenAt(x86.Range{Start: testText + 8, End: testText + 9}))
		})
	}
}
