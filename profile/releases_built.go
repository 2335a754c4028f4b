package profile

// builtChanges are the rows of a kernel's build options, and of its treatment of BPF programs.
var builtChanges = []Change{
	{Field: "Built.Kprobes", Option: "CONFIG_KPROBES"},
	{Field: "Built.StubEOPNOTSUPP", From: Version{5, 16, 0}, Note: "by record: commit 223a76b268c9; 6.1's header has it"},
	{Field: "Built.PerfProbes", From: Version{4, 17, 0}, Option: "CONFIG_KPROBE_EVENTS"},
	{Field: "Built.UprobeEvents", From: Version{3, 5, 0}, Option: "CONFIG_UPROBE_EVENTS"},
	{Field: "Built.Ftrace", From: Version{2, 6, 27}, Option: "CONFIG_DYNAMIC_FTRACE"},
	{Field: "Built.DirectCalls", From: Version{5, 5, 0}, Option: "CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS"},
	{Field: "Built.BTF", From: Version{5, 2, 0}, Option: "CONFIG_DEBUG_INFO_BTF"},
	{Field: "Built.BPF", From: Version{3, 18, 0}, Option: "CONFIG_BPF_SYSCALL"},
	{Field: "Built.BPFEvents", From: Version{4, 1, 0}, Option: "CONFIG_BPF_EVENTS"},
	{Field: "Built.Trampolines", From: Version{5, 5, 0}, Option: "CONFIG_BPF_JIT"},
	{Field: "Built.KprobeMulti", From: Version{5, 18, 0}, Option: "CONFIG_FPROBE"},
	{Field: "Built.KprobeSession", From: Version{6, 10, 0}, Option: "CONFIG_FPROBE"},
	{Field: "Built.BPFLSM", From: Version{5, 7, 0}, Option: "CONFIG_BPF_LSM"},
	{Field: "Built.Iterators", From: Version{5, 8, 0}, Option: "CONFIG_BPF_SYSCALL"},
	{Field: "BPF.StructArgs", From: Version{6, 1, 0}, Note: "by record: commit 720e6a435194"},
	{Field: "BPF.UnionArgs", From: Version{6, 18, 0}, Note: "6.17.13 refuses them, 6.18.5 takes them, booted"},
	{Field: "BPF.SyscallsListed", From: Version{7, 1, 0}, Note: "7.0.13 has it not, 7.1.13 has, booted"},
	{Field: "BPF.Words", Value: 6, From: Version{5, 5, 0}, Until: Version{6, 6, 0}},
	{Field: "BPF.Words", Value: 12, From: Version{6, 6, 0}, Note: "by record: commit 473e3150e30a, 6.6; 6.1 has 6, 6.12 has 12, booted"},
}
