package kimage

import (
	"bytes"
	"slices"

	"kprobelab/kimage/internal/infer"
	"kprobelab/kimage/internal/patch"
	"kprobelab/x86"
)

// bootKey is a static key that boot turns, and with it the jump labels that test the key.
type bootKey struct {
	// name is the key's symbol, off the key's offset in it in bytes.
	name string
	off  int64
	// on is the state that boot leaves.
	on bool
	// when reports whether boot turns the key on a processor; nil: on every processor.
	when func(*bootPatcher) bool
	// why is the reason in words.
	why string
}

// bootKeys are the keys that boot turns on every machine, or on every machine with such
// a processor: from 5.10 to 7.3, on at most 64 CPUs, without options on the command
// line. A key that an image does not have is skipped.
var bootKeys = []bootKey{
	{"__use_tsc", 0, true, flag("tsc"), "the time-stamp counter is the scheduler's clock"},
	{"__sched_clock_stable", 0, true, stableClock, "that counter runs at one rate"},
	{"sched_clock_running", 0, true, nil, "the scheduler's clock runs"},
	{"cr_pinning", 0, true, nil, "bits of CR0 and CR4 are pinned once the CPUs are identified"},
	{"deferred_pages", 0, false, nil, "every page is initialised"},
	{"apic_use_ipi_shorthand", 0, true, noFlag(oneProcessor), "every CPU is up, so interrupts to all of them need no list"},
	{"timers_migration_enabled", 0, true, nil, "timers leave idle CPUs"},
	{"timers_nohz_active", 0, true, nil, "idle CPUs stop their tick"},
	{"crct10dif_fallback", 0, false, nil, "a checksum's driver is registered"},
	{"crc64_rocksoft_fallback", 0, false, nil, "a checksum's driver is registered"},
	{"crypto_boot_test_finished", 0, true, nil, "the algorithms' self-tests are done"},
	{"__crypto_boot_test_finished", 0, true, nil, "the algorithms' self-tests are done"},
	{"crng_is_ready", 0, true, trustsRandom, "the processor's random numbers are trusted at boot"},
	{"not_filled_random_ptr_key", 0, false, trustsRandom, "the processor's random numbers are trusted at boot"},
	{"virt_spin_lock_key", 0, true, flag("hypervisor"), "a virtual machine's spin locks do not queue"},
	{"virt_spin_lock_key", 0, false, noFlag("hypervisor"), "a real machine's spin locks queue"},
	{"mds_user_clear", 0, true, leaks, "buffers are cleared on the way to user mode (to 6.7; later by an alternative)"},
	{"mds_idle_clear", 0, true, bug("mmio_stale_data"), "an idle CPU clears its buffers"},
	{"cpu_buf_idle_clear", 0, true, bug("mmio_stale_data"), "an idle CPU clears its buffers"},
	{"frontswap_enabled_key", 0, true, symbol("zswap_frontswap_ops"), "zswap is there, used or not (to 6.5)"},
	{"sk_dynamic_preempt_lazy", 0, true, preemptsLazily, "the scheduler waits for a task to leave the kernel by itself"},
	{"sk_dynamic_preempt_promote", 0, true, preemptsLazily, "the tick makes a task leave that does not by itself"},
	{"tmigr_exclude_isolated", 0, true, nil, "from 6.19 on idle CPUs' timers know of isolated CPUs"},
	{"hrtimer_highres_enabled_key", 0, true, nil, "the timers have their high resolution (from 7.3 on)"},
	{"clocksource_read_inlined", 0, true, flag("tsc"), "the clock is the time-stamp counter, read inline (from 7.1 on)"},
	{"ipi_mask_inlined", 0, true, nil, "a set of at most 64 CPUs fits in a word (from 7.3 on)"},
	{"check_pages_enabled", 0, true, zeroesPages, "pages are checked where their hardening is on"},
	{"nf_hooks_needed", netfilterKey(2), true, securityMarks, "a security module looks at IPv4 packets that leave"},
	{"nf_hooks_needed", netfilterKey(10), true, securityMarks, "a security module looks at IPv6 packets that leave"},
}

// netfilterKey is the offset of the key of a protocol's POST_ROUTING hook: 5
// keys of 16 bytes a protocol, that one the last.
func netfilterKey(protocol int64) int64 { return 16 * (protocol*5 + 4) }

func flag(names ...string) func(*bootPatcher) bool {
	return func(p *bootPatcher) bool { return p.cpu.Has(names...) }
}

func noFlag(name string) func(*bootPatcher) bool {
	return func(p *bootPatcher) bool { return !p.cpu.Flags[name] }
}

func bug(name string) func(*bootPatcher) bool {
	return func(p *bootPatcher) bool { return p.cpu.Bugs[name] }
}

// trustsRandom: the kernel takes the processor's random numbers for random (from 4.19 on), unless it
// is built without that (RANDOM_TRUST_CPU).
func trustsRandom(p *bootPatcher) bool {
	if !p.cpu.Flags["rdrand"] {
		return false
	}
	at, ok := p.img.symbolAddr("trust_cpu")
	trust := p.img.bytes(at, 1)
	return !ok || trust == nil || trust[0] != 0
}

// leaks: the processor leaks what its buffers hold, and the kernel clears them.
func leaks(p *bootPatcher) bool { return p.feats.leaks }

func symbol(name string) func(*bootPatcher) bool {
	return func(p *bootPatcher) bool {
		_, ok := p.img.symbolAddr(name)
		return ok
	}
}

func preemptsLazily(p *bootPatcher) bool {
	return infer.PreemptModel(inside{p.img}, &p.img.facts) == infer.PreemptLazy
}

// stableClock: to 6.1 only a counter of constant rate is trusted; later any
// counter is, until it is seen to drift.
func stableClock(p *bootPatcher) bool {
	b := p.img.banner()
	return p.cpu.Flags["constant_tsc"] || b.Since(6, 7)
}

// zeroesPages: the configuration makes init_on_alloc the default, so its key is
// on from the start.
func zeroesPages(p *bootPatcher) bool { return p.keyOn("init_on_alloc") }

// securityMarks: the security module that boot chooses looks at packets.
func securityMarks(p *bootPatcher) bool {
	return slices.ContainsFunc(p.initialised(), func(m securityModule) bool {
		_, ops := p.img.symbolAddr(m.name + "_nf_ops")
		_, register := p.img.symbolAddr(m.name + "_nf_register") // where data has no symbols
		return ops || register
	})
}

// keyOn is the state of a key as the image has it.
func (p *bootPatcher) keyOn(name string) bool {
	for _, key := range p.img.staticKeys(name) {
		count := p.img.bytes(key, 4)
		return count != nil && le.Uint32(count) != 0
	}
	return false
}

// turnKeys turns the keys that boot turns, and writes every jump label for its key's state.
func (p *bootPatcher) turnKeys() {
	turned := map[x86.Addr]bool{}
	for _, k := range slices.Concat(bootKeys, cryptoKeys) {
		if k.when != nil && !k.when(p) {
			continue
		}
		for _, key := range p.img.staticKeys(k.name) {
			turned[key.Add(k.off)] = k.on
		}
	}
	p.securityCalls(turned)
	for key, on := range turned {
		p.setKey(key, on)
	}
	for _, j := range p.img.tables.jumpLabels {
		if on, ok := turned[j.Key]; ok {
			p.jumpLabel(j, on)
		}
	}
}

// setKey counts one user of the key, or none, where its data is in the image.
func (p *bootPatcher) setKey(key x86.Addr, on bool) {
	count := p.img.bytes(key, 4)
	if count == nil {
		return
	}
	var users uint32
	if on {
		users = 1
	}
	le.PutUint32(count, users)
}

// jumpLabel writes the branch for the key's state: a nop if either both hold, the
// following code is the likely one and the key is on, or neither.
func (p *bootPatcher) jumpLabel(j JumpLabel, on bool) {
	text := p.img.bytes(j.Addr, j.Len)
	switch {
	case text == nil:
	case on == j.Branch:
		copy(text, p.labelNop(j.Len))
	case j.Len == shortJumpSize:
		text[0], text[1] = 0xeb, byte(j.Target.Sub(j.Addr+shortJumpSize))
	default:
		text[0] = 0xe9
		le.PutUint32(text[1:], uint32(j.Target.Sub(j.Addr+5)))
	}
}

func (p *bootPatcher) labelNop(n int) []byte {
	if n == shortJumpSize {
		return p.forms.Nops.Forms[n]
	}
	return p.forms.Nops.Atomic5
}

// jumpLabels writes the processor's nop where the compiler left the default
// one. The branches themselves already stand as their keys begin.
func (p *bootPatcher) jumpLabels(o tableOwner) {
	for _, s := range p.img.sitesOf(SiteJumpLabel, o) {
		if text := p.img.bytes(s.Addr, s.Len); bytes.Equal(text, patch.Nopl[5]) {
			copy(text, p.forms.Nops.Atomic5)
		}
	}
}
