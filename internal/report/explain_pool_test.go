package report

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPoolOfAReturnProbe: an explanation of a function's entry has the default pool by the release's formula; past the entry there is no kretprobe.
func TestPoolOfAReturnProbe(t *testing.T) {
	for kernel, want := range map[string]string{
		"5.10": "possible CPUs return instances: 1 on one CPU, 4 on 4 CPUs, 16 on 16 CPUs, 64 on 64 CPUs\n",
		"6.1":  "max(10, 2 * possible CPUs) return instances: 10 on one CPU, 10 on 4 CPUs, 32 on 16 CPUs, 128 on 64 CPUs\n",
	} {
		for _, point := range []string{"example", "example+1"} {
			e := explainHex(t, kernel, "55 4889e5 90 90 90 90 90 90 5d c3", point)
			var out bytes.Buffer
			require.NoError(t, e.WriteText(&out, Style{}))
			if point == "example" {
				assert.Contains(t, out.String(), want)
				assert.Len(t, e.ReturnPool.Sizes, len(machines))
			} else {
				assert.Nil(t, e.ReturnPool)
				assert.NotContains(t, out.String(), "kretprobe")
			}
		}
	}
}
