package kimage

import (
	"maps"
	"slices"
	"strings"

	"kprobelab/internal/cpumodel"
)

// cpuModel is a processor as /proc/cpuinfo describes it: CPUID's features by the
// kernel's names, and the bugs that the kernel knows of it. cpuFeatures decides what a
// kernel does with them.
type cpuModel struct {
	name, vendor  string
	family, model int
	flags, bugs   map[string]bool
	// threads: a core has several. The named processors' have one.
	threads bool
	// updated: its microcode counts as up to date. The named processors' microcode does not.
	updated bool
}

// The vendors as CPUID names them.
const (
	vendorAMD   = "AuthenticAMD"
	vendorIntel = "GenuineIntel"
	vendorHygon = "HygonGenuine"
)

func (m *cpuModel) amd() bool { return m.vendor == vendorAMD || m.vendor == vendorHygon }

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
	{"qemu64", vendorAMD, 15, 107, k8Flags, k8Bugs + "amd_e400 swapgs_fence"},
	{"kvm64", vendorIntel, 15, 6, "constant_tsc", intelBugs + "itlb_multihit mmio_unknown"},
	{"Nehalem", vendorIntel, 6, 26, nehalemFlags, intelBugs + "itlb_multihit mmio_unknown"},
	{"Haswell", vendorIntel, 6, 60, haswellFlags, intelBugs + "itlb_multihit mmio_unknown srbds"},
	{"Broadwell", vendorIntel, 6, 61, haswellFlags + " 3dnowprefetch adx rdseed smap", intelBugs + "itlb_multihit mmio_unknown srbds"},
	{"Skylake-Client", vendorIntel, 6, 94, skylakeFlags, intelBugs + "gds itlb_multihit mmio_stale_data retbleed srbds"},
	{"Cascadelake-Server", vendorIntel, 6, 85, serverFlags, intelBugs + "gds itlb_multihit mmio_stale_data retbleed"},
	{"Icelake-Server", vendorIntel, 6, 134, icelakeFlags + " la57", intelBugs + "mmio_stale_data rfds"},
	{"GraniteRapids", vendorIntel, 6, 173, rapidsFlags + " la57", intelBugs + "itlb_multihit mmio_unknown"},
	{"DiamondRapids", vendorIntel, 19, 1, rapidsFlags + " la57 ss", intelBugs + "itlb_multihit mmio_unknown"},
	{"SierraForest", vendorIntel, 6, 175, rapidsFlags, intelBugs + "itlb_multihit mmio_unknown"},
	{"ClearwaterForest", vendorIntel, 6, 221, rapidsFlags + " ss", intelBugs + "itlb_multihit mmio_unknown"},
	{"EPYC", vendorAMD, 23, 1, zenFlags + " rdseed ssbd", zenBugs + "div0 retbleed smt_rsb"},
	{"EPYC-Rome", vendorAMD, 23, 49, romeFlags + " rdseed ssbd", lateZenBugs + "null_seg retbleed smt_rsb"},
	{"EPYC-Milan", vendorAMD, 25, 1, milanFlags + " rdseed", lateZenBugs + "null_seg tsa"},
	{"EPYC-Genoa", vendorAMD, 25, 17, genoaFlags + " rdseed", lateZenBugs + "tsa"},
	{"EPYC-Turin", vendorAMD, 26, 0, turinFlags, lateZenBugs + "tsa"},
}

func (r *modelRow) model() *cpuModel {
	return &cpuModel{
		name: r.name, vendor: r.vendor, family: r.family, model: r.number,
		flags: wordSet(baseFlags + " " + r.flags), bugs: wordSet(r.bugs),
	}
}

func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(s) {
		set[w] = true
	}
	return set
}

// DefaultCPU is the processor for which the text is made by default.
const DefaultCPU = cpumodel.Default

// HostCPU in place of a model is the processor that this program runs on, as
// its kernel describes it.
const HostCPU = "host"

// CPUModels lists the processors that Options.CPU takes by name, sorted.
func CPUModels() []string {
	var names []string
	for i := range modelRows {
		names = append(names, modelRows[i].name)
	}
	slices.Sort(names)
	return names
}

// namedModel finds a model by its name in any case.
func namedModel(name string) *cpuModel {
	for i := range modelRows {
		if strings.EqualFold(modelRows[i].name, name) {
			return modelRows[i].model()
		}
	}
	return nil
}

// Processor is the one that the boot-time text was made for, or the kernel booted on.
func (img *Image) Processor() Processor {
	img.processor.once.Do(func() {
		m := img.cpu
		if m == nil {
			m = namedModel(DefaultCPU)
		}
		img.processor.p = m.processor()
	})
	return img.processor.p
}

// processor returns a Processor that has the extensions in flags.
func (m *cpuModel) processor() Processor {
	p := cpumodel.WithFlags(m.vendor, func(flag string) bool { return m.flags[flag] })
	return &p
}

// NamedProcessor is a processor for code that belongs to no image, as Options.CPU writes
// it. What is not known is an ErrCPU.
func NamedProcessor(name string) (Processor, error) {
	m, err := parseCPU(name, func(flag string) bool { return namedFeatures[flag] != 0 }, cpumodel.Flags)
	if err != nil {
		return nil, err
	}
	return m.processor(), nil
}

// clone is a copy that may be changed.
func (m *cpuModel) clone() *cpuModel {
	c := *m
	c.flags, c.bugs = maps.Clone(m.flags), maps.Clone(m.bugs)
	return &c
}
