package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An unknown processor is wrong use: one sentence names the known ones.
func TestUnknownCPU(t *testing.T) {
	points := filepath.Join(t.TempDir(), "points")
	require.NoError(t, os.WriteFile(points, []byte("gcd\n"), 0o600))
	prog := writer(t, []byte("x"), 1)
	for name, args := range map[string][]string{
		"run":      {"run", "--call", "gcd(1,2)"},
		"program":  {"uprobe", prog},
		"uprobe":   {"uprobe", "--uprobe", prog + ":_start", prog},
		"info":     {"info", "-"},
		"check":    {"check", points, "-"},
		"explain":  {"explain", "-", "gcd"},
		"scan":     {"scan", "-"},
		"hazards":  {"hazards", "-"},
		"bpftrace": {"bpftrace", "-e", "kprobe:gcd { }"},
		"stap":     {"stap", "-e", `probe kernel.function("gcd") { next }`},
		"bench":    {"bench", "--symbol", "gcd"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, cpu := range []string{"nosuch", "no\x1bsuch"} {
				var out, errs bytes.Buffer
				assert.Equal(t, exitUsage, execute(append([]string{"kprobelab", args[0], "--cpu", cpu}, args[1:]...), &out, &errs), "%s", &errs)
				assert.Empty(t, out.String())
				assert.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
				assert.Regexp(t, `(?i)^kprobelab: --cpu.* "?no(|\\u001b|\\x1b)such.* qemu64`, errs.String())
			}
		})
	}
}
