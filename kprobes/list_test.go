package kprobes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// listed is the probes of the transcript kprobes_list on one kernel: where its
// module and vfs_read are, and the order of the lines.
type listed struct {
	module, vfsRead, ft x86.Addr
	endbr               string
	order               []string
}

var measuredLists = map[string]listed{
	"5.10": {module: 0xffffffffc0033000, vfsRead: 0xffffffff812c63f0, ft: 0x1f0,
		order: []string{"ft r", "ft k", "vfs_read r", "call on", "call off", "jmp", "jmp", "nb+4", "tgt r", "tgt k", "jcc", "nb"}},
	"6.1": {module: 0xffffffffc0239000, vfsRead: 0xffffffff8134cc50, ft: 0x1a0,
		order: []string{"call on", "call off", "jmp", "jmp", "ft r", "ft k", "nb+4", "tgt r", "tgt k", "vfs_read r", "jcc", "nb"}},
	"6.12": {module: 0xffffffffc0219000, vfsRead: 0xffffffff81430990, ft: 0x200, endbr: endbr,
		order: []string{"call on", "call off", "jmp", "jmp", "nb+4", "tgt r", "tgt k", "ft r", "ft k", "jcc", "vfs_read r", "nb"}},
}

// TestKprobesList is the transcript kprobes_list of three kernels: the same
// probes at the same addresses, in the order and format of the real file. The
// jump optimization that the real kernels applied is not part of this.
// See docs/spec 8.1.
func TestKprobesList(t *testing.T) {
	for kernel, m := range measuredLists {
		t.Run(kernel, func(t *testing.T) {
			w := newWorld(t, kernel, 2)
			page := &region{start: m.module, b: make([]byte, 0x1000), text: true}
			core := &region{start: m.vfsRead, b: make([]byte, 0x40), text: true}
			w.exec = 0xffffffffc0300000
			w.regions = append(w.regions, page, core)
			put := func(name string, at x86.Addr, owner string, code ...string) x86.Addr {
				copy(w.mem(at, 32), strings.Join(code, ""))
				w.symbols = append(w.symbols, kimage.Symbol{Name: name, Addr: at, Size: 0x20, Type: 't', Module: owner})
				return at
			}
			skip := x86.Addr(len(m.endbr))
			tgt := put("korct_tgt", m.module, "korct", movAX, addAX, ret)
			nb := put("korct_tgt_nb", m.module+0x40, "korct", prefetch, movAX, ret)
			jmp := put("korct_tgt_jmp", m.module+0x80, "korct", "\xeb\x00", movAX, ret)
			call := put("korct_tgt_call", m.module+0x100, "korct", "\xe8\x00\x00\x00\x00", ret)
			jcc := put("korct_tgt_jcc", m.module+0x140, "korct", "\x74\x00", movAX, ret)
			ft := put("korct_ft", m.module+m.ft, "korct", m.endbr, nop5, movAX, ret)
			put("vfs_read", m.vfsRead, "", m.endbr, nop5, ret)
			w.sites = append(w.sites, kimage.Site{Addr: ft + skip, Len: 5}, kimage.Site{Addr: m.vfsRead + skip, Len: 5})

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

			line := func(at x86.Addr, kind, symbol string, off x86.Addr, owner, flags string) string {
				return fmt.Sprintf("%016x  %s  %s+0x%x  %s %s\n", uint64(at), kind, symbol, uint64(off), owner, flags)
			}
			lines := map[string]string{
				"call on":    line(call, "k", "korct_tgt_call", 0, "korct", ""),
				"call off":   line(call, "k", "korct_tgt_call", 0, "korct", "[DISABLED]"),
				"jmp":        line(jmp, "k", "korct_tgt_jmp", 0, "korct", ""),
				"ft r":       line(ft+skip, "r", "korct_ft", skip, "korct", "[DISABLED][FTRACE]"),
				"ft k":       line(ft+skip, "k", "korct_ft", skip, "korct", "[FTRACE]"),
				"nb":         line(nb, "k", "korct_tgt_nb", 0, "korct", ""),
				"nb+4":       line(nb+4, "k", "korct_tgt_nb", 4, "korct", "[DISABLED]"),
				"tgt r":      line(tgt, "r", "korct_tgt", 0, "korct", ""),
				"tgt k":      line(tgt, "k", "korct_tgt", 0, "korct", ""),
				"vfs_read r": line(m.vfsRead+skip, "r", "vfs_read", skip, " ", "[FTRACE]"),
				"jcc":        line(jcc, "k", "korct_tgt_jcc", 0, "korct", ""),
			}
			want := ""
			for _, l := range m.order {
				want += lines[l]
			}
			require.Equal(t, want, w.k.List())
		})
	}
}

// TestKprobesListBefore4_6: until then the hash had another multiplier, and
// the file another order.
// See docs/spec 8.1.
func TestKprobesListBefore4_6(t *testing.T) {
	old, now := newWorld(t, "3.10", 1), newWorld(t, "5.8", 1)
	require.Equal(t, 8, kprobes.BucketOf(now.k, 0xffffffff81000010))
	require.Equal(t, 56, kprobes.BucketOf(old.k, 0xffffffff81000010))
}

// TestKprobesListNewestFirst: in a bucket the newest entry comes first, and an
// aggregator takes the place of the probe it replaces.
// See docs/spec 8.1.
func TestKprobesListNewestFirst(t *testing.T) {
	w := newWorld(t, "5.10", 1) // no flags
	var same []x86.Addr
	for a := textBase; len(same) < 3; a++ {
		if a.Sub(textBase) >= textSize {
			t.Skip("no three functions in one bucket")
		}
		if kprobes.BucketOf(w.k, a) == kprobes.BucketOf(w.k, textBase) {
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
