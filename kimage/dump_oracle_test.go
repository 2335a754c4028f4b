package kimage

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
	"kprobelab/x86"
)

// TestDumpAgainstImage compares a dump of a booted kernel with its vmlinuz, without the
// parts that boot has freed.
func TestDumpAgainstImage(t *testing.T) {
	for _, kernel := range dumps.Kernels {
		t.Run(kernel, func(t *testing.T) {
			dump, err := Open(dumps.File(t, kernel), nil)
			require.NoError(t, err)
			release := dump.Fact("release").Value
			files, err := filepath.Glob(filepath.Join("..", ".cache", "kernel", "*", "vmlinuz-"+release))
			require.NoError(t, err)
			if len(files) == 0 {
				t.Skip("no vmlinuz-" + release + " in .cache/kernel to compare the dump with")
			}
			img, err := Open(files[0], &Options{CPU: "qemu64,+up"})
			require.NoError(t, err)
			require.Equal(t, img.Profile(), dump.Profile())
			slide := dump.bounds.stext - img.bounds.stext
			for _, kind := range []SiteKind{SiteFtrace, SiteJumpLabel, SiteStaticCall} {
				requireSame(t, img, slide, img.Sites(kind), dump.Sites(kind), func(s *Site) []*x86.Addr { return []*x86.Addr{&s.Addr} })
			}
			requireSame(t, img, slide, img.ExceptionTable(), dump.ExceptionTable(), func(e *ExceptionEntry) []*x86.Addr { return []*x86.Addr{&e.Addr, &e.Fixup} })
			requireSame(t, img, slide, img.BugTable(), dump.BugTable(), func(b *Bug) []*x86.Addr { return []*x86.Addr{&b.Addr, &b.Flags} })
			requireSame(t, img, slide, img.Blacklist(), dump.Blacklist(), func(e *BlacklistEntry) []*x86.Addr { return []*x86.Addr{&e.Start, &e.End} })
			require.Empty(t, dump.IgnoredEntries())
			require.NotEmpty(t, dump.Tasks())
			requireText(t, img, dump, slide)
		})
	}
}

// requireSame compares tables without entries about freed code; addrs are an entry's
// addresses, the first of which decides.
func requireSame[E any](t *testing.T, img *Image, slide x86.Addr, want, got []E, addrs func(*E) []*x86.Addr) {
	t.Helper()
	var kept []E
	for _, e := range want {
		if !img.InText(*addrs(&e)[0]) {
			continue
		}
		for _, a := range addrs(&e) {
			*a += slide
		}
		kept = append(kept, e)
	}
	require.NotEmpty(t, kept)
	require.Equal(t, kept, got)
}

// maxDecided is the number of bytes of text that depend on what boot finds, except
// keys: keys also change after boot (the key of the random numbers, once there is
// entropy).
const maxDecided = 100

func requireText(t *testing.T, img, dump *Image, slide x86.Addr) {
	t.Helper()
	n := int(img.bounds.etext - img.bounds.stext)
	want, got := make([]byte, n), make([]byte, n)
	require.Equal(t, n, img.CodeAt(img.bounds.stext, want))
	require.Equal(t, n, dump.CodeAt(dump.bounds.stext, got))
	keys := img.Sites(SiteJumpLabel)
	turned := 0
	for _, s := range keys {
		at := int(s.Addr - img.bounds.stext)
		if at < 0 || at >= n {
			continue // freed
		}
		if !bytes.Equal(want[at:at+s.Len], got[at:at+s.Len]) {
			turned++
		}
		copy(want[at:at+s.Len], got[at:])
	}
	t.Logf("%d of %d places of keys differ", turned, len(keys))
	require.Less(t, turned, len(keys)/20)
	differ, moved := differences(want, got, uint32(slide))
	t.Logf("%d of %d bytes of text differ, keys apart, and %d addresses by a slide of %#x", differ, n, moved, uint64(slide))
	require.Equal(t, slide != 0, moved > 0)
	require.Less(t, differ, maxDecided)
}

// differences counts the bytes that differ, and the addresses that differ by the slide alone:
// relocated addresses, and addresses relative to memory that does not slide (the per-CPU areas).
func differences(want, got []byte, slide uint32) (bytes, moved int) {
	for i := 0; i < len(want); i++ {
		if want[i] == got[i] {
			continue
		}
		if end := relocated(want, got, i, slide); slide != 0 && end > i {
			moved, i = moved+1, end-1
			continue
		}
		bytes++
	}
	return bytes, moved
}

// relocated returns the end of an address that has a byte at i and has moved by the slide; 0 if
// there is none.
func relocated(want, got []byte, i int, slide uint32) int {
	for from := max(0, i-3); from <= i && from+4 <= len(want); from++ {
		by := binary.LittleEndian.Uint32(got[from:]) - binary.LittleEndian.Uint32(want[from:])
		if by == slide || by == -slide {
			return from + 4
		}
	}
	return 0
}

// An address that a slide has moved is no difference; any other byte is.
func TestDifferencesOfASlidKernel(t *testing.T) {
	want := []byte{0x90, 0x48, 0xc7, 0xc7, 0x00, 0x10, 0x00, 0x81, 0xcc, 0x65, 0x8b, 0x05, 0x44, 0x33, 0x22, 0x11, 0xc3}
	for name, c := range map[string]struct {
		slide        uint32
		change       func(b []byte)
		bytes, moved int
	}{
		"nothing":             {0, func([]byte) {}, 0, 0},
		"an_address":          {0x1a000000, func(b []byte) { b[7] += 0x1a }, 0, 1},
		"a_relative_one":      {0x1a000000, func(b []byte) { b[15] -= 0x1a }, 0, 1},
		"both":                {0x1a000000, func(b []byte) { b[7] += 0x1a; b[15] -= 0x1a }, 0, 2},
		"another_slide":       {0x1b000000, func(b []byte) { b[7] += 0x1a }, 1, 0},
		"a_byte":              {0x1a000000, func(b []byte) { b[0] = 0xcc }, 1, 0},
		"the_last_byte":       {0x1a000000, func(b []byte) { b[16] = 0xcb }, 1, 0},
		"no_slide_no_address": {0, func(b []byte) { b[7] += 0x1a }, 1, 0},
	} {
		got := slices.Clone(want)
		c.change(got)
		bytes, moved := differences(want, got, c.slide)
		require.Equal(t, [2]int{c.bytes, c.moved}, [2]int{bytes, moved}, name)
	}
}
