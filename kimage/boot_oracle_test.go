package kimage

import (
	"os"
	"path/filepath"
	"slices"
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

// causes are what only a running machine decides, the whole of what may differ
// between the computed text and a live one.
var causes = []struct {
	name string
	is   func(img *Image, addr x86.Addr) bool
}{
	{"code that runs once (DO_ONCE)", keyNamed("___once_key")},
	{"enough randomness gathered, without RDRAND", keyNamed("crng_is_ready", "not_filled_random_ptr_key")},
	{"the dentry hash's address and size (runtime constants)", inRuntimeConstant},
}

// keyNamed: a jump label whose key's name begins so.
func keyNamed(names ...string) func(*Image, x86.Addr) bool {
	return func(img *Image, addr x86.Addr) bool {
		for _, j := range img.JumpLabels() {
			if !addr.In(j.Addr, j.Addr.Add(int64(j.Len))) {
				continue
			}
			key, _ := img.SymbolAt(j.Key)
			return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(key.Name, n) })
		}
		return false
	}
}

func inRuntimeConstant(img *Image, addr x86.Addr) bool {
	for _, name := range []string{"runtime_ptr_dentry_hashtable", "runtime_shift_d_hash_shift"} {
		at, data := tableOwner{img: img}.table(name, "__start_"+name, "__stop_"+name)
		for off := 0; off+4 <= len(data); off += 4 {
			if c := rel32(at.Add(int64(off)), data[off:]); addr.In(c, c+8) {
				return true
			}
		}
	}
	return false
}

// Rule: the text computed from the file is the text that a real kernel had
// after booting.
func TestBootTextAgainstRealKernels(t *testing.T) {
	eachKernel(t, func(t *testing.T, kernel string, img *Image) {
		compareText(t, img, oracle.LiveText(t, kernel))
	})
}

// Rule: another processor's text differs by what its features and mitigations
// ask for.
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
	compareText(t, img, oracle.Text{Base: testBase, Bytes: live})
}

// compareText prints how many bytes of each category of patch site differ, and
// fails where one has none of the causes.
func compareText(t *testing.T, img *Image, live oracle.Text) {
	t.Helper()
	got := img.bytes(live.Base, len(live.Bytes))
	require.NotNil(t, got)
	sites, differ, why := map[string]int{}, map[string]int{}, map[string]int{}
	total := 0
	for i := range got {
		if got[i] == live.Bytes[i] {
			continue
		}
		total++
		addr := live.Base.Add(int64(i))
		differ[categoryOf(img, addr)]++
		cause := causeOf(img, addr)
		if why[cause]++; cause == "" && why[cause] <= 12 {
			s, _ := img.SymbolAt(addr)
			t.Errorf("%s, %s+%d: % x, live % x", categoryOf(img, addr), s.Name, addr.Sub(s.Addr), got[i:i+1], live.Bytes[i:i+1])
		}
	}
	for _, k := range siteNames {
		for _, s := range img.Sites(k.kind) {
			if s.Addr.In(live.Base, live.Base.Add(int64(len(got)))) {
				sites[k.name] += s.Len
			}
		}
		t.Logf("%-12s %8d bytes in sites, %d differ", k.name, sites[k.name], differ[k.name])
	}
	for cause, n := range why {
		t.Logf("%d bytes: %s", n, cause)
	}
	t.Logf("%d of %d bytes differ", total, len(got))
}

func causeOf(img *Image, addr x86.Addr) string {
	for _, c := range causes {
		if c.is(img, addr) {
			return c.name
		}
	}
	return ""
}

// categoryOf names the kind of patch site that a byte lies in.
func categoryOf(img *Image, addr x86.Addr) string {
	for _, k := range siteNames {
		if _, ok := img.SiteAt(k.kind, addr); ok {
			return k.name
		}
	}
	return "no patch site"
}
