package rule

// ID is one rule. The zero value is None. The numbers are in the kernel's
// order, and are not stable; the names (String) are.
type ID uint16

// None: no rule refuses.
const None ID = 0

// The rules of registration, in the order in which the kernel applies them
// (kernel/kprobes.c register_kprobe, __register_kprobe, check_kprobe_address_safe
// and arch_prepare_kprobe, 6.1).
const (
	// NoKprobes: the kernel is built without kprobes.
	NoKprobes ID = iota + 1
	// SymbolNames: this kernel's probes have no symbol_name (2.6.18).
	SymbolNames
	// TwoPlaces: both a symbol and an address are given.
	TwoPlaces
	// NoPlace: neither a symbol nor an address is given.
	NoPlace
	// UnknownSymbol: kallsyms does not know the name.
	UnknownSymbol
	// NoSymbol: no kallsyms symbol covers the address.
	NoSymbol
	// Unreadable: the first bytes of the symbol cannot be read.
	Unreadable
	// NotEntry: a return probe is not at a function's entry.
	NotEntry
	// KretBlacklist: return probes are forbidden on this function.
	KretBlacklist
	// DataSize: a return probe's data per instance is too large.
	DataSize
	// NoJprobes: the kernel, or the image, has no jprobes.
	NoJprobes
	// JprobeEntry: a jprobe's handler is not a function's entry.
	JprobeEntry
	// Reregistered: this very object is registered already.
	Reregistered
	// FtraceSite: the address is an ftrace site and the kernel has no
	// KPROBES_ON_FTRACE.
	FtraceSite
	// InsideFtrace: the address is inside an ftrace site (to 5.17; later
	// NotBoundary refuses it).
	InsideFtrace
	// NotText: the address is not in kernel or module text.
	NotText
	// GateArea: the address is in the vsyscall page.
	GateArea
	// Blacklisted: the address is in the kprobes blacklist.
	Blacklisted
	// JumpLabel: the address is inside a jump-label site.
	JumpLabel
	// StaticCall: the address is inside an inline static-call site.
	StaticCall
	// BugTable: the address is the ud2 of a BUG or WARN.
	BugTable
	// CFISymbol: the symbol is a __cfi_ or __pfx_ preamble.
	CFISymbol
	// ModuleGoing: the address is in a module that is being unloaded.
	ModuleGoing
	// ModuleInit: the address is in a loaded module's init section,
	// which has been freed.
	ModuleInit
	// SMPLock: the address is a lock prefix that the kernel may still patch.
	SMPLock
	// NotBoundary: decoding from the symbol's start does not reach the
	// address.
	NotBoundary
	// ExceptionInsn: the instruction exists to raise an exception (6.12).
	ExceptionInsn
	// CFICheck: the instruction belongs to a check of an indirect call.
	CFICheck
	// Slot: the instruction cannot be copied out of line. Refusals name
	// the slot package's own rule in its place, such as BRANCH_THROUGH_MEMORY.
	Slot
	// SecondJprobe: the address has a jprobe already.
	SecondJprobe
	// NoMemory: no slot or no instances could be had.
	NoMemory
	// Arm: the breakpoint could not be written.
	Arm
	// Batch: a batch call was made without a probe.
	Batch
	// NotRegistered: enable or disable of a probe that is not registered.
	NotRegistered
	// NoModule: there is no module of that name.
	NoModule
	// ModuleLoaded: the module is not in the state that the call needs.
	ModuleLoaded
	// ModulePinned: a probe keeps the module from being unloaded (2.6.18).
	ModulePinned
	// Gone: the probe's module has gone.
	Gone
)

// The rules about an instruction out of line, in the kernel's order.
const (
	// SlotUnreadable: the instruction's bytes cannot be read.
	SlotUnreadable = iota + Gone + 1
	// SlotUndecodable: the kernel's decoder does not know the bytes.
	SlotUndecodable
	// SlotEmulatePrefix: a Xen or KVM forced-emulation prefix.
	SlotEmulatePrefix
	// SlotInt3: the instruction is a breakpoint.
	SlotInt3
	// SlotMasksExceptions: pop ss or mov ss.
	SlotMasksExceptions
	// SlotDisplacement: the target of a RIP-relative operand is more than
	// 2 GiB from the copy.
	SlotDisplacement
	// FarBranch: far call, far jump or iret.
	FarBranch
	// BranchMemory: an indirect call or jump through memory, or with an
	// address-size prefix.
	BranchMemory
	// VMCall: VMCALL and its neighbours, 0F 01 C0 to C7.
	VMCall
	// TooLong: no room for an int3 after a 15-byte instruction.
	TooLong
)

// The rules that keep a probe from being optimized, in the kernel's order. The
// first six about the copy are the first six about an instruction out of line.
const (
	// NoOptprobes: this kernel optimizes no probes.
	NoOptprobes = iota + TooLong + 1
	// FtraceBased: the probe runs from the function tracer.
	FtraceBased
	// OptNoSymbol: no symbol covers the address.
	OptNoSymbol
	// EntryText: the address lies in entry text.
	EntryText
	// TooShort: fewer than 5 bytes are left of the function.
	TooShort
	// ExceptionEntry: an instruction of the function is in the exception table.
	ExceptionEntry
	// OptUnreadable: code of the function cannot be read.
	OptUnreadable
	// OptUndecodable: the kernel's decoder does not know an instruction of the function.
	OptUndecodable
	// Int3InFunction: there is an int3 in the function (to 6.1).
	Int3InFunction
	// IndirectJump: there is an indirect jump in the function.
	IndirectJump
	// ThunkJump: a jump of the function leads into the thunks.
	ThunkJump
	// JTPRTarget: a jump of the function leads into the JTPR.
	JTPRTarget
	// Distance: the detour buffer is out of a jump's reach.
	Distance
	// CopyUnreadable: an instruction of the DCR cannot be read.
	CopyUnreadable
	// CopyUndecodable: the kernel's decoder does not know one.
	CopyUndecodable
	// CopyEmulatePrefix: one has a forced-emulation prefix.
	CopyEmulatePrefix
	// CopyInt3: one is an int3.
	CopyInt3
	// CopyMasksExceptions: one masks exceptions.
	CopyMasksExceptions
	// CopyDisplacement: the operand of one is out of reach from the buffer.
	CopyDisplacement
	// NotBoostable: one is not boostable.
	NotBoostable
	// ReservedFtrace: the DCR overlaps an ftrace site.
	ReservedFtrace
	// ReservedSMPLock: it overlaps a lock prefix that the kernel may still patch.
	ReservedSMPLock
	// ReservedJumpLabel: it overlaps a jump label.
	ReservedJumpLabel
	// ReservedStaticCall: it overlaps an inline static call.
	ReservedStaticCall
)

// The rules of the callers that place probes: kprobe_events, perf, and loaders of BPF programs.
const (
	// Clone: only suffixed clones of the function are left.
	Clone = iota + ReservedStaticCall + 1
	// NotUnique: kprobe_events and perf take a name that one symbol has.
	NotUnique
	// Notrace: kprobe_events and perf refuse a function without an ftrace site.
	Notrace
	// NoEvents: the kernel has no kprobe_events.
	NoEvents
	// Definition: the line is no definition that kprobe_events takes.
	Definition
	// Waits: kprobe_events takes the definition, but nothing is there to
	// be probed.
	Waits
	// NoFprobe: the kernel has no links of a program to many functions.
	NoFprobe
	// NoMatch: a pattern matches no function with an ftrace site.
	NoMatch
	// NotAsked: whether the program attaches is not a question about a kernel's code.
	NotAsked
	// NoTypes: the kernel has no BTF, or cannot attach programs by it.
	NoTypes
	// NoFunction: the kernel's BTF has no function of the name.
	NoFunction
	// NoSite: the function does not begin with the nop that a trampoline's call
	// replaces.
	NoSite
	// Denied: the kernel's lists keep trampolines off the function.
	Denied
	// NoTracepoint: the kernel has no tracepoint of the name.
	NoTracepoint
	// NoPrograms: the kernel takes no BPF programs of the kind.
	NoPrograms
	// FuncType: a trampoline cannot pass on the function's type.
	FuncType
	// ManyWords: the function takes too many words of arguments.
	ManyWords
	// MayNotSleep: the program may sleep, and the function may not.
	MayNotSleep
	// Unmodifiable: no program may change what the function returns.
	Unmodifiable
	// NoHook: the function is no security hook, or a hook that programs may not use.
	NoHook
	// Wanting: the iterator goes over one object, which the section cannot name.
	Wanting
	// Section: the loader does not take the section.
	Section
	// Line: the line is no point at all.
	Line
	numRules
)
