package profile

// Config is one kernel's behaviour. The zero value is no kernel: start from a
// named profile (Named) and change fields.
type Config struct {
	// Name is the profile's name as --profile takes it, such as "6.1".
	Name string
	// Describes is one line for people: which kernel this is.
	Describes string

	Decoder Decoder
	Resolve Resolve
	Check   Check
	// Preemption is CONFIG_PREEMPTION. It compiles boosting out (docs/spec 2.4).
	Preemption bool
	Slot       Slot
	Step       Step
	Kret       Kret
	Ftrace     Ftrace
	Optimize   Optimize
	Poke       Poke
	Sample     Sample
	Tracing    Tracing
	Uprobes    Uprobes
	Built      Built
	BPF        BPF

	// KprobesOnFtrace is CONFIG_KPROBES_ON_FTRACE: a probe on a function's
	// fentry site runs from the function tracer (docs/spec 1.4, 2.9).
	KprobesOnFtrace bool
	// FtraceArmForgiven: a new probe that cannot be armed is taken out again,
	// and registration returns 0 all the same (6.14 and later).
	FtraceArmForgiven bool
	// Jprobes is true where register_jprobe exists (docs/spec 6).
	Jprobes bool
	// Log is the format of the texts that the subsystem writes and reads.
	Log Log
	// FaultHandler is true where a kprobe has a fault_handler (to 5.13).
	FaultHandler bool
	// ExceptionTableInHandlers is true where a fault in a handler consults
	// the exception table from within kprobes (to 4.19; docs/spec 7.3).
	ExceptionTableInHandlers bool
	// ModuleBase is the first address of module space, where slots and
	// detour buffers live too: 0xffffffffc0000000 with RANDOMIZE_BASE,
	// 0xffffffffa0000000 without.
	ModuleBase uint64
	// FramePointer is CONFIG_FRAME_POINTER; it lengthens the detour template.
	FramePointer bool
	// HashMultiplier is the multiplier of hash_64, which orders kprobes/list:
	// GOLDEN_RATIO_64, or GOLDEN_RATIO_PRIME_64 to 4.5.
	HashMultiplier uint64
	// HZ is the timer frequency, ticks a second.
	HZ int
}

// Optprobes reports whether the kernel optimizes probes: it is built with
// CONFIG_OPTPROBES, which to 4.13 excludes PREEMPTION.
func (c *Config) Optprobes() bool {
	return c.Optimize.Exists && (!c.Preemption || c.Optimize.OnPreempt)
}

// MaxActive returns a kretprobe's pool size if the caller gives none, with so many possible CPUs.
func (c *Config) MaxActive(cpus int) int {
	n, formula := cpus, c.Kret.DefaultMaxActive
	if formula == MaxActiveNRCPUs {
		n = c.Kret.NRCPUs
	}
	if formula == MaxActivePossible || c.Preemption {
		return max(10, 2*n)
	}
	return n
}

// MaxActiveRule is MaxActive in words.
func (c *Config) MaxActiveRule() string {
	of := "possible CPUs"
	if c.Kret.DefaultMaxActive == MaxActiveNRCPUs {
		of = "NR_CPUS"
	}
	if c.Kret.DefaultMaxActive == MaxActivePossible || c.Preemption {
		return "max(10, 2 * " + of + ")"
	}
	return of
}

// Log is the text of log lines and debugfs files (docs/spec 8).
type Log struct {
	// Prefix begins the log lines that name no function ("kprobes: " in 6.1
	// and later).
	Prefix string
	// DumpFields prints a probe that could not be handled by the names of its
	// fields (5.16 and later).
	DumpFields bool
	// EnabledBool: a write to kprobes/enabled is read as the kernel reads a
	// boolean (5.16 and later; before, y, Y, 1, n, N and 0 only).
	EnabledBool bool
	// ArmErrors: arming and disarming all probes counts failures in the log
	// line (4.16 and later).
	ArmErrors bool
	// OptimizationWords: the line about debug.kprobes-optimization is the long
	// one (5.16 and later).
	OptimizationWords bool
}

// Decoder selects the release of the kernel's decoder (docs/spec 11.3).
type Decoder struct {
	// EVEX is true where the 62 prefix is known (4.8 and later).
	EVEX bool
	// EmulatePrefix is true where the Xen and KVM forced-emulation prefixes
	// are recognised (5.5 and later).
	EmulatePrefix bool
	// Errors is true where a bad or truncated instruction is an error (5.13 and later, and 5.10.y);
	// before, fields stay zero and the length is the number of consumed bytes.
	Errors bool
	// AMX is true where the instructions of 5.18 are known: AMX, AVX-VNNI, HRESET, and AVX-512 FP16
	// with its EVEX maps 5 and 6.
	AMX bool
	// PushIz: a push of an immediate with a 66 prefix has an immediate of two bytes; before, four
	// bytes are read (6.10 and later, and stable releases of mid 2024).
	PushIz bool
	// REX2 is true where D5 is a prefix (6.10 and later; adds EVEX map 4 too).
	REX2 bool
	// INV64 is true where an opcode that 64-bit mode has not ends the
	// instruction (6.16 and later): neither ModRM nor immediates follow.
	INV64 bool
	// XOP is true where 8F is the XOP prefix unless it is POP (6.18 and later).
	XOP bool
}

// Uprobes is the treatment of a program's instruction under a uprobe (arch/x86/kernel/uprobes.c).
type Uprobes struct {
	// Exists is CONFIG_UPROBES.
	Exists bool
	// EmulatesPush: a push of a register is emulated (4.16 and later).
	EmulatesPush bool
	// RefusesMasking: mov to ss is refused (4.17 and later).
	RefusesMasking bool
	// KnowsNops: the kernel's own nops of up to eight bytes are emulated; before, only 90
	// is, with any prefix (6.16 to 6.18).
	KnowsNops bool
	// DecodesNops: whatever does nothing is emulated as a nop, and 90 is one only
	// where it does nothing (6.19 and later).
	DecodesNops bool
	// OptimizesNop5: a nop of five bytes can become a call of a trampoline (6.18 to 7.1).
	OptimizesNop5 bool
	// OptimizesNop10: a nop of ten bytes can (7.2 and later).
	OptimizesNop10 bool
	// ReturnCall: the trampoline of return probes makes a system call, uretprobe; before, it is
	// an int3 (6.11 and later).
	ReturnCall bool
}

// Resolve is the resolution of a probe's address (docs/spec 1.2).
type Resolve struct {
	// SymbolNames is false where a probe has only an address (2.6.18).
	SymbolNames bool
	// UnknownEINVAL: a symbol that is not there is EINVAL (to 3.0; later ENOENT).
	UnknownEINVAL bool
	// NeedsSymbol: an address outside every symbol is refused at resolution,
	// with ENOENT (5.18 and later; before, it fails later).
	NeedsSymbol bool
	// SkipENDBR: with IBT, offset 0 and 4 both mean the entry and the probe
	// is placed after the ENDBR (CONFIG_X86_KERNEL_IBT).
	SkipENDBR bool
	// NoplPoison: the kernel writes nopl -42(%rax) over an ENDBR that nothing needs (6.18 and
	// later); before, nopw (%rax).
	NoplPoison bool
	// EntryFlag: a probe at a function's entry carries
	// KPROBE_FLAG_ON_FUNC_ENTRY (6.1 and later).
	EntryFlag bool
	// EntryFlagEarly: the flag is set before the address is checked, so that a
	// refusal leaves it (6.14 and later).
	EntryFlagEarly bool
	// RefuseAmbiguous: a symbol name with several addresses is refused by
	// kprobe_events (6.1.y and later); register_kprobe takes the first.
	RefuseAmbiguous bool
}

// Check is the set of tests of registration (docs/spec 1.3, 1.5).
type Check struct {
	// ModulePinned: a probe in a module keeps it from being unloaded (2.6.18).
	ModulePinned bool
	// ModuleErrno gives ENOENT for a module that is going away (3.1 and
	// later; before, EINVAL).
	ModuleErrno bool
	// ModuleGoingFirst refuses the text of a module that is going away before the check of reserved
	// text (6.14 and later).
	ModuleGoingFirst bool
	// ModuleAskedTwice looks up the module of an address twice; an address whose module has gone in
	// between counts as the kernel's own text (to 6.8; bug 19 in docs/bugs.md).
	ModuleAskedTwice bool
	// ProbesBeforeLabels: the probes that wait for a module are registered before its
	// jump labels are known (no named profile; bug 24 in docs/bugs.md).
	ProbesBeforeLabels bool
	// JprobeEntry refuses a jprobe whose handler is not a function's entry
	// (4.4; docs/spec 6).
	JprobeEntry bool
	// Reregistration refuses an object that is already registered (2.6.33 and later).
	Reregistration bool
	// ReregistrationWarns logs a warning as well (6.1; not in 5.10).
	ReregistrationWarns bool
	// GateArea refuses the vsyscall page (6.0 and later, and stable releases).
	GateArea bool
	// JumpLabels refuses an address inside a jump-label site (2.6.37 and later).
	JumpLabels bool
	// SMPLocks: the places of lock prefixes are reserved text, because the
	// kernel, which has run with one CPU so far, may still patch them back. No
	// named profile: an SMP boot forgets them.
	SMPLocks bool
	// StaticCalls refuses an address inside an inline static-call site (5.10 and later).
	StaticCalls bool
	// BugTable refuses the ud2 of a BUG or WARN (5.4 and later, and stable releases).
	BugTable bool
	// CFISymbols refuses symbols named __cfi_* and __pfx_* (6.5 and later, and
	// stable releases).
	CFISymbols bool
	// CFISwapped: that test has its arguments swapped, so that it refuses only
	// symbols whose name is a part of "__cfi_" or "__pfx_" from the start (6.5 to
	// 6.10, and stable releases of that time).
	CFISwapped bool
	// CFITraps refuses with EILSEQ the mov and the add of Clang's check of an indirect call, from which
	// the kernel tells the expected type (6.6 and later). A kernel with such checks reads the instruction
	// for that, and refuses with EILSEQ too what it cannot decode.
	CFITraps bool
	// Boundary tests that decoding from the symbol's start reaches the
	// address (2.6.33 and later).
	Boundary bool
	// PaddingInt3 accepts an int3 met on the way there as padding (6.2 and
	// 6.1.y); before, any int3 fails the test.
	PaddingInt3 bool
	// FtraceSites: an address that is an ftrace site is treated by its own
	// rule (2.6.34 and later; before, functions have no such sites).
	FtraceSites bool
	// FtraceSiteMiddle refuses the middle of an ftrace site at the location check
	// (to 5.17): with EILSEQ, or as the site itself without KprobesOnFtrace. Later it
	// fails the boundary test.
	FtraceSiteMiddle bool
	// ExceptionInsn refuses UD0, UD1, UD2, INT3, INT n, INTO and INT1 at the
	// address with EILSEQ (6.9 and later).
	ExceptionInsn bool
	// BlacklistClones: with a function, its clones and parts count as blacklisted:
	// foo.isra.0, foo.cold (5.1 and later).
	BlacklistClones bool
	// IRQEntryText: the blacklist holds the text of interrupt entry too (5.1 to 5.7).
	IRQEntryText bool
	// KGDB is CONFIG_KGDB: an int3 that the debugger owns fails the tests.
	// No breakpoint of a debugger exists here, so it only documents.
	KGDB bool
}

// Slot is the copying and boosting of an instruction (docs/spec 3).
type Slot struct {
	// BoostRule picks the table of boostable opcodes.
	BoostRule BoostRule
	// BoostTable, where it is known, overrides BoostRule.
	BoostTable BoostTable
	// BoostDecidedAtBuild: a post_handler prevents boosting when the slot is
	// built (5.13 and later, and Debian's 5.10); before, when the probe is hit.
	BoostDecidedAtBuild bool
	// LazyBoost appends the jump after the first stepped hit (to 4.11).
	LazyBoost bool
	// RefuseInt3 refuses to copy an int3 (3.4 and later; before, it is
	// stepped in place).
	RefuseInt3 bool
	// RefuseMasking refuses pop ss and mov ss, and forced-emulation prefixes
	// (4.17 and later, and stable releases).
	RefuseMasking bool
	// Emulate is true where branches and flag instructions are emulated and
	// far or memory-indirect ones refused (5.13, and Debian's 5.10).
	Emulate bool
}

// BoostRule names a release's boost table (docs/spec 3.4, 3.5).
type BoostRule int

// The boost tables.
const (
	// BoostNever is 2.6.18 on x86-64.
	BoostNever BoostRule = iota
	// Boost44 walks raw bytes; 67, 62 and 2E stop with "no".
	Boost44
	// Boost58 tests the address-size prefix against the wrong value.
	Boost58
	// Boost54 is Boost58 with the prefixes tested right (stable releases with
	// the trap flag, from May 2021 on).
	Boost54
	// Boost61 is the table of 5.13 to 6.1.
	Boost61
	// Boost612 adds shifts, F6/F7, FE and FF forms by ModRM.reg (6.9 and later).
	Boost612
)

// Step is the handling of a hit (docs/spec 2).
type Step struct {
	// TrapFlag steps the copy with TF and #DB (to 5.12); otherwise an int3
	// after the copy ends the step.
	TrapFlag bool
	// FixupSkipsREXOnly: the fix-up after a trap-flag step looks for the opcode
	// after one REX byte only, not after other prefixes (2.6.18).
	FixupSkipsREXOnly bool
	// PostBeforeFixup runs post_handler before ip is moved back (2.6.18).
	PostBeforeFixup bool
	// Int3IsNMI: an int3 in the kernel is entered as an NMI is (5.8 and later).
	Int3IsNMI bool
	// FtraceIRQsOff: handlers of a probe on a fentry site run with interrupts
	// off (4.4); later, with preemption off.
	FtraceIRQsOff bool
	// VanishedInt3 re-executes an address whose int3 is gone (to 6.2).
	VanishedInt3 bool
	// HandlerResets: a pre handler that returns non-zero has to reset the
	// current kprobe itself (to 4.18).
	HandlerResets bool
	// NestedPostDisarms: a hit inside a post handler disarms the inner probe
	// for good (2.6.18); later it is counted as missed.
	NestedPostDisarms bool
	// NestedReenterBUG: a hit while REENTER is unrecoverable (2.6.33 and later).
	NestedReenterBUG bool

	// Quirks of the emulation (docs/spec 2.7, 14.5). False means the processor's behaviour.

	// LoopTestsBeforeDecrement tests LOOP's counter before it is decremented.
	LoopTestsBeforeDecrement bool
	// Loop32KeepsUpper leaves the upper half of rcx with an address-size prefix.
	Loop32KeepsUpper bool
	// RetIgnoresImm ignores the immediate of RET imm16.
	RetIgnoresImm bool
	// VexAsLegacy takes the opcode after a VEX or EVEX prefix for a legacy
	// one-byte opcode (vzeroupper is taken for JA and skipped).
	VexAsLegacy bool
	// FlagsMove8Bytes moves 8 bytes for PUSHF and POPF with an operand-size
	// prefix, where the processor moves 2.
	FlagsMove8Bytes bool
	// PopfTakesAll leaves in the flags what POPF popped, where the processor
	// clears reserved bits, RF, VM, VIF and VIP.
	PopfTakesAll bool
	// CallReturnsPast5 pushes the address 5 bytes on for CALL rel, whatever
	// the length of the instruction with its prefixes (5.13 to 7.2.7).
	CallReturnsPast5 bool
	// CallIndirectReturnsPast5 pushes the address 5 bytes on for CALL *%reg,
	// which has 2 or 3 bytes (5.13 to 6.6, and not in stable releases from January 2024 on).
	CallIndirectReturnsPast5 bool
	// CallPushesFirst goes to the stack pointer after the push for CALL *%rsp.
	CallPushesFirst bool
	// JLENeedsBoth takes JLE where the operands are less and equal, which they
	// never are, and JG always (5.13 to 5.19).
	JLENeedsBoth bool
	// FarJumpUnseen takes a far jump through memory for no jump, so that ip is moved
	// after the step (no named profile; bug 10 in docs/bugs.md).
	FarJumpUnseen bool
	// GroupUnread does not read the ModRM byte of FF, which says whether it is a call
	// or a jump (no named profile; bug 11 in docs/bugs.md).
	GroupUnread bool
	// StatusKept: a step whose probe has no post handler leaves the status that it is
	// under way (no named profile; bug 13b in docs/bugs.md).
	StatusKept bool
	// OneDebugStack: a #DB inside another's handler has the same stack, and overwrites the frame of
	// the outer one (5.8 and later).
	OneDebugStack bool
	// FarRetIsNear takes RETF for RET: 8 bytes, and no code segment.
	FarRetIsNear bool

	// What else a real kernel's stepping does to the program (docs/transparency.md).

	// LastInt3Missed does not recognise the int3 after a copy of 14 bytes, which is the last byte
	// of the slot: no probe handles that int3 (5.13 and later).
	LastInt3Missed bool
	// BoostedFaultInSlot leaves a fault of a boosted copy at the slot's address.
	BoostedFaultInSlot bool
	// PageFaultsOnly moves only page faults and general protection faults of a
	// copy to the original; a division error or an invalid opcode stays in the
	// slot, where the exception table has no entry.
	PageFaultsOnly bool
}

// Kret is the behaviour of return probes (docs/spec 5).
type Kret struct {
	// EntryOnly refuses an address that is not a function entry (4.12 and later).
	EntryOnly bool
	// EntryErrno passes resolution errors through; before, all are EINVAL
	// (5.11 and later, and stable releases).
	EntryErrno bool
	// LateReregistration looks whether the object is registered already only after its
	// instances were made anew (to 5.10, and stable releases; bug 26 in docs/bugs.md).
	LateReregistration bool
	// MaxDataSize is the largest DataSize, E2BIG above it; 0 means no limit.
	MaxDataSize int
	// BlacklistSwitchTo refuses a probe at the address of __switch_to; a probe that is placed after
	// an ENDBR there is not refused.
	BlacklistSwitchTo bool
	// DefaultMaxActive picks the formula for MaxActive <= 0.
	DefaultMaxActive DefaultMaxActive
	// NRCPUs is the compile-time maximum that 2.6.18's formula uses.
	NRCPUs int
	// Rethook pushes the trampoline's own address and leaves RetAddr of
	// stacked instances alone (5.18 and later).
	Rethook bool
	// UnwinderKnows: a stack shows the address that a return probe replaced; otherwise it shows the
	// trampoline (unwind_recover_ret_addr, 5.16 and later).
	UnwinderKnows bool
	// FrameCheck is the treatment of a pending instance that waits on another stack slot than the
	// one that is returned through.
	FrameCheck FrameCheck
	// LostReturn is the message where no pending call returns through the trampoline; %s is
	// replaced by the probe of the oldest one. Empty: there is a BUG without a message. Rethook has
	// its own.
	LostReturn string
	// MissedInNMI misses every call that is probed in an NMI (3.17 to 5.9). With
	// Step.Int3IsNMI, as in 5.8, that is every return probe whose entry is hit
	// through an int3: those on a fentry site or optimized work.
	MissedInNMI bool
	// EntryHandler exists from 2.6.25 on.
	EntryHandler bool
	// HandlerIPIsTrampoline: regs.ip in the handler is the trampoline, not
	// the return address (5.10).
	HandlerIPIsTrampoline bool
	// HandlerIRQsOff: interrupts are off in the handler (5.10).
	HandlerIRQsOff bool
	// TrampolineProbe: the trampoline is a nop that carries a kprobe (2.6.18).
	TrampolineProbe bool
}

// Ftrace is the arming and disarming of probes on fentry sites.
type Ftrace struct {
	// PostCleared: when the last member with a post handler leaves, the probe is counted in the
	// tracer's other registration, where it is not (5.4 to 6.0; bug 25 in docs/bugs.md).
	PostCleared bool
	// KilledFails: once the tracer was killed a probe cannot be disarmed, and stays in the
	// table while its owner frees it (bug 35 in docs/bugs.md).
	KilledFails bool
	// RefusedIsEnabled: a member of an aggregate that could not be armed counts as
	// enabled all the same (bug 18 in docs/bugs.md).
	RefusedIsEnabled bool
}

// FrameCheck is the treatment, at a return, of a pending instance that waits on another stack slot.
// A function that was left by a longjmp has such an instance.
type FrameCheck int

// The ways to treat it.
const (
	// FrameUnchecked: its handler runs like any (to 5.1).
	FrameUnchecked FrameCheck = iota
	// FramePassedOver: it is passed over, with a warning, and stays pending (5.2 to
	// 5.10, and stable releases of 2019).
	FramePassedOver
	// FrameBug: it is a BUG (5.11 to 5.15).
	FrameBug
	// FrameEnds: no handler runs from there on, with a warning once, and it is no longer
	// pending (5.16 and later).
	FrameEnds
)

// DefaultMaxActive is the formula for a kretprobe's default pool size.
type DefaultMaxActive int

// The formulas.
const (
	// MaxActivePossible is max(10, 2 * possible CPUs) (6.1 and later, and
	// PREEMPT kernels from 4.4).
	MaxActivePossible DefaultMaxActive = iota
	// MaxActiveCPUs is the number of possible CPUs (non-PREEMPT, to 5.10).
	MaxActiveCPUs
	// MaxActiveNRCPUs is NR_CPUS, or max(10, 2 * NR_CPUS) on PREEMPT (2.6.18).
	MaxActiveNRCPUs
)

// Optimize is the decisions and patching of jump optimization (docs/spec 4).
type Optimize struct {
	// Exists is CONFIG_OPTPROBES.
	Exists bool
	// OnPreempt: optimization exists on PREEMPTION kernels (4.14 and later).
	OnPreempt bool
	// Int3Blocks: any int3 in the function prevents it (to 6.1, and not in its stable releases).
	Int3Blocks bool
	// Int3Tail: int3s from an address to the function's end are padding, which
	// does not (5.10 to 6.1, and not in its stable releases).
	Int3Tail bool
	// IRQEntryText: in the text of interrupt entry it is prevented, as in the text of entry (4.14
	// to 5.7).
	IRQEntryText bool
	// IndirectJumps: an indirect jump in the function prevents it.
	IndirectJumps bool
	// ThunkRange: a jump into the retpoline thunks counts as indirect.
	ThunkRange bool
	// SSWord: the detour frame has the ss word (168 bytes; 5.18 and later).
	SSWord bool
	// CLAC: the template has room for CLAC (5.8 and later).
	CLAC bool
	// IRQsOff: handlers run with interrupts off (4.4); later, preemption off.
	IRQsOff bool
	// StopMachine patches under stop_machine (to 3.11).
	StopMachine bool
	// ThreeStepUnoptimize uses the three-step protocol both ways (4.4).
	ThreeStepUnoptimize bool
	// ClearedWhenQueued clears OPTIMIZED when unoptimizing is requested (4.4).
	ClearedWhenQueued bool
	// EnabledNeighboursOnly: a neighbour counts while it is enabled (to 6.2);
	// later, while it is not disarmed.
	EnabledNeighboursOnly bool
	// FirstProbeEndsSearch: the search for the jump that runs over an address
	// ends at the nearest probe before it, whatever that is (to 7.2; stable
	// releases of 2026 go on).
	FirstProbeEndsSearch bool
	// RecoversUnlistedOnly: the bytes under a jump are not known while the jump waits to be undone
	// (to 6.2).
	RecoversUnlistedOnly bool
	// RetriesHeldBack: after an aggregate is freed, the probe whose jump would
	// run over it is queued again (7.0 and later).
	RetriesHeldBack bool
	// FlagClearedFirst: who takes a jump back at once clears OPTIMIZED before the
	// text is changed (no named profile; bug 3 in docs/bugs.md).
	FlagClearedFirst bool
	// FreeingNeedsUndo: the worker looks at the freeing list only where it had a
	// jump to undo (no named profile; bug 5 in docs/bugs.md).
	FreeingNeedsUndo bool
	// TextMutexFirst: the worker takes text_mutex before kprobe_mutex (no named
	// profile; bug 17 in docs/bugs.md).
	TextMutexFirst bool
	// DelayJiffies is the worker's delay.
	DelayJiffies int
}

// Poke is the kernel's way to change text that other CPUs execute (docs/spec 4.8).
type Poke struct {
	// SharedArray: single changes and queued ones share one array (6.16 and
	// later).
	SharedArray bool
	// SingleAppends: a single change is appended to the queued changes, whatever the order of the
	// addresses (next-20250605; no named profile).
	SingleAppends bool
}

// Sample is the text of the kernel's own sample modules (docs/spec 13).
type Sample struct {
	// Function is the function that the samples probe by default.
	Function string
	// Style picks the format of the handlers' lines.
	Style SampleStyle
}

// SampleStyle names a format of the kprobe sample's lines.
type SampleStyle int

// The styles.
const (
	// SampleBare prints "pre_handler: p->addr = …" (to about 4.19).
	SampleBare SampleStyle = iota
	// SampleSymbol prints "<symbol> pre_handler: p->addr = …" (5.8, 5.10).
	SampleSymbol
	// SampleFunc prints "handler_pre: <symbol> p->addr = …" (6.1, 6.12).
	SampleFunc
)
