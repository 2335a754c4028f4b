// Package processor knows the processors for which a kernel's text is made: named ones, the host's,
// and what a file in the form of /proc/cpuinfo describes.
//
// It must not know of images, or of what a kernel does for a processor.
package processor

import (
	"maps"
	"slices"
	"strings"

	"kprobelab/internal/cpumodel"
)

// Model is a processor as /proc/cpuinfo describes it: CPUID's features by the
// kernel's names, and the bugs that the kernel knows of it.
type Model struct {
	Name, Vendor   string
	Family, Number int
	Flags, Bugs    map[string]bool
	// Threads: a core has several. The named processors' have one.
	Threads bool
	// Updated: its microcode counts as up to date. The named processors' microcode does not.
	Updated bool
}

// The vendors as CPUID names them.
const (
	AMD   = "AuthenticAMD"
	Intel = "GenuineIntel"
	Hygon = "HygonGenuine"
)

// IsAMD reports whether the vendor is AMD, or Hygon.
func (m *Model) IsAMD() bool { return m.Vendor == AMD || m.Vendor == Hygon }

// modelRow is a processor known by name: flags in addition to baseFlags.
type modelRow struct {
	name, vendor   string
	family, number int
	flags, bugs    string
}

const (
	baseFlags = "apic clflush cmov cpuid cx16 cx8 de fpu fxsr ht hypervisor lm mca mce mmx msr mtrr nopl nx pae pat " +
		"pge pni pse pse36 sep sse sse2 syscall tsc xtopology"
	nehalemFlags = "constant_tsc lahf_lm popcnt rep_good sse4_1 sse4_2 ssse3"
	avxFlags     = " abm aes arat avx avx2 bmi1 bmi2 f16c fma fsgsbase movbe pclmulqdq rdrand rdtscp smep xsave xsaveopt"
	haswellFlags = nehalemFlags + avxFlags + " erms x2apic"
	skylakeFlags = haswellFlags + " 3dnowprefetch adx rdseed smap xgetbv1"
	serverFlags  = skylakeFlags + " clflushopt clwb ospke pdpe1gb pku"
	icelakeFlags = serverFlags + " umip vaes wbnoinvd"
	rapidsFlags  = icelakeFlags + " fsrm fsrs rdpid sha_ni"
	k8Flags      = "3dnowprefetch cmp_legacy extd_apicid lahf_lm rep_good svm vmmcall"
	zenFlags     = k8Flags + avxFlags + " adx clflushopt cr8_legacy mmxext monitor npt pdpe1gb popcnt sha_ni smap sse4_1 sse4_2 sse4a ssse3 xgetbv1"
	romeFlags    = zenFlags + " clwb rdpid umip wbnoinvd xsaveerptr"
	milanFlags   = romeFlags + " erms fsrm fsrs ospke pku"
	genoaFlags   = milanFlags + " la57 vaes"
	turinFlags   = genoaFlags + " vgif"

	intelBugs = "bhi cpu_meltdown its l1tf mds spec_store_bypass spectre_v1 spectre_v2 swapgs "
	k8Bugs    = "fxsave_leak null_seg spectre_v1 spectre_v2 sysret_ss_attrs "
	zenBugs   = k8Bugs + "spec_store_bypass srso "
	// lateZenBugs are the bugs of processors with xsaveerptr.
	lateZenBugs = "spec_store_bypass spectre_v1 spectre_v2 srso sysret_ss_attrs "
)

// modelRows are QEMU 11.1's processors under software emulation, as kernels 6.12
// and 7.3 describe them, and with fsrs, which they do not show. Features that QEMU
// cannot emulate are not among them.
var modelRows = []modelRow{
	{"qemu64", AMD, 15, 107, k8Flags, k8Bugs + "amd_e400 swapgs_fence"},
	{"kvm64", Intel, 15, 6, "constant_tsc", intelBugs + "itlb_multihit mmio_unknown"},
	{"Nehalem", Intel, 6, 26, nehalemFlags, intelBugs + "itlb_multihit mmio_unknown"},
	{"Haswell", Intel, 6, 60, haswellFlags, intelBugs + "itlb_multihit mmio_unknown srbds"},
	{"Broadwell", Intel, 6, 61, haswellFlags + " 3dnowprefetch adx rdseed smap", intelBugs + "itlb_multihit mmio_unknown srbds"},
	{"Skylake-Client", Intel, 6, 94, skylakeFlags, intelBugs + "gds itlb_multihit mmio_stale_data retbleed srbds"},
	{"Cascadelake-Server", Intel, 6, 85, serverFlags, intelBugs + "gds itlb_multihit mmio_stale_data retbleed"},
	{"Icelake-Server", Intel, 6, 134, icelakeFlags + " la57", intelBugs + "mmio_stale_data rfds"},
	{"GraniteRapids", Intel, 6, 173, rapidsFlags + " la57", intelBugs + "itlb_multihit mmio_unknown"},
	{"DiamondRapids", Intel, 19, 1, rapidsFlags + " la57 ss", intelBugs + "itlb_multihit mmio_unknown"},
	{"SierraForest", Intel, 6, 175, rapidsFlags, intelBugs + "itlb_multihit mmio_unknown"},
	{"ClearwaterForest", Intel, 6, 221, rapidsFlags + " ss", intelBugs + "itlb_multihit mmio_unknown"},
	{"EPYC", AMD, 23, 1, zenFlags + " rdseed ssbd", zenBugs + "div0 retbleed smt_rsb"},
	{"EPYC-Rome", AMD, 23, 49, romeFlags + " rdseed ssbd", lateZenBugs + "null_seg retbleed smt_rsb"},
	{"EPYC-Milan", AMD, 25, 1, milanFlags + " rdseed", lateZenBugs + "null_seg tsa"},
	{"EPYC-Genoa", AMD, 25, 17, genoaFlags + " rdseed", lateZenBugs + "tsa"},
	{"EPYC-Turin", AMD, 26, 0, turinFlags, lateZenBugs + "tsa"},
}

func (r *modelRow) model() *Model {
	return &Model{
		Name: r.name, Vendor: r.vendor, Family: r.family, Number: r.number,
		Flags: Words(baseFlags + " " + r.flags), Bugs: Words(r.bugs),
	}
}

// Words makes a set of the words of a text.
func Words(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(s) {
		set[w] = true
	}
	return set
}

// Host in place of a model is the processor that this program runs on, as
// its kernel describes it.
const Host = "host"

// Names lists the processors that Parse takes by name, sorted.
func Names() []string {
	var names []string
	for i := range modelRows {
		names = append(names, modelRows[i].name)
	}
	slices.Sort(names)
	return names
}

// Named finds a model by its name in any case.
func Named(name string) *Model {
	for i := range modelRows {
		if strings.EqualFold(modelRows[i].name, name) {
			return modelRows[i].model()
		}
	}
	return nil
}

// Processor returns a processor that has the extensions in flags.
func (m *Model) Processor() *cpumodel.Processor {
	p := cpumodel.WithFlags(m.Vendor, func(flag string) bool { return m.Flags[flag] })
	return &p
}

// Clone is a copy that may be changed.
func (m *Model) Clone() *Model {
	c := *m
	c.Flags, c.Bugs = maps.Clone(m.Flags), maps.Clone(m.Bugs)
	return &c
}

// Has reports whether the processor has all of the flags.
func (m *Model) Has(flags ...string) bool {
	for _, f := range flags {
		if !m.Flags[f] {
			return false
		}
	}
	return true
}
