package rule

import "kprobelab/errno"

// row holds the texts of a rule and its error number.
type row struct {
	name string
	kind Kind
	// errno is 0 if a lower layer decides, or if the kernel does not try.
	errno errno.Errno
	// why is the rule in words, for any place. The text of a registration rule continues "probe
	// NAME: ", that of a slot rule "the instruction cannot be put out of line: ".
	why string
	// here, for optimization, is the rule of one place: {at} is the place, {insn} the instruction
	// there and {target} its destination.
	here string
	// field names the field of profile.Config without which a release has no such rule. It is
	// set for rules that ended; the table of releases has the date.
	field string
	// source is the kernel's file and function, as in 6.1, and the section of the documentation if
	// there is one.
	source string
}

// The places in the kernel and its documentation where several rules stand.
const (
	srcSlot     = "arch/x86/kernel/kprobes/core.c, arch_copy_kprobe"
	srcConfig   = "arch/x86/Kconfig, HAVE_OPTPROBES; kernel/kprobes.c"
	srcTry      = "kernel/kprobes.c, try_to_optimize_kprobe"
	srcCan      = "arch/x86/kernel/kprobes/opt.c, can_optimize; kprobes.rst, Safety Check"
	srcIndirect = "arch/x86/kernel/kprobes/opt.c, insn_is_indirect_jump; kprobes.rst, Safety Check"
	srcInto     = "arch/x86/kernel/kprobes/opt.c, insn_jump_into_range; kprobes.rst, Safety Check"
	srcPrepare  = "arch/x86/kernel/kprobes/opt.c, arch_prepare_optimized_kprobe"
	srcCopy     = "arch/x86/kernel/kprobes/core.c, __copy_instruction"
	srcBoost    = "arch/x86/kernel/kprobes/core.c, can_boost; kprobes.rst, Safety Check"
	srcReserved = "arch/x86/kernel/kprobes/opt.c, copy_optimized_instructions"
	srcEvents   = "kernel/trace/trace_kprobe.c"
	srcAttach   = "kernel/bpf/syscall.c, kernel/bpf/trampoline.c"
)

var rows = [numRules]row{
	None: {why: "no rule refuses"},

	NoKprobes: {
		name: "NO_KPROBES", kind: Registration, errno: errno.EOPNOTSUPP,
		why:    "this kernel is built without kprobes (no CONFIG_KPROBES)",
		source: "include/linux/kprobes.h, register_kprobe without CONFIG_KPROBES",
	},
	SymbolNames: {
		name: "NO_SYMBOL_NAMES", kind: Registration, errno: errno.EINVAL,
		why:    "this kernel takes an address, not a symbol name",
		source: "include/linux/kprobes.h, struct kprobe (2.6.18)",
	},
	TwoPlaces: {
		name: "ADDR_AND_SYMBOL", kind: Registration, errno: errno.EINVAL,
		why:    "both a symbol and an address are given",
		source: "kernel/kprobes.c, _kprobe_addr",
	},
	NoPlace: {
		name: "NO_PLACE", kind: Registration, errno: errno.EINVAL,
		why:    "neither a symbol nor an address is given",
		source: "kernel/kprobes.c, _kprobe_addr",
	},
	UnknownSymbol: {
		name: "UNKNOWN_SYMBOL", kind: Registration, errno: errno.ENOENT,
		why:    "no such symbol",
		source: "kernel/kprobes.c, _kprobe_addr",
	},
	NoSymbol: {
		name: "NO_SYMBOL", kind: Registration, errno: errno.ENOENT,
		why:    "no symbol covers the address",
		source: "kernel/kprobes.c, _kprobe_addr",
	},
	Unreadable: {
		name: "UNREADABLE", kind: Registration, errno: errno.EINVAL,
		why:    "the function's first bytes cannot be read",
		source: "arch/x86/kernel/kprobes/core.c, arch_adjust_kprobe_addr",
	},
	NotEntry: {
		name: "NOT_ENTRY", kind: Registration, errno: errno.EINVAL,
		why:    "a return probe has to be at a function's entry",
		source: "kernel/kprobes.c, register_kretprobe, kprobe_on_func_entry",
	},
	KretBlacklist: {
		name: "KRETPROBE_BLACKLISTED", kind: Registration, errno: errno.EINVAL,
		why:    "return probes are not allowed on this function",
		source: "kernel/kprobes.c, register_kretprobe; arch/x86/kernel/kprobes/core.c, kretprobe_blacklist",
	},
	DataSize: {
		name: "DATA_SIZE", kind: Registration, errno: errno.E2BIG,
		why:    "the data of an instance is larger than the kernel allows",
		source: "kernel/kprobes.c, register_kretprobe",
	},
	NoJprobes: {
		name: "NO_JPROBES", kind: Registration, errno: errno.ENOSYS,
		why:    "this kernel has no jprobes: they were deprecated, stubbed in 4.15 and removed in 4.19; a kprobe's handler reads arguments from the registers",
		source: "include/linux/kprobes.h, register_jprobe (4.15 to 4.18)",
	},
	JprobeEntry: {
		name: "JPROBE_ENTRY", kind: Registration, errno: errno.EINVAL,
		why:    "a jprobe's handler has to be the entry of a function of the guest",
		source: "kernel/kprobes.c, register_jprobes (to 4.14)",
	},
	Reregistered: {
		name: "REREGISTERED", kind: Registration, errno: errno.EINVAL,
		why:    "this probe is already registered",
		source: "kernel/kprobes.c, warn_kprobe_rereg",
	},
	FtraceSite: {
		name: "FTRACE_SITE", kind: Registration, errno: errno.EINVAL,
		why:    "an ftrace site, and the kernel is built without KPROBES_ON_FTRACE",
		source: "kernel/kprobes.c, check_ftrace_location",
	},
	InsideFtrace: {
		name: "INSIDE_FTRACE_SITE", kind: Registration, errno: errno.EILSEQ,
		why:    "in the middle of an ftrace site",
		source: "kernel/kprobes.c, arch_check_ftrace_location (to 5.17)",
	},
	NotText: {
		name: "NOT_TEXT", kind: Registration, errno: errno.EINVAL,
		why:    "not in kernel text",
		source: "kernel/kprobes.c, check_kprobe_address_safe",
	},
	GateArea: {
		name: "GATE_AREA", kind: Registration, errno: errno.EINVAL,
		why:    "in the vsyscall page",
		source: "kernel/kprobes.c, check_kprobe_address_safe",
	},
	Blacklisted: {
		name: "BLACKLISTED", kind: Registration, errno: errno.EINVAL,
		why:    "blacklisted: kprobes itself may run this code",
		source: "kernel/kprobes.c, within_kprobe_blacklist",
	},
	JumpLabel: {
		name: "JUMP_LABEL", kind: Registration, errno: errno.EINVAL,
		why:    "in a jump label, which the kernel rewrites",
		source: "kernel/kprobes.c, check_kprobe_address_safe; kernel/jump_label.c, jump_label_text_reserved",
	},
	StaticCall: {
		name: "STATIC_CALL", kind: Registration, errno: errno.EINVAL,
		why:    "in a static call, which the kernel rewrites",
		source: "kernel/kprobes.c, check_kprobe_address_safe; kernel/static_call_inline.c, static_call_text_reserved",
	},
	BugTable: {
		name: "BUG_TABLE", kind: Registration, errno: errno.EINVAL,
		why:    "the ud2 of a BUG or WARN",
		source: "kernel/kprobes.c, check_kprobe_address_safe; lib/bug.c, find_bug",
	},
	CFISymbol: {
		name: "CFI_SYMBOL", kind: Registration, errno: errno.EINVAL,
		why:    "in a function's preamble, which is never executed",
		source: "kernel/kprobes.c, is_cfi_preamble_symbol",
	},
	ModuleGoing: {
		name: "MODULE_GOING", kind: Registration, errno: errno.ENOENT,
		why:    "in a module that is being unloaded",
		source: "kernel/kprobes.c, check_kprobe_address_safe, try_module_get",
	},
	ModuleInit: {
		name: "MODULE_INIT", kind: Registration, errno: errno.ENOENT,
		why:    "in a module's init section, which is freed",
		source: "kernel/kprobes.c, check_kprobe_address_safe, within_module_init",
	},
	SMPLock: {
		name: "SMP_LOCK", kind: Registration, errno: errno.EINVAL,
		why:    "a lock prefix that the kernel may patch",
		source: "arch/x86/kernel/kprobes/core.c, arch_prepare_kprobe; arch/x86/kernel/alternative.c, alternatives_text_reserved",
	},
	NotBoundary: {
		name: "NOT_BOUNDARY", kind: Registration, errno: errno.EILSEQ,
		why:    "not at an instruction boundary",
		source: "arch/x86/kernel/kprobes/core.c, can_probe",
	},
	ExceptionInsn: {
		name: "EXCEPTION_INSN", kind: Registration, errno: errno.EILSEQ,
		why:    "the instruction raises an exception by itself",
		source: "arch/x86/kernel/kprobes/core.c, can_probe, is_exception_insn",
	},
	CFICheck: {
		name: "CFI_CHECK", kind: Registration, errno: errno.EILSEQ,
		why:    "in Clang's check of an indirect call, which the kernel reads to tell the expected type",
		source: "arch/x86/kernel/kprobes/core.c, can_probe; kernel/cfi.c, is_cfi_trap",
	},
	Slot: {
		name: "SLOT", kind: Registration, errno: errno.EINVAL,
		why:    "the instruction cannot be executed out of line",
		source: "arch/x86/kernel/kprobes/core.c, arch_copy_kprobe",
	},
	SecondJprobe: {
		name: "SECOND_JPROBE", kind: Registration, errno: errno.EEXIST,
		why:    "there is a jprobe at this address, and there can be one only",
		source: "kernel/kprobes.c, add_new_kprobe (to 4.14)",
	},
	NoMemory: {
		name: "NO_MEMORY", kind: Registration, errno: errno.ENOMEM,
		why:    "out of memory",
		source: "arch/x86/kernel/kprobes/core.c, arch_prepare_kprobe; kernel/kprobes.c, __get_insn_slot",
	},
	Arm: {
		name: "ARM", kind: Registration,
		why:    "the breakpoint cannot be written",
		source: "kernel/kprobes.c, arm_kprobe",
	},
	Batch: {
		name: "EMPTY_BATCH", kind: Registration, errno: errno.EINVAL,
		why:    "the list of probes is empty",
		source: "kernel/kprobes.c, register_kprobes, register_kretprobes",
	},
	NotRegistered: {
		name: "NOT_REGISTERED", kind: Registration, errno: errno.EINVAL,
		why:    "the probe is not registered",
		source: "kernel/kprobes.c, __get_valid_kprobe",
	},
	NoModule: {
		name: "NO_MODULE", kind: Registration, errno: errno.ENOENT,
		why:    "no such module",
		source: "kernel/module/main.c, find_module",
	},
	ModuleLoaded: {
		name: "MODULE_STATE", kind: Registration, errno: errno.EEXIST,
		why:    "the module is loaded already, or is not being loaded",
		source: "kernel/module/main.c, load_module",
	},
	ModulePinned: {
		name: "MODULE_PINNED", kind: Registration, errno: errno.EAGAIN,
		why:    "a probe in the module keeps it from being unloaded",
		source: "kernel/module.c, sys_delete_module (2.6.18)",
	},
	Gone: {
		name: "GONE", kind: Registration, errno: errno.EINVAL,
		why:    "the probed module has gone",
		source: "kernel/kprobes.c, enable_kprobe",
	},

	SlotUnreadable:      {name: "UNREADABLE", kind: OutOfLine, errno: errno.EINVAL, why: "its bytes cannot be read", source: srcSlot},
	SlotUndecodable:     {name: "UNDECODABLE", kind: OutOfLine, errno: errno.EINVAL, why: "the kernel's decoder does not know it", source: srcSlot},
	SlotEmulatePrefix:   {name: "EMULATE_PREFIX", kind: OutOfLine, errno: errno.EINVAL, why: "it has a forced-emulation prefix", source: srcSlot},
	SlotInt3:            {name: "INT3", kind: OutOfLine, errno: errno.EINVAL, why: "it is an int3", source: srcSlot},
	SlotMasksExceptions: {name: "MASKS_EXCEPTIONS", kind: OutOfLine, errno: errno.EINVAL, why: "it masks exceptions (pop ss, mov ss)", source: srcSlot},
	SlotDisplacement:    {name: "DISPLACEMENT", kind: OutOfLine, errno: errno.EINVAL, why: "its new displacement does not fit into s32", source: srcSlot},
	FarBranch:           {name: "FAR_BRANCH", kind: OutOfLine, errno: errno.EOPNOTSUPP, why: "it is a far branch or iret", source: srcSlot},
	BranchMemory:        {name: "BRANCH_THROUGH_MEMORY", kind: OutOfLine, errno: errno.EOPNOTSUPP, why: "it branches through memory", source: srcSlot},
	VMCall:              {name: "VMCALL", kind: OutOfLine, errno: errno.EOPNOTSUPP, why: "it is a vmcall or of its group", source: srcSlot},
	TooLong:             {name: "TOO_LONG", kind: OutOfLine, errno: errno.ENOSPC, why: "no room for an int3 after 15 bytes", source: srcSlot},

	NoOptprobes: {
		name: "NO_OPTPROBES", kind: Optimization, source: srcConfig,
		why:  "the kernel optimizes no probes (no OPTPROBES, or PREEMPTION before 4.15)",
		here: "this kernel optimizes no probes",
	},
	FtraceBased: {
		name: "FTRACE_BASED", kind: Optimization, source: srcTry,
		why:  "the probe is on an ftrace site: the function tracer calls it, and there is no int3 to replace",
		here: "{at} is an ftrace site: the function tracer calls the probe, and there is nothing to optimize",
	},
	OptNoSymbol: {
		name: "NO_SYMBOL", kind: Optimization, errno: errno.EILSEQ, source: srcCan,
		why:  "no symbol covers the address, so its function is not known",
		here: "no symbol covers {at}, so the function around it is not known",
	},
	EntryText: {
		name: "ENTRY_TEXT", kind: Optimization, errno: errno.EILSEQ, source: srcCan,
		why:  "the address lies in entry text, where stack and registers are not set up yet",
		here: "{at} lies in entry text, where stack and registers are not set up yet",
	},
	TooShort: {
		name: "TOO_SHORT", kind: Optimization, errno: errno.EILSEQ, source: srcCan,
		why:  "fewer than the 5 bytes that the jump needs are left of the function",
		here: "from {at} on, the function has fewer than the 5 bytes that the jump needs",
	},
	ExceptionEntry: {
		name: "EXCEPTION_ENTRY", kind: Optimization, errno: errno.EILSEQ, source: srcCan,
		why:  "an instruction of the function is in the exception table: a fixup may jump into the region",
		here: "{at}: {insn} is in the exception table, and a fixup may jump anywhere into the function",
	},
	OptUnreadable: {
		name: "UNREADABLE", kind: Optimization, errno: errno.EILSEQ, source: srcCan,
		why:  "code of the function cannot be read",
		here: "the code of the function cannot be read from {at} on",
	},
	OptUndecodable: {
		name: "UNDECODABLE", kind: Optimization, errno: errno.EILSEQ, source: srcCan,
		why:  "the kernel's decoder does not know an instruction of the function",
		here: "{at}: the kernel's decoder does not know {insn}, so what follows is not known to be free of jumps",
	},
	Int3InFunction: {
		name: "INT3_IN_FUNCTION", kind: Optimization, errno: errno.EILSEQ, source: srcCan,
		why: "there is an int3 in the function, maybe another debugger's", field: "Optimize.Int3Blocks",
		here: "{at} is an int3, which may be another debugger's",
	},
	IndirectJump: {
		name: "INDIRECT_JUMP", kind: Optimization, errno: errno.EILSEQ, source: srcIndirect,
		why: "there is an indirect jump in the function (FF /4, FF /5, EA): it may lead into the region", field: "Optimize.IndirectJumps",
		here: "{at}: {insn} may jump anywhere into the function",
	},
	ThunkJump: {
		name: "THUNK_JUMP", kind: Optimization, errno: errno.EILSEQ, source: srcIndirect,
		why: "a jump of the function leads into the retpoline thunks, so it counts as an indirect one", field: "Optimize.ThunkRange",
		here: "{at}: {insn} leads to {target}, in the retpoline thunks, and counts as an indirect jump",
	},
	JTPRTarget: {
		name: "JTPR_TARGET", kind: Optimization, errno: errno.EILSEQ, source: srcInto,
		why:  "a jump of the function leads into the 5 bytes that the jump replaces, past the first of them",
		here: "{at}: {insn} leads to {target}, past the first of the 5 bytes that the jump replaces",
	},
	Distance: {
		name: "DISTANCE", kind: Optimization, errno: errno.ERANGE, source: srcPrepare,
		why:  "the detour buffer is more than 2 GiB away",
		here: "the detour buffer at {target} is more than 2 GiB from {at}",
	},
	CopyUnreadable: {
		name: "COPY_UNREADABLE", kind: Optimization, errno: errno.EINVAL, source: srcCopy,
		why:  "an instruction of the region cannot be read",
		here: "{at} cannot be read",
	},
	CopyUndecodable: {
		name: "COPY_UNDECODABLE", kind: Optimization, errno: errno.EINVAL, source: srcCopy,
		why:  "the kernel's decoder does not know an instruction of the region",
		here: "{at}: the kernel's decoder does not know {insn}",
	},
	CopyEmulatePrefix: {
		name: "COPY_EMULATE_PREFIX", kind: Optimization, errno: errno.EINVAL, source: srcCopy,
		why:  "an instruction of the region has a forced-emulation prefix",
		here: "{at}: {insn} has a forced-emulation prefix and is not copied",
	},
	CopyInt3: {
		name: "COPY_INT3", kind: Optimization, errno: errno.EINVAL, source: srcCopy,
		why:  "there is an int3 in the region",
		here: "{at} is an int3 and is not copied",
	},
	CopyMasksExceptions: {
		name: "COPY_MASKS_EXCEPTIONS", kind: Optimization, errno: errno.EINVAL, source: srcCopy,
		why:  "an instruction of the region masks exceptions for the next one (pop ss, mov ss)",
		here: "{at}: {insn} masks exceptions for one instruction and is not copied",
	},
	CopyDisplacement: {
		name: "COPY_DISPLACEMENT", kind: Optimization, errno: errno.EINVAL, source: srcCopy,
		why:  "a RIP-relative operand of the region is out of reach from the detour buffer",
		here: "{at}: the operand of {insn} is more than 2 GiB from the detour buffer",
	},
	NotBoostable: {
		name: "NOT_BOOSTABLE", kind: Optimization, errno: errno.EINVAL, source: srcBoost,
		why:  "an instruction of the region is not boostable: the kernel copies it into no detour buffer",
		here: "{at}: {insn} is not boostable, so the kernel copies it into no detour buffer",
	},
	ReservedFtrace: {
		name: "RESERVED_FTRACE", kind: Optimization, errno: errno.EBUSY, source: srcReserved,
		why:  "an ftrace site is in the region",
		here: "the ftrace site at {at} is in the region, and the function tracer patches it",
	},
	ReservedSMPLock: {
		name: "RESERVED_SMP_LOCK", kind: Optimization, errno: errno.EBUSY, source: srcReserved,
		why:  "a lock prefix that the kernel may still patch is in the region (UP kernels on SMP text)",
		here: "the lock prefix at {at} is in the region, and is patched when a second CPU comes up",
	},
	ReservedJumpLabel: {
		name: "RESERVED_JUMP_LABEL", kind: Optimization, errno: errno.EBUSY, source: srcReserved,
		why:  "a jump label is in the region",
		here: "the jump label at {at} is in the region, and is patched when its key changes",
	},
	ReservedStaticCall: {
		name: "RESERVED_STATIC_CALL", kind: Optimization, errno: errno.EBUSY, source: srcReserved,
		why:  "an inline static call is in the region",
		here: "the static call at {at} is in the region, and is patched when its key changes",
	},

	Clone:        {name: "ONLY_CLONES", kind: Asking, why: "only clones of the function are there, with a suffix: the compiler changed or split it", source: srcEvents},
	NotUnique:    {name: "NOT_UNIQUE", kind: Asking, why: "several symbols have the name, and which one is meant cannot be said; use an address or another name's offset", source: srcEvents},
	Notrace:      {name: "NOTRACE", kind: Asking, why: "the function has no ftrace site (notrace, or freed), and without CONFIG_KPROBE_EVENTS_ON_NOTRACE only a module may probe it", source: srcEvents},
	NoEvents:     {name: "NO_KPROBE_EVENTS", kind: Asking, why: "this kernel has no kprobe_events", source: srcEvents},
	Definition:   {name: "BAD_DEFINITION", kind: Asking, why: "kprobe_events refuses the line", source: srcEvents},
	Waits:        {name: "WAITS", kind: Asking, why: "kprobe_events takes the definition, and plants it when a module brings its place", source: srcEvents},
	NoFprobe:     {name: "NO_FPROBE", kind: Asking, why: "this kernel cannot attach a program to many functions at once (no CONFIG_FPROBE)", source: srcEvents},
	NoMatch:      {name: "NO_MATCH", kind: Asking, why: "no function with an ftrace site matches the pattern", source: srcEvents},
	NotAsked:     {name: "NOT_ASKED", kind: Asking, why: "where the program attaches is not said by the kernel's code", source: srcAttach},
	NoTypes:      {name: "NO_BTF", kind: Asking, why: "the kernel has no BTF, by which the program names what it attaches to", source: srcAttach},
	NoFunction:   {name: "NOT_IN_BTF", kind: Asking, why: "the kernel's BTF has no function of the name: it is absent, or the compiler changed its arguments, or several have the name", source: srcAttach},
	NoSite:       {name: "NO_FENTRY_SITE", kind: Asking, why: "the function does not begin with a fentry site, where the call of a trampoline goes", source: srcAttach},
	Denied:       {name: "DENIED", kind: Asking, why: "the kernel denies programs' trampolines on the function (btf_id_deny)", source: "kernel/bpf/verifier.c, check_attach_btf_id"},
	NoTracepoint: {name: "NO_TRACEPOINT", kind: Asking, why: "the kernel and its loaded modules have no tracepoint of the name", source: srcAttach},
	NoPrograms:   {name: "NO_BPF", kind: Asking, why: "this kernel takes no BPF programs of the kind", source: srcAttach},
	FuncType:     {name: "FUNC_TYPE", kind: Asking, why: "a trampoline cannot pass on what the function takes or returns", source: "kernel/bpf/btf.c, btf_distill_func_proto"},
	ManyWords:    {name: "MANY_WORDS", kind: Asking, why: "the function takes more words of arguments than a trampoline passes on", source: "arch/x86/net/bpf_jit_comp.c, arch_prepare_bpf_trampoline"},
	MayNotSleep:  {name: "MAY_NOT_SLEEP", kind: Asking, why: "a program that may sleep is not taken there", source: "kernel/bpf/verifier.c, bpf_check_attach_target"},
	Unmodifiable: {name: "NOT_MODIFIABLE", kind: Asking, why: "a program may change only what functions return that ALLOW_ERROR_INJECTION or a set of the kernel's lists, or that are security_…", source: "kernel/bpf/verifier.c, check_attach_modify_return"},
	NoHook:       {name: "NO_HOOK", kind: Asking, why: "the kernel does not list the function among its security hooks", source: "kernel/bpf/bpf_lsm.c, bpf_lsm_verify_prog"},
	Wanting:      {name: "ITERATES_OVER_ONE", kind: Asking, why: "a link of this iterator has to say of which map or cgroup, which only the tool can", source: "kernel/bpf/bpf_iter.c, bpf_iter_link_attach"},
	Section:      {name: "BAD_SECTION", kind: Asking, why: "the loader does not take the section", source: "libbpf, section_defs"},
	Line:         {name: "BAD_LINE", kind: Asking, why: "the line is no point"},
}
