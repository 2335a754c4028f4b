package probepoint

import (
	"kprobelab/errno"
	"kprobelab/x86"
)

// Rule is the stable name of a rule that can refuse a probe. Tools print it
// and tests compare it; it does not change between releases.
type Rule string

// The rules of registration, in the order in which the kernel applies them
// (kernel/kprobes.c register_kprobe, __register_kprobe, check_kprobe_address_safe
// and arch_prepare_kprobe, 6.1).
const (
	// RuleSymbolNames: this kernel's probes have no symbol_name (2.6.18).
	RuleSymbolNames Rule = "NO_SYMBOL_NAMES"
	// RuleTwoPlaces: both a symbol and an address are given.
	RuleTwoPlaces Rule = "ADDR_AND_SYMBOL"
	// RuleNoPlace: neither a symbol nor an address is given.
	RuleNoPlace Rule = "NO_PLACE"
	// RuleUnknownSymbol: kallsyms does not know the name.
	RuleUnknownSymbol Rule = "UNKNOWN_SYMBOL"
	// RuleNoSymbol: no kallsyms symbol covers the address.
	RuleNoSymbol Rule = "NO_SYMBOL"
	// RuleUnreadable: the first bytes of the symbol cannot be read.
	RuleUnreadable Rule = "UNREADABLE"
	// RuleNotEntry: a return probe is not at a function's entry.
	RuleNotEntry Rule = "NOT_ENTRY"
	// RuleKretBlacklist: return probes are forbidden on this function.
	RuleKretBlacklist Rule = "KRETPROBE_BLACKLISTED"
	// RuleDataSize: a return probe asks for too much data per instance.
	RuleDataSize Rule = "DATA_SIZE"
	// RuleNoJprobes: the kernel, or the image, has no jprobes.
	RuleNoJprobes Rule = "NO_JPROBES"
	// RuleJprobeEntry: a jprobe's handler is not a function's entry.
	RuleJprobeEntry Rule = "JPROBE_ENTRY"
	// RuleReregistered: this very object is registered already.
	RuleReregistered Rule = "REREGISTERED"
	// RuleFtraceSite: the address is an ftrace site and the kernel has no
	// KPROBES_ON_FTRACE.
	RuleFtraceSite Rule = "FTRACE_SITE"
	// RuleInsideFtrace: the address is inside an ftrace site (to 5.17; later
	// RuleNotBoundary refuses it).
	RuleInsideFtrace Rule = "INSIDE_FTRACE_SITE"
	// RuleNotText: the address is not in kernel or module text.
	RuleNotText Rule = "NOT_TEXT"
	// RuleGateArea: the address is in the vsyscall page.
	RuleGateArea Rule = "GATE_AREA"
	// RuleBlacklisted: the address is in the kprobes blacklist.
	RuleBlacklisted Rule = "BLACKLISTED"
	// RuleJumpLabel: the address is inside a jump-label site.
	RuleJumpLabel Rule = "JUMP_LABEL"
	// RuleStaticCall: the address is inside an inline static-call site.
	RuleStaticCall Rule = "STATIC_CALL"
	// RuleBugTable: the address is the ud2 of a BUG or WARN.
	RuleBugTable Rule = "BUG_TABLE"
	// RuleCFISymbol: the symbol is a __cfi_ or __pfx_ preamble.
	RuleCFISymbol Rule = "CFI_SYMBOL"
	// RuleModuleGoing: the address is in a module that is being unloaded.
	RuleModuleGoing Rule = "MODULE_GOING"
	// RuleModuleInit: the address is in a loaded module's init section,
	// which has been freed.
	RuleModuleInit Rule = "MODULE_INIT"
	// RuleSMPLock: the address is a lock prefix that may yet be patched.
	RuleSMPLock Rule = "SMP_LOCK"
	// RuleNotBoundary: decoding from the symbol's start does not reach the
	// address.
	RuleNotBoundary Rule = "NOT_BOUNDARY"
	// RuleExceptionInsn: the instruction exists to raise an exception (6.12).
	RuleExceptionInsn Rule = "EXCEPTION_INSN"
	// RuleSlot: the instruction cannot be copied out of line. Refusals name
	// the slot package's own rule in its place, such as BRANCH_THROUGH_MEMORY.
	RuleSlot Rule = "SLOT"
	// RuleSecondJprobe: the address has a jprobe already.
	RuleSecondJprobe Rule = "SECOND_JPROBE"
	// RuleNoMemory: no slot or no instances could be had.
	RuleNoMemory Rule = "NO_MEMORY"
	// RuleArm: the breakpoint could not be written.
	RuleArm Rule = "ARM"
	// RuleBatch: a batch call was made without a probe.
	RuleBatch Rule = "EMPTY_BATCH"
	// RuleNotRegistered: enable or disable of a probe that is not registered.
	RuleNotRegistered Rule = "NOT_REGISTERED"
	// RuleNoModule: there is no module of that name.
	RuleNoModule Rule = "NO_MODULE"
	// RuleModuleLoaded: the module is not in the state that the call needs.
	RuleModuleLoaded Rule = "MODULE_STATE"
	// RuleModulePinned: a probe keeps the module from being unloaded (2.6.18).
	RuleModulePinned Rule = "MODULE_PINNED"
	// RuleGone: the probe's module has gone.
	RuleGone Rule = "GONE"
)

// why has each rule's sentence, as it follows "probe NAME: ".
var why = map[Rule]string{
	RuleSymbolNames:   "this kernel takes an address, not a symbol name",
	RuleTwoPlaces:     "both a symbol and an address are given",
	RuleNoPlace:       "neither a symbol nor an address is given",
	RuleUnknownSymbol: "no such symbol",
	RuleNoSymbol:      "no symbol covers the address",
	RuleUnreadable:    "the function's first bytes cannot be read",
	RuleNotEntry:      "a return probe has to be at a function's entry",
	RuleKretBlacklist: "return probes are not allowed on this function",
	RuleDataSize:      "the data of an instance is larger than the kernel allows",
	RuleNoJprobes:     "this kernel has no jprobes: they were deprecated, stubbed in 4.15 and removed in 4.19; a kprobe's handler reads arguments from the registers",
	RuleJprobeEntry:   "a jprobe's handler has to be the entry of a function of the guest",
	RuleSecondJprobe:  "there is a jprobe at this address, and there can be one only",
	RuleReregistered:  "this probe is already registered",
	RuleFtraceSite:    "an ftrace site, and the kernel is built without KPROBES_ON_FTRACE",
	RuleInsideFtrace:  "in the middle of an ftrace site",
	RuleNotText:       "not in kernel text",
	RuleGateArea:      "in the vsyscall page",
	RuleBlacklisted:   "blacklisted: kprobes itself may run this code",
	RuleJumpLabel:     "in a jump label, which the kernel rewrites",
	RuleStaticCall:    "in a static call, which the kernel rewrites",
	RuleBugTable:      "the ud2 of a BUG or WARN",
	RuleCFISymbol:     "in a function's preamble, which is never executed",
	RuleModuleGoing:   "in a module that is being unloaded",
	RuleModuleInit:    "in a module's init section, which is freed",
	RuleSMPLock:       "a lock prefix that the kernel may patch",
	RuleNotBoundary:   "not at an instruction boundary",
	RuleExceptionInsn: "the instruction raises an exception by itself",
	RuleSlot:          "the instruction cannot be executed out of line",
	RuleNoMemory:      "out of memory",
	RuleArm:           "the breakpoint cannot be written",
	RuleBatch:         "the list of probes is empty",
	RuleNotRegistered: "the probe is not registered",
	RuleNoModule:      "no such module",
	RuleModuleLoaded:  "the module is loaded already, or is not being loaded",
	RuleModulePinned:  "a probe in the module keeps it from being unloaded",
	RuleGone:          "the probed module has gone",
}

// Rules lists every rule of this package, in the kernel's order. The slot
// package has its own.
func Rules() []Rule {
	return []Rule{
		RuleSymbolNames, RuleTwoPlaces, RuleNoPlace, RuleUnknownSymbol, RuleNoSymbol,
		RuleUnreadable, RuleNotEntry, RuleKretBlacklist, RuleDataSize,
		RuleNoJprobes, RuleJprobeEntry, RuleReregistered,
		RuleFtraceSite, RuleInsideFtrace, RuleNotText, RuleGateArea, RuleBlacklisted,
		RuleJumpLabel, RuleStaticCall, RuleBugTable, RuleCFISymbol,
		RuleModuleGoing, RuleModuleInit, RuleSMPLock,
		RuleNotBoundary, RuleExceptionInsn, RuleSlot, RuleSecondJprobe, RuleNoMemory, RuleArm, RuleBatch,
		RuleNotRegistered, RuleNoModule, RuleModuleLoaded, RuleModulePinned, RuleGone,
	}
}

// Why is the rule as a sentence that follows "probe NAME: "; it is empty for a
// rule of the slot package.
func (r Rule) Why() string { return why[r] }

// Refusal is the error of a probe that cannot be planted: the kernel's errno,
// the first rule that refused, and the place. It wraps the errno, so that
// errors.Is(err, errno.EILSEQ) holds, and the cause where there is one.
type Refusal struct {
	Errno errno.Errno
	Rule  Rule
	// Addr is the address that was refused, 0 where it was not found.
	Addr x86.Addr
	// Symbol names the place as "symbol+0xoffset"; it is empty where no
	// symbol is known.
	Symbol string
	// Why is the rule in words, lower case, with what is particular to this
	// place.
	Why string
	// Cause is the error of the layer below, or nil.
	Cause error
}

// Refuse makes a refusal with the rule's own sentence.
func Refuse(e errno.Errno, rule Rule, at x86.Addr, symbol string) *Refusal {
	return &Refusal{Errno: e, Rule: rule, Addr: at, Symbol: symbol, Why: why[rule]}
}

// Error reads like "probe vfs_read+0x3: not at an instruction boundary (EILSEQ)".
func (r *Refusal) Error() string {
	return "probe " + r.place() + ": " + r.Why + " (" + r.Errno.Name() + ")"
}

func (r *Refusal) place() string {
	if r.Symbol != "" {
		return r.Symbol
	}
	return r.Addr.String()
}

// Unwrap gives errors.Is and errors.As the errno and the cause.
func (r *Refusal) Unwrap() []error {
	if r.Cause == nil {
		return []error{r.Errno}
	}
	return []error{r.Errno, r.Cause}
}
