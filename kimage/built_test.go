package kimage

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage/evidence"
	"kprobelab/profile"
)

// everyKernels are functions without which an image counts as one with some of its symbols only.
var everyKernels = []string{"start_kernel", "schedule", "panic", "kfree", "do_exit", "vfs_read", "register_die_notifier"}

// kernelWith is a kernel that has these functions besides, and a text in its data.
func kernelWith(text string, functions ...string) []byte {
	symbols := testKernelSymbols()
	for _, name := range functions {
		symbols = append(symbols, Symbol{Name: name, Type: 'T', Addr: testBase + 0x70})
	}
	slices.SortStableFunc(symbols, func(a, b Symbol) int { return cmp.Compare(a.Addr, b.Addr) })
	return testKernelOf(v61, symbols, text)
}

// TestBuiltWith: what a kernel is built with is a fact, by the configuration, symbols, or what
// stands in its data; an image without symbols says nothing.
func TestBuiltWith(t *testing.T) {
	whole := everyKernels
	with := func(names ...string) []string { return append(slices.Clone(whole), names...) }
	kprobes := with("register_kprobe")
	events := with("register_kprobe", "kprobe_dispatcher", "perf_kprobe_init")
	for name, c := range map[string]struct {
		functions  []string
		text       string
		config     string
		off, on    []string
		from       evidence.Source
		says       string
		ofField    string
		nothingYet bool
	}{
		"symbols_without_kprobes":     {whole, "", "", []string{"Built.Kprobes", "Tracing.Exists", "Built.PerfProbes"}, nil, evidence.Symbolic, "no symbol register_kprobe", "Built.Kprobes", false},
		"symbols_of_kprobes":          {kprobes, "", "", []string{"Tracing.Exists", "Built.PerfProbes"}, []string{"Built.Kprobes"}, evidence.Symbolic, "symbol register_kprobe", "Built.Kprobes", false},
		"one_symbol_is_missing":       {with("get_kprobe"), "", "", nil, []string{"Built.Kprobes"}, evidence.Symbolic, "symbol get_kprobe", "Built.Kprobes", false},
		"symbols_stripped":            {nil, "", "", nil, []string{"Built.Kprobes", "Tracing.Exists", "Built.BPF"}, "", "", "", true},
		"some_symbols_only":           {whole[1:], "", "", nil, []string{"Built.Kprobes", "Tracing.Exists", "Built.BPF"}, "", "", "", true},
		"a_message_of_kprobes":        {whole, "\x00Dumping kprobe:\n\x00", "", nil, []string{"Built.Kprobes"}, evidence.Coded, "Dumping kprobe:", "Built.Kprobes", false},
		"configuration_says_no":       {events, "", "# CONFIG_KPROBES is not set\n", []string{"Built.Kprobes", "Tracing.Exists", "Built.PerfProbes"}, nil, evidence.Configured, "CONFIG_KPROBES=n", "Built.Kprobes", false},
		"configuration_of_no_events":  {events, "", "CONFIG_KPROBES=y\n# CONFIG_KPROBE_EVENTS is not set\n", []string{"Tracing.Exists", "Built.PerfProbes"}, []string{"Built.Kprobes"}, evidence.Configured, "CONFIG_KPROBE_EVENTS=n", "Tracing.Exists", false},
		"configuration_against_none":  {whole, "", "CONFIG_KPROBES=y\nCONFIG_KPROBE_EVENTS=y\n", nil, []string{"Built.Kprobes", "Tracing.Exists"}, evidence.Configured, "CONFIG_KPROBES=y", "Built.Kprobes", false},
		"configuration_lacks_options": {whole, "", "CONFIG_KALLSYMS=y\n", []string{"Built.Kprobes", "Tracing.Exists", "Built.BPF"}, nil, evidence.Symbolic, "no symbol register_kprobe", "Built.Kprobes", false},
		"part_of_a_configuration":     {events, "", "CONFIG_KALLSYMS=y\n", nil, []string{"Built.Kprobes", "Tracing.Exists"}, evidence.Symbolic, "symbol register_kprobe", "Built.Kprobes", false},
		"events_need_kprobes":         {with("kprobe_dispatcher"), "", "", []string{"Tracing.Exists"}, nil, evidence.Symbolic, "needs Built.Kprobes", "Tracing.Exists", false},
		"no_release_had_it_yet":       {whole, "", "CONFIG_FPROBE=y\n", []string{"Built.BPF", "Built.KprobeMulti"}, nil, "", "", "", false},
		"perf_needs_both":             {events, "", "# CONFIG_PERF_EVENTS is not set\nCONFIG_KPROBES=y\nCONFIG_KPROBE_EVENTS=y\n", []string{"Built.PerfProbes"}, []string{"Tracing.Exists"}, evidence.Configured, "CONFIG_PERF_EVENTS=n", "Built.PerfProbes", false},
		"symbol_of_kcfi":              {with("is_cfi_trap"), "", "", nil, []string{"Built.KCFI"}, evidence.Symbolic, "symbol is_cfi_trap", "Built.KCFI", false},
		"no_symbol_of_kcfi":           {whole, "", "", []string{"Built.KCFI"}, nil, evidence.Symbolic, "no symbol is_cfi_trap", "Built.KCFI", false},
		"configuration_of_kcfi":       {nil, "", "CONFIG_CFI_CLANG=y\n", nil, []string{"Built.KCFI"}, evidence.Configured, "CONFIG_CFI_CLANG=y", "Built.KCFI", false},
		"kcfi_by_its_newer_name":      {nil, "", "CONFIG_CFI=y\n", nil, []string{"Built.KCFI"}, evidence.Configured, "CONFIG_CFI=y", "Built.KCFI", false},
		"kcfi_switched_off":           {nil, "", "# CONFIG_CFI is not set\n", []string{"Built.KCFI"}, nil, evidence.Configured, "CONFIG_CFI=n", "Built.KCFI", false},
		"kcfi_of_which_nothing_tells": {whole[1:], "", "", []string{"Built.KCFI"}, nil, "", "", "", true},
		"bpf":                         {with("register_kprobe", "kprobe_dispatcher", "bpf_prog_new_fd", "trace_call_bpf"), "", "", []string{"Built.Trampolines", "Built.BPFLSM", "Built.KprobeMulti", "Built.Iterators", "Built.BTF"}, []string{"Built.BPF", "Built.BPFEvents"}, evidence.Symbolic, "symbol trace_call_bpf", "Built.BPFEvents", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Options{}
			if c.config != "" {
				o.Config = writeFile(t, "config", []byte(c.config))
			}
			img := openBytes(t, kernelWith(c.text, c.functions...), o)
			for _, field := range c.off {
				require.Equal(t, "false", img.Profile().Field(field), field)
			}
			for _, field := range c.on {
				require.Equal(t, "true", img.Profile().Field(field), field)
			}
			if c.ofField != "" {
				f := fact(t, img, c.ofField)
				require.Equal(t, c.from, f.From)
				require.Contains(t, f.Evidence, c.says)
			}
			for _, f := range img.Facts() {
				require.False(t, c.nothingYet && strings.HasPrefix(f.Name, "Built."), f.Name)
			}
		})
	}
}

// TestBuiltWithOtherRules: the rules of another release still describe this image's components.
func TestBuiltWithOtherRules(t *testing.T) {
	asked, _ := profile.Named("5.10")
	img := openBytes(t, kernelWith("", everyKernels...), &Options{Profile: asked})
	require.Equal(t, "5.10", img.Profile().Name)
	require.False(t, img.Profile().Built.Kprobes)
	require.True(t, asked.Built.Kprobes, "the caller's own is not changed")
	// No release has or lacks the checks of Clang.
	asked, _ = profile.Named("6.6")
	img = openBytes(t, kernelWith("", append(slices.Clone(everyKernels), "is_cfi_trap")...), &Options{Profile: asked})
	require.True(t, img.Profile().Built.KCFI)
}
