//go:build unicorn && cgo && linux && amd64

package emu_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/emu"
	"kprobelab/internal/integration/dumps"
	"kprobelab/kimage"
)

// TestMachinesAreMadeOnAnyThread: a goroutine may move to another thread between two
// calls of the engine.
func TestMachinesAreMadeOnAnyThread(t *testing.T) {
	img, err := kimage.Open(dumps.File(t, "6.1"), nil)
	require.NoError(t, err)
	n := 60
	if testing.Short() {
		n = 5
	}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for range n {
				m, err := emu.New(img, nil)
				if assert.NoError(t, err) {
					m.Close()
				}
			}
		})
	}
	wg.Wait()
}
