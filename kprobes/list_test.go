package kprobes_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// TestRule8_1List is the transcript kprobes_list: the same probes at the same
// addresses, in the order and format of the real file. The jump optimization
// that the real kernel applied is not part of this.
func TestRule8_1List(t *testing.T) {
	w := newWorld(t, "6.1", 2)
	// The demo module of the transcript, at its address there.
	const module x86.Addr = 0xffffffffc0239000
	vfsRead := x86.Addr(0xffffffff8134cc50)
	page := &region{start: module, b: make([]byte, 0x1000), text: true}
	core := &region{start: vfsRead, b: make([]byte, 0x40), text: true}
	w.exec = 0xffffffffc0300000
	w.regions = append(w.regions, page, core)
	put := func(name string, at x86.Addr, owner string, code ...string) x86.Addr {
		copy(w.mem(at, 32), strings.Join(code, ""))
		w.symbols = append(w.symbols, kimage.Symbol{Name: name, Addr: at, Size: 0x20, Type: 't', Module: owner})
		return at
	}
	tgt := put("korct_tgt", module, "korct", movAX, addAX, ret)
	nb := put("korct_tgt_nb", module+0x40, "korct", prefetch, movAX, ret)
	jmp := put("korct_tgt_jmp", module+0x80, "korct", "\xeb\x00", movAX, ret)
	call := put("korct_tgt_call", module+0x100, "korct", "\xe8\x00\x00\x00\x00", ret)
	jcc := put("korct_tgt_jcc", module+0x140, "korct", "\x74\x00", movAX, ret)
	ft := put("korct_ft", module+0x1a0, "korct", nop5, movAX, ret)
	put("vfs_read", vfsRead, "", nop5, ret)
	w.sites = append(w.sites, kimage.Site{Addr: ft, Len: 5}, kimage.Site{Addr: vfsRead, Len: 5})

	disabled := func(p *kprobes.Kprobe) *kprobes.Kprobe { p.Flags = kprobes.FlagDisabled; return p }
	for _, p := range []*kprobes.Kprobe{
		at(tgt), at(nb), disabled(at(nb + 4)), at(ft), at(jmp), at(jmp), disabled(at(call)), at(call),
		{Addr: jcc, PreHandler: pre0, PostHandler: post0},
	} {
		w.register(t, p)
	}
	w.registerRet(t, &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: tgt}, Handler: ret0})
	w.registerRet(t, &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: ft, Flags: kprobes.FlagDisabled}, Handler: ret0})
	w.registerRet(t, &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: "vfs_read"}, Handler: ret0})

	require.Equal(t, strings.Join([]string{
		"ffffffffc0239100  k  korct_tgt_call+0x0  korct ",
		"ffffffffc0239100  k  korct_tgt_call+0x0  korct [DISABLED]",
		"ffffffffc0239080  k  korct_tgt_jmp+0x0  korct ",
		"ffffffffc0239080  k  korct_tgt_jmp+0x0  korct ",
		"ffffffffc02391a0  r  korct_ft+0x0  korct [DISABLED][FTRACE]",
		"ffffffffc02391a0  k  korct_ft+0x0  korct [FTRACE]",
		"ffffffffc0239044  k  korct_tgt_nb+0x4  korct [DISABLED]",
		"ffffffffc0239000  r  korct_tgt+0x0  korct ",
		"ffffffffc0239000  k  korct_tgt+0x0  korct ",
		"ffffffff8134cc50  r  vfs_read+0x0    [FTRACE]",
		"ffffffffc0239140  k  korct_tgt_jcc+0x0  korct ",
		"ffffffffc0239040  k  korct_tgt_nb+0x0  korct ",
		"",
	}, "\n"), w.k.List())
}

// TestRule8_1ListNewestFirst: in a bucket the newest entry comes first, and an
// aggregator takes the place of the probe it replaces.
func TestRule8_1ListNewestFirst(t *testing.T) {
	w := newWorld(t, "5.10", 1) // no flags
	var same []x86.Addr
	for a := textBase; len(same) < 3; a++ {
		if a.Sub(textBase) >= textSize {
			t.Skip("no three functions in one bucket")
		}
		if kprobes.BucketOf(a) == kprobes.BucketOf(textBase) {
			same = append(same, a)
		}
	}
	for i, a := range same {
		if i > 0 {
			copy(w.mem(a, 1), nop)
			w.symbols = append([]kimage.Symbol{{Name: "f", Addr: a, Size: 1, Type: 't'}}, w.symbols...)
		}
		w.register(t, at(a))
	}
	clean := make([]byte, len(w.clean))
	w.k.View().CodeAt(textBase, clean)
	w.clean = string(clean)
	lines := func() (addrs []string) {
		for _, l := range strings.Split(strings.TrimSpace(w.k.List()), "\n") {
			addrs = append(addrs, strings.Fields(l)[0])
		}
		return addrs
	}
	hex := func(a x86.Addr) string { return strings.TrimPrefix(a.String(), "0x") }
	require.Equal(t, []string{hex(same[2]), hex(same[1]), hex(same[0])}, lines())
	w.register(t, at(same[1]))
	require.Equal(t, []string{hex(same[2]), hex(same[1]), hex(same[1]), hex(same[0])}, lines())
}
