//go:build unicorn && cgo && linux && amd64

package emu

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"kprobelab/internal/tinyguest"
	"kprobelab/machine"
)

// An engine's own failure differs from an error of the guest.
func TestEngineFailure(t *testing.T) {
	img := &tinyguest.Image{}
	cpuModels["nonesuch"] = 999
	defer delete(cpuModels, "nonesuch")
	_, err := New(img, &machine.Options{CPUs: 2, CPUModel: "nonesuch"})
	require.ErrorIs(t, err, machine.ErrEngine)
	require.ErrorIs(t, err, unicorn.UcError(unicorn.ERR_ARG))
	require.ErrorContains(t, err, "cpu 0: emulation engine failed: set the cpu model: Invalid argument")
}
