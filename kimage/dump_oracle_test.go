package kimage

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
	"kprobelab/x86"
)

// TestDumpAgainstImage compares what a dump of a booted kernel says with what its vmlinuz
// does, for what boot has not freed.
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

// requireSame compares tables but for entries about freed code; addrs are an entry's
// addresses, the first of which tells.
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

// maxDecided is how many bytes of text depend on what boot finds, but for keys: those
// also change after boot (the one of the random numbers, once there is entropy).
const maxDecided = 100

func requireText(t *testing.T, img, dump *Image, slide x86.Addr) {
	t.Helper()
	if slide != 0 {
		return // addresses differ
	}
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
	differ := 0
	for i := range want {
		if want[i] != got[i] {
			differ++
		}
	}
	t.Logf("%d of %d bytes of text differ, keys apart", differ, n)
	require.Less(t, differ, maxDecided)
}
