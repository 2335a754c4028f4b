package kimage

import (
	"bufio"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
)

// oracleCPU is the processor each kernel was booted on.
var oracleCPU = map[string]string{"oracle": "qemu64", "oracle510": "qemu64", "oracle612": "qemu64,-cx16"}

var (
	bootedMu sync.Mutex
	booted   = map[string]*Image{}
)

// bootedImage opens a measured kernel's image once; tests must not change it.
func bootedImage(t testing.TB, kernel string) *Image {
	t.Helper()
	file := oracle.Image(t, kernel)
	bootedMu.Lock()
	defer bootedMu.Unlock()
	if img := booted[kernel]; img != nil {
		return img
	}
	img, err := Open(file, &Options{CPU: oracleCPU[kernel]})
	require.NoError(t, err)
	booted[kernel] = img
	return img
}

// eachKernel runs f for every measured kernel.
func eachKernel(t *testing.T, f func(t *testing.T, kernel string, img *Image)) {
	for _, kernel := range []string{"oracle510", "oracle", "oracle612"} {
		t.Run(oracle.Kernels[kernel], func(t *testing.T) { f(t, kernel, bootedImage(t, kernel)) })
	}
}

// readLines reads a plain file of the measured data.
func readLines(t *testing.T, kernel, name string) []string {
	t.Helper()
	f, err := os.Open(oracle.File(t, kernel, name))
	require.NoError(t, err)
	defer f.Close()
	var lines []string
	for s := bufio.NewScanner(f); s.Scan(); {
		lines = append(lines, strings.TrimSpace(s.Text()))
	}
	return lines
}
