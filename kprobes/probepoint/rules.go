package probepoint

import "kprobelab/errno"

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

// ruleRow is what is to say of a rule.
type ruleRow struct {
	rule Rule
	// errno is 0 where the layer below decides.
	errno errno.Errno
	// why is a sentence that follows "probe NAME: ".
	why string
	// source is the kernel's file and function, as 6.1 has them.
	source string
}

// ruleRows are all rules, in the kernel's order.
var ruleRows = []ruleRow{
	{RuleSymbolNames, errno.EINVAL, "this kernel takes an address, not a symbol name",
		"include/linux/kprobes.h, struct kprobe (2.6.18)"},
	{RuleTwoPlaces, errno.EINVAL, "both a symbol and an address are given",
		"kernel/kprobes.c, _kprobe_addr"},
	{RuleNoPlace, errno.EINVAL, "neither a symbol nor an address is given",
		"kernel/kprobes.c, _kprobe_addr"},
	{RuleUnknownSymbol, errno.ENOENT, "no such symbol",
		"kernel/kprobes.c, _kprobe_addr"},
	{RuleNoSymbol, errno.ENOENT, "no symbol covers the address",
		"kernel/kprobes.c, _kprobe_addr"},
	{RuleUnreadable, errno.EINVAL, "the function's first bytes cannot be read",
		"arch/x86/kernel/kprobes/core.c, arch_adjust_kprobe_addr"},
	{RuleNotEntry, errno.EINVAL, "a return probe has to be at a function's entry",
		"kernel/kprobes.c, register_kretprobe, kprobe_on_func_entry"},
	{RuleKretBlacklist, errno.EINVAL, "return probes are not allowed on this function",
		"kernel/kprobes.c, register_kretprobe; arch/x86/kernel/kprobes/core.c, kretprobe_blacklist"},
	{RuleDataSize, errno.E2BIG, "the data of an instance is larger than the kernel allows",
		"kernel/kprobes.c, register_kretprobe"},
	{RuleNoJprobes, errno.ENOSYS, "this kernel has no jprobes: they were deprecated, stubbed in 4.15 and removed in 4.19; a kprobe's handler reads arguments from the registers",
		"include/linux/kprobes.h, register_jprobe (4.15 to 4.18)"},
	{RuleJprobeEntry, errno.EINVAL, "a jprobe's handler has to be the entry of a function of the guest",
		"kernel/kprobes.c, register_jprobes (to 4.14)"},
	{RuleReregistered, errno.EINVAL, "this probe is already registered",
		"kernel/kprobes.c, warn_kprobe_rereg"},
	{RuleFtraceSite, errno.EINVAL, "an ftrace site, and the kernel is built without KPROBES_ON_FTRACE",
		"kernel/kprobes.c, check_ftrace_location"},
	{RuleInsideFtrace, errno.EILSEQ, "in the middle of an ftrace site",
		"kernel/kprobes.c, arch_check_ftrace_location (to 5.17)"},
	{RuleNotText, errno.EINVAL, "not in kernel text",
		"kernel/kprobes.c, check_kprobe_address_safe"},
	{RuleGateArea, errno.EINVAL, "in the vsyscall page",
		"kernel/kprobes.c, check_kprobe_address_safe"},
	{RuleBlacklisted, errno.EINVAL, "blacklisted: kprobes itself may run this code",
		"kernel/kprobes.c, within_kprobe_blacklist"},
	{RuleJumpLabel, errno.EINVAL, "in a jump label, which the kernel rewrites",
		"kernel/kprobes.c, check_kprobe_address_safe; kernel/jump_label.c, jump_label_text_reserved"},
	{RuleStaticCall, errno.EINVAL, "in a static call, which the kernel rewrites",
		"kernel/kprobes.c, check_kprobe_address_safe; kernel/static_call_inline.c, static_call_text_reserved"},
	{RuleBugTable, errno.EINVAL, "the ud2 of a BUG or WARN",
		"kernel/kprobes.c, check_kprobe_address_safe; lib/bug.c, find_bug"},
	{RuleCFISymbol, errno.EINVAL, "in a function's preamble, which is never executed",
		"kernel/kprobes.c, is_cfi_preamble_symbol"},
	{RuleModuleGoing, errno.ENOENT, "in a module that is being unloaded",
		"kernel/kprobes.c, check_kprobe_address_safe, try_module_get"},
	{RuleModuleInit, errno.ENOENT, "in a module's init section, which is freed",
		"kernel/kprobes.c, check_kprobe_address_safe, within_module_init"},
	{RuleSMPLock, errno.EINVAL, "a lock prefix that the kernel may patch",
		"arch/x86/kernel/kprobes/core.c, arch_prepare_kprobe; arch/x86/kernel/alternative.c, alternatives_text_reserved"},
	{RuleNotBoundary, errno.EILSEQ, "not at an instruction boundary",
		"arch/x86/kernel/kprobes/core.c, can_probe"},
	{RuleExceptionInsn, errno.EILSEQ, "the instruction raises an exception by itself",
		"arch/x86/kernel/kprobes/core.c, can_probe, is_exception_insn"},
	{RuleSlot, errno.EINVAL, "the instruction cannot be executed out of line",
		"arch/x86/kernel/kprobes/core.c, arch_copy_kprobe"},
	{RuleSecondJprobe, errno.EEXIST, "there is a jprobe at this address, and there can be one only",
		"kernel/kprobes.c, add_new_kprobe (to 4.14)"},
	{RuleNoMemory, errno.ENOMEM, "out of memory",
		"arch/x86/kernel/kprobes/core.c, arch_prepare_kprobe; kernel/kprobes.c, __get_insn_slot"},
	{RuleArm, 0, "the breakpoint cannot be written",
		"kernel/kprobes.c, arm_kprobe"},
	{RuleBatch, errno.EINVAL, "the list of probes is empty",
		"kernel/kprobes.c, register_kprobes, register_kretprobes"},
	{RuleNotRegistered, errno.EINVAL, "the probe is not registered",
		"kernel/kprobes.c, __get_valid_kprobe"},
	{RuleNoModule, errno.ENOENT, "no such module",
		"kernel/module/main.c, find_module"},
	{RuleModuleLoaded, errno.EEXIST, "the module is loaded already, or is not being loaded",
		"kernel/module/main.c, load_module"},
	{RuleModulePinned, errno.EAGAIN, "a probe in the module keeps it from being unloaded",
		"kernel/module.c, sys_delete_module (2.6.18)"},
	{RuleGone, errno.EINVAL, "the probed module has gone",
		"kernel/kprobes.c, enable_kprobe"},
}

func (r Rule) row() *ruleRow {
	for i := range ruleRows {
		if ruleRows[i].rule == r {
			return &ruleRows[i]
		}
	}
	return &ruleRow{}
}

// Rules lists every rule of this package, in the kernel's order. The slot
// package has its own.
func Rules() []Rule {
	list := make([]Rule, len(ruleRows))
	for i := range ruleRows {
		list[i] = ruleRows[i].rule
	}
	return list
}

// Why is the rule as a sentence that follows "probe NAME: "; it is empty for a
// rule of the slot package.
func (r Rule) Why() string { return r.row().why }

// Errno is what the rule answers in 6.1, or in the release that has it; a
// Refusal has a release's own. It is 0 for RuleArm, whose cause decides.
func (r Rule) Errno() errno.Errno { return r.row().errno }

// Source is where the rule stands: the kernel's file and function.
func (r Rule) Source() string { return r.row().source }
