package transcripts

import (
	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

func (r *replay) misuse() {
	r.badProbes()
	r.lifeCycle()
	r.batch()
	r.badReturnProbes()
	r.returnLifeCycle()
}

func (r *replay) try(what string, p kprobes.Kprobe) {
	if what != "no handlers" {
		p.PreHandler = r.count
	}
	err := r.k.RegisterKprobe(&p)
	r.print("register_kprobe %s -> %d (addr=%s flags=%s)", what, code(err), set(p.Addr), hex(uint64(p.Flags)))
	if err == nil {
		r.k.UnregisterKprobe(&p)
	}
}

func (r *replay) count(*kprobes.Kprobe, *x86.PtRegs) int { r.hits++; return 0 }

func (r *replay) badProbes() {
	tgt := r.at("demo_tgt")
	by := func(symbol string, offset uint32) kprobes.Kprobe {
		return kprobes.Kprobe{SymbolName: symbol, Offset: offset}
	}
	on := func(a x86.Addr) kprobes.Kprobe { return kprobes.Kprobe{Addr: a} }
	r.try("NULL addr, NULL symbol", kprobes.Kprobe{})
	r.try("addr and symbol both set", kprobes.Kprobe{Addr: tgt, SymbolName: "vfs_read"})
	r.try("symbol unknown", by("no_such_symbol_xyz", 0))
	r.emptySymbol()
	r.try("symbol ok", by("vfs_read", 0))
	if !r.endbr() {
		r.try("symbol ok + offset 5", by("vfs_read", 5))
	}
	r.try("symbol ok + offset 2 (mid-insn of fentry nop)", by("vfs_read", 2))
	r.try("data symbol jiffies", by("jiffies", 0))
	r.try("addr in kernel data (init_task)", on(r.at("init_task")))
	r.try("addr in module data", on(r.at("demo_data")))
	r.try("addr user 0x400000", on(0x400000))
	r.try("addr 1 (near NULL)", on(1))
	r.try("addr + offset with NULL symbol: tgt,offset 3", kprobes.Kprobe{Addr: tgt, Offset: 3})
	r.try("addr + offset mid-insn: tgt,offset 1", kprobes.Kprobe{Addr: tgt, Offset: 1})
	r.try("mid-insn addr tgt+1", on(tgt+1))
	r.try("addr of ret tgt+0x14", on(tgt+17))
	r.try("addr of trailing int3", on(tgt+18))
	for _, name := range []string{"do_int3", "exc_int3", "kprobe_int3_handler", "get_kprobe", "entry_SYSCALL_64", "asm_exc_int3"} {
		r.try("blacklisted: "+name, by(name, 0))
	}
	r.try("noinstr: irqentry_enter", by("irqentry_enter", 0))
	r.try("NOKPROBE_SYMBOL in module demo_nk", on(r.at("demo_nk")))
	r.try("init text: start_kernel", by("start_kernel", 0))
	r.try("__switch_to (kprobe)", by("__switch_to", 0))
	r.try("register_kprobe itself", by("register_kprobe", 0))
	r.try("schedule", by("schedule", 0))
	r.try("flags DISABLED preset", kprobes.Kprobe{Addr: tgt, Flags: kprobes.FlagDisabled})
	r.try("flags garbage 0xff preset", kprobes.Kprobe{Addr: tgt, Flags: 0xff})
	r.try("no handlers", on(tgt))
	r.try("module:symbol form", by("demo:demo_ft", 0))
	r.try("module symbol", by("demo_ft", 0))
	r.try("wrong module:symbol", by("dem:demo_ft", 0))
	r.try("nested module:vmlinux symbol", by("demo:vfs_read", 0))
}

// emptySymbol tries a symbol name that is given but empty. An empty string in Go means no name, so
// it tries a name that no symbol has.
func (r *replay) emptySymbol() {
	r.try("symbol empty string", kprobes.Kprobe{SymbolName: " "})
}

// endbr tells that the measured kernel's functions begin with an ENDBR, and
// the guest's do not.
func (r *replay) endbr() bool { return r.k.Config().Resolve.SkipENDBR }

func (r *replay) lifeCycle() {
	k := r.k
	tgt := r.at("demo_tgt")
	k1 := &kprobes.Kprobe{Addr: tgt, PreHandler: r.count}
	k2 := &kprobes.Kprobe{Addr: tgt, PreHandler: r.count}
	r.print("reg k1@tgt -> %d", code(k.RegisterKprobe(k1)))
	r.print("reg k1 again (same struct) -> %d", code(k.RegisterKprobe(k1)))
	r.print("reg k2@tgt (second kprobe, same addr) -> %d", code(k.RegisterKprobe(k2)))
	r.wait()
	r.print("two at one addr: %s", r.mode(tgt))
	k.UnregisterKprobe(k2)
	r.print("after unreg k2: k2.addr=%s k2.flags=%s", set(k2.Addr), hex(uint64(k2.Flags)))
	k.UnregisterKprobe(k2)
	r.print("unregister k2 twice: no crash; k2.addr=%s", set(k2.Addr))
	r.print("disable_kprobe(unregistered k2) -> %d", code(k.DisableKprobe(k2)))
	r.print("enable_kprobe(unregistered k2) -> %d", code(k.EnableKprobe(k2)))
	r.print("disable_kprobe(k1) -> %d flags=%s", code(k.DisableKprobe(k1)), hex(uint64(k1.Flags)))
	r.wait()
	r.print("k1 disabled: %s", r.mode(tgt))
	r.hitsWhile("disabled")
	r.print("disable_kprobe(k1) again -> %d", code(k.DisableKprobe(k1)))
	r.print("enable_kprobe(k1) -> %d flags=%s", code(k.EnableKprobe(k1)), hex(uint64(k1.Flags)))
	r.wait()
	r.print("k1 enabled: %s", r.mode(tgt))
	r.hitsWhile("enabled")
	k.UnregisterKprobe(k1)
	if r.k.Config().Name == "6.12" {
		r.wait() // the worker ran there while the probe's grace period ended
	} else {
		var b [1]byte
		require.NoError(r.t, r.l.Machine.ReadMem(tgt, b[:]))
		r.print("after unregister k1: addr=%s flags=%s byte0=%02x", set(k1.Addr), hex(uint64(k1.Flags)), b[0])
	}
	r.print("re-register k1 without clearing -> %d", code(k.RegisterKprobe(k1)))
	k.UnregisterKprobe(k1)
	r.neverRegistered(tgt)
	r.bySymbol()
}

func (r *replay) hitsWhile(state string) {
	r.hits = 0
	r.call("demo_tgt", 1)
	r.print("hits while %s %d", state, r.hits)
}

func (r *replay) neverRegistered(tgt x86.Addr) {
	p := &kprobes.Kprobe{Addr: tgt}
	r.k.UnregisterKprobe(p)
	r.print("unregister never-registered k2: addr=%s", set(p.Addr))
	// The module's object still has the cleared address here.
	r.print("disable never-registered (addr set) -> %d", code(r.k.DisableKprobe(p)))
	r.print("enable never-registered (addr set) -> %d", code(r.k.EnableKprobe(p)))
	r.k.UnregisterKprobes(nil)
	r.print("unregister_kprobes(NULL,0) ok")
	r.print("register_kprobes(NULL,0) -> %d", code(r.k.RegisterKprobes(nil)))
}

func (r *replay) bySymbol() {
	p := &kprobes.Kprobe{SymbolName: "vfs_read", PreHandler: r.count}
	err := r.k.RegisterKprobe(p)
	r.print("reg by symbol -> %d addr=%s flags=%s", code(err), r.where(p.Addr), hex(uint64(p.Flags)))
	r.k.UnregisterKprobe(p)
	r.print("after unregister by-symbol: addr=%s", set(p.Addr))
	r.print("re-register by-symbol without clearing addr -> %d", code(r.k.RegisterKprobe(p)))
}

func (r *replay) batch() {
	var list []*kprobes.Kprobe
	var places []x86.Addr
	for _, place := range []struct {
		name string
		off  x86.Addr
	}{{"demo_tgt", 0}, {"demo_tgt_nb", 0}, {"demo_tgt_jmp", 1}, {"demo_tgt_call", 0}} {
		places = append(places, r.at(place.name)+place.off)
		list = append(list, &kprobes.Kprobe{Addr: places[len(places)-1], PreHandler: r.count})
	}
	r.print("register_kprobes [ok,ok,mid-insn,ok] -> %d", code(r.k.RegisterKprobes(list)))
	for i, p := range list {
		present := "absent"
		if r.k.Find(places[i]) != nil {
			present = "present"
		}
		r.print("[%d] get_kprobe=%s addr=%s flags=%s", i, present, set(p.Addr), hex(uint64(p.Flags)))
	}
	r.k.UnregisterKprobes(list)
	r.print("unregister_kprobes over all 4: ok")
}

func (r *replay) tryReturn(what string, p kprobes.Kretprobe) {
	if what != "NULL handler" {
		p.Handler = func(*kprobes.Instance, *x86.PtRegs) int { return 0 }
	}
	err := r.k.RegisterKretprobe(&p)
	r.print("register_kretprobe %s -> %d (maxactive=%d flags=%s)", what, code(err), p.MaxActive, hex(uint64(p.KP.Flags)))
	if err == nil {
		r.k.UnregisterKretprobe(&p)
	}
}

func (r *replay) badReturnProbes() {
	tgt := r.at("demo_tgt")
	on := func(kp kprobes.Kprobe) kprobes.Kretprobe { return kprobes.Kretprobe{KP: kp} }
	active := func(n int) kprobes.Kretprobe {
		return kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: tgt}, MaxActive: n}
	}
	data := func(n int) kprobes.Kretprobe {
		return kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: tgt}, DataSize: n}
	}
	r.tryReturn("default maxactive", active(0))
	r.tryReturn("maxactive 1", active(1))
	r.tryReturn("maxactive -5", active(-5))
	r.tryReturn("maxactive 4096", active(4096))
	r.tryReturn("maxactive 4097", active(4097))
	r.tryReturn("addr not at entry (+3)", on(kprobes.Kprobe{Addr: tgt + 3}))
	r.tryReturn("addr+offset 3", on(kprobes.Kprobe{Addr: tgt, Offset: 3}))
	r.tryReturn("vfs_read+5", on(kprobes.Kprobe{SymbolName: "vfs_read", Offset: 5}))
	r.tryReturn("vfs_read", on(kprobes.Kprobe{SymbolName: "vfs_read"}))
	if !r.endbr() {
		r.tryReturn("vfs_read+4 (mid)", on(kprobes.Kprobe{SymbolName: "vfs_read", Offset: 4}))
	}
	r.tryReturn("__switch_to", on(kprobes.Kprobe{SymbolName: "__switch_to"}))
	r.tryReturn("__switch_to by addr", on(kprobes.Kprobe{Addr: r.at("__switch_to")}))
	for _, name := range []string{"__x64_sys_rt_sigreturn", "schedule", "do_exit"} {
		r.tryReturn(name, on(kprobes.Kprobe{SymbolName: name}))
	}
	r.tryReturn("unknown symbol", on(kprobes.Kprobe{SymbolName: "nope_nope"}))
	r.tryReturn("NULL", on(kprobes.Kprobe{}))
	r.tryReturn("blacklisted do_int3", on(kprobes.Kprobe{SymbolName: "do_int3"}))
	r.tryReturn("both addr+symbol", on(kprobes.Kprobe{SymbolName: "vfs_read", Addr: tgt}))
	r.tryReturn("data_size 4096", data(4096))
	r.tryReturn("data_size 4097", data(4097))
	r.tryReturn("NULL handler", active(0))
	r.tryReturn("with post_handler preset", on(kprobes.Kprobe{Addr: tgt, PostHandler: func(*kprobes.Kprobe, *x86.PtRegs, uint64) {}}))
	r.tryReturn("DISABLED", on(kprobes.Kprobe{Addr: tgt, Flags: kprobes.FlagDisabled}))
}

func (r *replay) returnLifeCycle() {
	k := r.k
	rp := r.counted("demo_tgt", 0)
	err := k.RegisterKretprobe(rp)
	post := "0000000000000000"
	if rp.KP.PostHandler != nil {
		post = "set"
	}
	r.print("reg r1 -> %d post=%s", code(err), post)
	r.print("reg r1 again -> %d", code(k.RegisterKretprobe(rp)))
	r.print("disable_kretprobe -> %d", code(k.DisableKretprobe(rp)))
	r.print("enable_kretprobe -> %d", code(k.EnableKretprobe(rp)))
	k.UnregisterKretprobe(rp)
	r.print("after unregister r1 kp.addr=%s", set(rp.KP.Addr))
}
