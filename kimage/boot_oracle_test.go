package kimage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/oracle"
	"kprobelab/x86"
)

// siteNames are the kinds for messages, in the order in which a byte that
// lies in several kinds' sites is counted.
var siteNames = []struct {
	kind SiteKind
	name string
}{
	{SiteStaticCall, "static call"}, {SiteJumpLabel, "jump label"}, {SiteFtrace, "ftrace"},
	{SiteAlternative, "alternative"}, {SiteParavirt, "paravirt"}, {SiteReturn, "return"},
	{SiteRetpoline, "retpoline"}, {SiteSMPLock, "smp lock"},
}

// knownDifferences is how many bytes of the computed text may differ from the
// live one, by category: what only a running machine decides.
//
// Jump labels: static keys that a booting machine turns (the clock, timers,
// memory, the packet filter's hooks). In 6.12 besides, static calls (their
// trampolines count as returns) and jump labels of the security hooks, which
// depend on the modules that the command line and the configuration choose;
// and the dentry hash's address and size, which are constants in text there.
var knownDifferences = map[string]map[string]int{
	"oracle510": {"jump label": 130},
	"oracle":    {"jump label": 81},
	"oracle612": {"jump label": 1111, "static call": 2126, "return": 2385, "unexplained": 45},
}

// Rule: the text computed from the file is the text that a real kernel had
// after booting.
func TestBootTextAgainstRealKernels(t *testing.T) {
	eachKernel(t, func(t *testing.T, kernel string, img *Image) {
		compareText(t, img, oracle.LiveText(t, kernel), knownDifferences[kernel])
	})
}

// Rule: another processor's text differs by what its features and mitigations
// ask for; static keys of cryptography that it has instructions for join those
// that booting turns.
func TestBootTextOfEPYC(t *testing.T) {
	dir := oracle.Dir(t, "oracle")
	packed, err := os.ReadFile(filepath.Join(dir, "epyc_live_text.bin.zst"))
	if err != nil {
		t.Skip("no measured text of another processor")
	}
	z, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer z.Close()
	live, err := z.DecodeAll(packed, nil)
	require.NoError(t, err)
	img, err := Open(kernelFile(t, "oracle"), &Options{CPU: "EPYC"})
	require.NoError(t, err)
	compareText(t, img, oracle.Text{Base: testBase, Bytes: live}, map[string]int{"jump label": 144})
}

// compareText counts the bytes that differ by category, and fails where a
// category has more than are known to.
func compareText(t *testing.T, img *Image, live oracle.Text, known map[string]int) {
	t.Helper()
	got := img.bytes(live.Base, len(live.Bytes))
	require.NotNil(t, got)
	count, examples := map[string]int{}, map[string][]string{}
	for i := 0; i < len(got); i++ {
		if got[i] == live.Bytes[i] {
			continue
		}
		addr := live.Base.Add(int64(i))
		name, n := categoryOf(img, addr)
		n = min(n, len(got)-i)
		for range n {
			if i < len(got) && got[i] != live.Bytes[i] {
				count[name]++
			}
			i++
		}
		i--
		s, _ := img.SymbolAt(addr)
		examples[name] = append(examples[name], fmt.Sprintf("%s+%d: % x, live % x", s.Name, addr.Sub(s.Addr),
			got[i+1-n:i+1], live.Bytes[i+1-n:i+1]))
	}
	total := 0
	for name, n := range count {
		total += n
		t.Logf("%s: %d bytes\n\t%s", name, n, strings.Join(examples[name][:min(12, len(examples[name]))], "\n\t"))
		if n > known[name] {
			t.Errorf("%s: %d bytes differ, %d are known to", name, n, known[name])
		}
	}
	t.Logf("%d of %d bytes differ", total, len(got))
}

// categoryOf names the patch site that a byte lies in, and how far the site
// reaches from there on.
func categoryOf(img *Image, addr x86.Addr) (string, int) {
	for _, k := range siteNames {
		if s, ok := img.SiteAt(k.kind, addr); ok {
			return k.name, int(s.Addr.Add(int64(s.Len)).Sub(addr))
		}
	}
	s, _ := img.SymbolAt(addr)
	if strings.HasPrefix(s.Name, "__SCT__") {
		return "static call trampoline", 1
	}
	return "unexplained", 1
}
