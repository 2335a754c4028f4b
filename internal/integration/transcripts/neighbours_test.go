package transcripts

import (
	"bytes"
	"fmt"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// tgtSize is the length of demo_tgt, whose instructions are at +0 +3 +7 +0xa
// +0xe +0x11.
const tgtSize = 18

// dump prints the bytes of demo_tgt from an offset on, and who is there.
func (r *replay) dump(what string, off int) {
	var b [tgtSize]byte
	tgt := r.at("demo_tgt")
	require.NoError(r.t, r.l.Machine.ReadMem(tgt, b[:]))
	text := fmt.Sprintf("% x", b[off:])
	if i := bytes.IndexByte(b[off:], 0xe9); i >= 0 {
		i += off
		text = fmt.Sprintf("% x REL32 % x", b[off:i+1], b[i+5:])
	}
	r.print("%s bytes %s [%s]", what, text, r.mode(tgt.Add(int64(off))))
}

// neighbours plants probes inside the region that another probe's jump takes.
func (r *replay) neighbours() {
	tgt := r.at("demo_tgt")
	add := func(off x86.Addr, change func(*kprobes.Kprobe)) (*kprobes.Kprobe, error) {
		p := &kprobes.Kprobe{Addr: tgt + off, PreHandler: r.count}
		if change != nil {
			change(p)
		}
		err := r.k.RegisterKprobe(p)
		r.wait()
		return p, err
	}
	drop := func(ps ...*kprobes.Kprobe) {
		for _, p := range ps {
			r.k.UnregisterKprobe(p)
		}
		r.wait()
	}
	withPost := func(p *kprobes.Kprobe) { p.PostHandler = r.countPost }
	disabled := func(p *kprobes.Kprobe) { p.Flags = kprobes.FlagDisabled }

	r.dump("clean", 0)
	a, err := add(0, nil)
	r.print("reg +0 -> %d", code(err))
	r.dump("after +0", 0)
	b, err := add(3, nil)
	r.print("reg +3 (inside the jump) -> %d", code(err))
	r.dump("both +0", 0)
	r.dump("both +3", 3)
	drop(b)
	r.dump("after unreg +3", 0)
	b, err = add(7, nil)
	r.print("reg +7 (just past copied 7 bytes) -> %d", code(err))
	r.dump("+0", 0)
	r.dump("+7", 7)
	drop(b)
	for _, c := range []struct {
		off  x86.Addr
		what string
	}{{1, "+1 (mid insn, inside jump)"}, {4, "+4 (mid insn)"}, {5, "+5 (mid insn)"}} {
		_, err = add(c.off, nil)
		r.print("reg %s -> %d", c.what, code(err))
	}
	b, err = add(0, func(p *kprobes.Kprobe) { p.PreHandler = nil; withPost(p) })
	r.print("reg post_handler at same addr +0 -> %d", code(err))
	r.dump("+0", 0)
	r.hits, r.posts = 0, 0
	r.call("demo_tgt", 1)
	r.print("hits=%d posthits=%d", r.hits, r.posts)
	drop(b)
	r.dump("after unreg post", 0)

	b, err = add(3, withPost)
	r.print("reg +3 with post_handler -> %d", code(err))
	r.dump("+0", 0)
	require.NoError(r.t, r.k.DisableKprobe(b))
	r.wait()
	r.print("disable +3: (does +0 re-optimize?)")
	r.dump("+0", 0)
	require.NoError(r.t, r.k.EnableKprobe(b))
	r.wait()
	r.print("enable +3:")
	r.dump("+0", 0)
	drop(b)
	r.dump("after unreg +3", 0)
	drop(a)
	r.dump("clean again", 0)
	r.disabledNeighbours(add, drop, disabled)
}

// disabledNeighbours registers a disabled probe, inside the region and at the same address.
func (r *replay) disabledNeighbours(add func(x86.Addr, func(*kprobes.Kprobe)) (*kprobes.Kprobe, error), drop func(...*kprobes.Kprobe), disabled func(*kprobes.Kprobe)) {
	b, err := add(3, disabled)
	r.print("reg +3 DISABLED first -> %d flags=%s", code(err), hex(uint64(b.Flags)))
	r.dump("+3", 3)
	a, err := add(0, nil)
	r.print("then reg +0 -> %d", code(err))
	r.dump("+0", 0)
	err = r.k.EnableKprobe(b)
	r.wait()
	r.print("enable +3 -> %d", code(err))
	r.dump("+0", 0)
	drop(b, a)

	a, err = add(0, nil)
	require.NoError(r.t, err)
	b, err = add(0, disabled)
	r.print("two at +0, second DISABLED -> %d b.flags=%s", code(err), hex(uint64(b.Flags)))
	r.dump("+0", 0)
	r.hits = 0
	r.call("demo_tgt", 1)
	r.print("hits=%d", r.hits)
	require.NoError(r.t, r.k.DisableKprobe(a))
	r.wait()
	r.print("disable a (all disabled)")
	r.dump("+0", 0)
	drop(b, a)
	r.dump("clean", 0)
}
