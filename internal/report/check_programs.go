package report

import (
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/systemcall"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
)

// A kernel's configuration decides, before any place, which programs it takes at all.

// programNeeds lists the kernel's features that programs of each way need, in the order in which
// a loader uses them. no is the errno that a kernel without the feature returns.
var programNeeds = map[Via][]struct {
	has func(*profile.Built) bool
	no  errno.Errno
	why string
}{
	ViaPerf: {
		{func(b *profile.Built) bool { return b.BPF }, errno.ENOSYS, "this kernel has no bpf(2) (no CONFIG_BPF_SYSCALL)"},
		{func(b *profile.Built) bool { return b.BPFEvents }, errno.EINVAL, "this kernel attaches no programs to probes (no CONFIG_BPF_EVENTS)"},
	},
	ViaMulti: {
		{func(b *profile.Built) bool { return b.BPF }, errno.ENOSYS, "this kernel has no bpf(2) (no CONFIG_BPF_SYSCALL)"},
		{func(b *profile.Built) bool { return b.BPFEvents }, errno.EINVAL, "this kernel attaches no programs to probes (no CONFIG_BPF_EVENTS)"},
	},
	ViaTracepoint: {
		{func(b *profile.Built) bool { return b.BPF }, errno.ENOSYS, "this kernel has no bpf(2) (no CONFIG_BPF_SYSCALL)"},
		{func(b *profile.Built) bool { return b.BPFEvents }, errno.EINVAL, "this kernel attaches no programs to tracepoints (no CONFIG_BPF_EVENTS)"},
	},
	ViaRaw: {
		{func(b *profile.Built) bool { return b.BPF }, errno.ENOSYS, "this kernel has no bpf(2) (no CONFIG_BPF_SYSCALL)"},
		{func(b *profile.Built) bool { return b.BPFEvents }, errno.EINVAL, "this kernel attaches no programs to tracepoints (no CONFIG_BPF_EVENTS)"},
	},
	ViaTrampoline: {
		{func(b *profile.Built) bool { return b.BPF }, errno.ENOSYS, "this kernel has no bpf(2) (no CONFIG_BPF_SYSCALL)"},
		{func(b *profile.Built) bool { return b.Trampolines }, errno.EINVAL, "this kernel puts no programs at functions (5.5 and later, with CONFIG_BPF_JIT)"},
	},
	ViaIterator: {
		{func(b *profile.Built) bool { return b.BPF }, errno.ENOSYS, "this kernel has no bpf(2) (no CONFIG_BPF_SYSCALL)"},
		{func(b *profile.Built) bool { return b.Iterators }, errno.EINVAL, "this kernel has no iterators (5.8 and later)"},
	},
}

// noPrograms is the refusal of a kernel that takes no programs of the probe's way at all.
func (k *checker) noPrograms(p *Probe) (refused error, ok bool) {
	built := &k.Profile().Built
	for _, need := range programNeeds[p.Via] {
		if !need.has(built) {
			return &probepoint.Refusal{Errno: need.no, Rule: rule.NoPrograms, Why: need.why}, true
		}
	}
	if p.kind == "lsm" && !built.BPFLSM {
		return &probepoint.Refusal{Errno: errno.EINVAL, Rule: rule.NoPrograms, Why: "this kernel takes no programs at security hooks (5.7 and later, with CONFIG_BPF_LSM)"}, true
	}
	return nil, false
}

// listed reports whether a set of the kernel's has a function, and whether the set is known.
func (k *checker) listed(set string, id int) (in, known bool) {
	ids, known := k.Programs().Sets[set]
	return slices.Contains(ids, id), known
}

// mayModify reports whether a program may change what the function at an address returns.
func (k *checker) mayModify(name string, id int, s kimage.Symbol) bool {
	_, listed := k.Programs().Modifiable[id]
	return listed || strings.HasPrefix(name, "security_") || k.injectable(name, s)
}

// maySleep reports whether a program at a function may sleep.
func (k *checker) maySleep(p *Probe, name string, id int, s kimage.Symbol) bool {
	if p.kind == "lsm" {
		in, known := k.listed(kimage.SetHooksAsleep, id)
		return in || !known
	}
	never, _ := k.listed(kimage.SetNeverAsleep, id)
	return k.Programs().Modifiable[id] || !never && k.injectable(name, s)
}

// injectable: errors may be injected into the function, as far as it is known, or the kernel takes
// it for one of these.
func (k *checker) injectable(name string, s kimage.Symbol) bool {
	c := k.Profile()
	if c.BPF.SyscallsListed && !c.Built.ErrorInjection {
		return strings.HasPrefix(name, systemcall.Arch)
	}
	return k.Injectable(s.Addr) || !k.Programs().InjectableKnown
}
