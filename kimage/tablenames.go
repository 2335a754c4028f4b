package kimage

// tableName tells the place of a table of the kernel: by the section that holds it alone,
// the symbols around it, or the functions that walk it, whose code has both addresses.
type tableName struct {
	section, start, stop string
	walkers              []string
}

// The tables. A walker that is static may be part of its caller, so both are named.
var (
	exceptionTable = &tableName{"__ex_table", "__start___ex_table", "__stop___ex_table",
		[]string{"search_exception_tables", "search_kernel_exception_table", "sort_main_extable"}}
	bugTable = &tableName{"__bug_table", "__start___bug_table", "__stop___bug_table",
		[]string{"find_bug", "generic_bug_clear_once"}}
	// cfiTraps are the ud2 of Clang's checks of indirect calls (kCFI).
	cfiTraps  = &tableName{"__kcfi_traps", "__start___kcfi_traps", "__stop___kcfi_traps", nil}
	jumpTable = &tableName{"__jump_table", "__start___jump_table", "__stop___jump_table",
		[]string{"jump_label_init", "jump_label_text_reserved"}}
	staticCallSites = &tableName{".static_call_sites", "__start_static_call_sites", "__stop_static_call_sites",
		[]string{"static_call_init", "static_call_text_reserved"}}
	staticCallKeys = &tableName{".static_call_tramp_key", "__start_static_call_tramp_key", "__stop_static_call_tramp_key",
		[]string{"tramp_key_lookup", "static_call_add_module", "static_call_module_notify"}}
	mcountLocations = &tableName{"__mcount_loc", "__start_mcount_loc", "__stop_mcount_loc",
		[]string{"ftrace_init"}}
	// patchableEntries is the section of the same table in a module that was made with
	// -fpatchable-function-entry.
	patchableEntries = &tableName{"__patchable_function_entries", "__start_mcount_loc", "__stop_mcount_loc",
		[]string{"ftrace_init"}}
	smpLocks = &tableName{".smp_locks", "__smp_locks", "__smp_locks_end",
		[]string{"alternative_instructions"}}
	altInstructions = &tableName{".altinstructions", "__alt_instructions", "__alt_instructions_end",
		[]string{"alternative_instructions"}}
	paraInstructions = &tableName{".parainstructions", "__parainstructions", "__parainstructions_end",
		[]string{"alternative_instructions", "apply_paravirt"}}
	returnSites = &tableName{".return_sites", "__return_sites", "__return_sites_end",
		[]string{"alternative_instructions"}}
	retpolineSites = &tableName{".retpoline_sites", "__retpoline_sites", "__retpoline_sites_end",
		[]string{"alternative_instructions"}}
	// cfiSites are the functions' hashes (FineIBT).
	cfiSites = &tableName{".cfi_sites", "__cfi_sites", "__cfi_sites_end",
		[]string{"alternative_instructions"}}
	sealedEntries = &tableName{".ibt_endbr_seal", "__ibt_endbr_seal", "__ibt_endbr_seal_end",
		[]string{"alternative_instructions"}}
	kprobeBlacklist = &tableName{"_kprobe_blacklist", "__start_kprobe_blacklist", "__stop_kprobe_blacklist",
		[]string{"init_kprobes", "populate_kprobe_blacklist"}}
	userPointerMax = &tableName{"runtime_ptr_USER_PTR_MAX", "__start_runtime_ptr_USER_PTR_MAX", "__stop_runtime_ptr_USER_PTR_MAX",
		[]string{"arch_cpu_finalize_init"}}
	injectionList  = &tableName{"_error_injection_whitelist", "__start_error_injection_whitelist", "__stop_error_injection_whitelist", nil}
	rawTracepoints = &tableName{"__bpf_raw_tp_map", "__start__bpf_raw_tp", "__stop__bpf_raw_tp", nil}
	ftraceEvents   = &tableName{"_ftrace_events", "__start_ftrace_events", "__stop_ftrace_events", nil}
)
