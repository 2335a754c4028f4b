package profile

// Built holds the build options of a kernel that matter for probes and BPF programs. Tracing.Exists
// is true if the kernel has kprobe_events, Uprobes.Exists if it has uprobes.
type Built struct {
	// Kprobes is CONFIG_KPROBES: there is register_kprobe.
	Kprobes bool
	// StubEOPNOTSUPP: without them a module's register_kprobe returns EOPNOTSUPP (5.16 and
	// later), before ENOSYS.
	StubEOPNOTSUPP bool
	// PerfProbes: perf_event_open knows kprobes (CONFIG_PERF_EVENTS with kprobe events,
	// 4.17 and later).
	PerfProbes bool
	// UprobeEvents is CONFIG_UPROBE_EVENTS.
	UprobeEvents bool
	// Ftrace is CONFIG_DYNAMIC_FTRACE with the function tracer.
	Ftrace bool
	// DirectCalls is CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS: a function's ftrace site can call
	// a trampoline (5.5 and later).
	DirectCalls bool
	// ErrorInjection is CONFIG_FUNCTION_ERROR_INJECTION: the list of ALLOW_ERROR_INJECTION is
	// there.
	ErrorInjection bool
	// KCFI is CONFIG_CFI_CLANG (CONFIG_CFI from 6.18 on): Clang's checks of indirect calls.
	KCFI bool
	// BTF: the kernel describes its types (CONFIG_DEBUG_INFO_BTF, 5.2 and later).
	BTF bool
	// BPF is CONFIG_BPF_SYSCALL.
	BPF bool
	// BPFEvents is CONFIG_BPF_EVENTS: programs attach to probes and tracepoints.
	BPFEvents bool
	// Trampolines: programs attach to functions (CONFIG_BPF_JIT, 5.5 and later).
	Trampolines bool
	// KprobeMulti is CONFIG_FPROBE: a program attaches to many functions at once (5.18 and
	// later); KprobeSession, that it runs at their entry and return (6.10 and later).
	KprobeMulti, KprobeSession bool
	// BPFLSM is CONFIG_BPF_LSM: programs attach to security hooks (5.7 and later).
	BPFLSM bool
	// Iterators: programs run for each of a kind of the kernel's objects (5.8 and later).
	Iterators bool
}

// BPF holds a kernel's rules for BPF programs at functions.
type BPF struct {
	// StructArgs: a function may take structures of up to 16 bytes (6.1 and later).
	StructArgs bool
	// UnionArgs: and unions.
	UnionArgs bool
	// SyscallsListed: without CONFIG_FUNCTION_ERROR_INJECTION the functions of system calls count
	// as listed, so that programs may sleep there and change what they return.
	SyscallsListed bool
	// Words is the number of words of arguments that a trampoline passes on: 6, and 12 from 6.6 on.
	Words int
}
