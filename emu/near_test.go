//go:build unicorn && cgo && linux && amd64

package emu_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/emu"
	"kprobelab/internal/tinyguest"
)

// TestTranslationsAreInReachOfTheText: the engine's buffer of translations is within 2 GB of the program's text, where calls are direct.
func TestTranslationsAreInReachOfTheText(t *testing.T) {
	buffers := func() map[uint64]bool {
		maps, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		if strings.Contains(string(maps), "libunicorn.so") {
			t.Skip("the engine is in a shared library, and takes whatever address the system gives")
		}
		found := map[uint64]bool{}
		for line := range strings.Lines(string(maps)) {
			var start, end uint64
			var rights string
			_, err := fmt.Sscanf(line, "%x-%x %s", &start, &end, &rights)
			require.NoError(t, err, line)
			if strings.HasPrefix(rights, "rwx") && end-start >= 64<<20 {
				found[start] = true
			}
		}
		return found
	}
	before := buffers()
	img := &tinyguest.Image{}
	answer := img.Add("answer", 0xb8, 42, 0, 0, 0, 0xc3) // mov $42,%eax; ret
	m, err := emu.New(img, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	got, err := m.CallAddr(answer)
	require.NoError(t, err)
	require.Equal(t, uint64(42), got)
	text := uint64(reflect.ValueOf(emu.New).Pointer())
	near := 0
	for start := range buffers() {
		if !before[start] && start > text && start-text < 2<<30 {
			near++
		}
	}
	require.Equal(t, 1, near)
}
