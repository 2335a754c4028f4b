package kimage

import (
	"bytes"
	"maps"
	"slices"

	"kprobelab/kimage/internal/opened"
	"kprobelab/kimage/internal/patch"
	"kprobelab/x86"
)

// feature is a CPU feature or bug as alternatives name it: word * 32 + bit
// (cpufeatures.h).
type feature uint16

func feat(word, bit feature) feature { return word*32 + bit }

// Features without a name in /proc/cpuinfo, which the kernel defines for its
// own use. Their numbers are the same from 5.10 to 6.12; two features have
// moved, and have more than one number here.
const (
	featAlways      = feature(3*32 + 21)
	featK8          = feature(3*32 + 4)
	featSyscall32   = feature(3*32 + 14)
	featSysenter32  = feature(3*32 + 15)
	featRepGood     = feature(3*32 + 16)
	featMfence      = feature(3*32 + 17)
	featLfence61    = feature(3*32 + 18)
	featLfence63    = feature(20*32 + 2)
	featOSXSAVE     = feature(4*32 + 27)
	featFSGSBASE    = feature(9*32 + 0)
	featPTI         = feature(7*32 + 11)
	featKernelIBRS  = feature(7*32 + 12)
	featSpecCtrl    = feature(7*32 + 16)
	featRSBSwitch   = feature(7*32 + 19)
	featUseIBPB     = feature(7*32 + 21)
	featFirmware    = feature(7*32 + 22)
	featLSCfgSSBD   = feature(7*32 + 24)
	featZen         = feature(7*32 + 28)
	featSwapgsUser  = feature(11*32 + 4)
	featSwapgs      = feature(11*32 + 5)
	featEntryIBPB   = feature(11*32 + 10)
	featRetpoline   = feature(11*32 + 12)
	featRethunk     = feature(11*32 + 14)
	featUnret       = feature(11*32 + 15)
	featSRSO        = feature(11*32 + 24)
	featSRSOAlias   = feature(11*32 + 25)
	featIndirectITS = feature(11*32 + 27)
)

// namedFeatures are the features of /proc/cpuinfo that alternatives test, for an image that
// does not have the names itself. Words that CPUID fills are the same in every release.
var namedFeatures = map[string]feature{
	"clflush": feat(0, 19), "ss": feat(0, 27), "nx": feat(1, 20), "pdpe1gb": feat(1, 26), "rdtscp": feat(1, 27),
	"rep_good": feat(3, 16), "monitor": feat(4, 3), "cx16": feat(4, 13), "pcid": feat(4, 17), "popcnt": feat(4, 23),
	"xsave": feat(4, 26), "rdrand": feat(4, 30), "hypervisor": feat(4, 31), "3dnowprefetch": feat(6, 8),
	"vmmcall": feat(8, 15), "fsgsbase": feat(9, 0), "tsc_adjust": feat(9, 1), "erms": feat(9, 9), "invpcid": feat(9, 10),
	"avx512f": feat(9, 16), "rdseed": feat(9, 18), "smap": feat(9, 20), "clflushopt": feat(9, 23), "clwb": feat(9, 24),
	"xsaveopt": feat(10, 0), "xsavec": feat(10, 1), "xsaves": feat(10, 3), "umip": feat(16, 2), "pku": feat(16, 3),
	"ospke": feat(16, 4), "waitpkg": feat(16, 5), "la57": feat(16, 16), "fsrm": feat(18, 4), "serialize": feat(18, 14),
}

// hiddenFeatures are features that processors have and alternatives test, but
// /proc/cpuinfo does not show.
var hiddenFeatures = map[string]feature{"fsrs": feat(12, 11)}

// featureNames are an image's own names of features and bugs.
type featureNames struct {
	flags, bugs map[string]feature
}

// featureNames reads x86_cap_flags and x86_bug_flags, from which the kernel
// prints /proc/cpuinfo. The bugs' words follow the features'.
func (img *Image) featureNames() featureNames {
	n := featureNames{bugs: map[string]feature{}}
	flags, bugs := img.flagTables()
	n.flags = img.stringTable(flags, 0)
	if len(n.flags) == 0 {
		n.flags = maps.Clone(namedFeatures)
		maps.Copy(n.flags, hiddenFeatures)
		return n
	}
	maps.Copy(n.flags, hiddenFeatures)
	n.bugs = img.stringTable(bugs, feature(flags.End.Sub(flags.Start)/8/32*32))
	return n
}

// flagTables are the arrays of the names of features and bugs, where their symbols
// say, or where their first names are found (in the order of features.h).
func (img *Image) flagTables() (flags, bugs x86.Range) {
	if flags, bugs = img.symbolRange("x86_cap_flags"), img.symbolRange("x86_bug_flags"); flags.End != 0 || !img.bounds.onlyText {
		return flags, bugs
	}
	return newUnnamed(img).flagTables()
}

// symbolRange returns the addresses that the image's first symbol of that name covers;
// the zero Range if there is none.
func (img *Image) symbolRange(name string) x86.Range {
	at, ok := img.symbolAddr(name)
	s, found := img.SymbolAt(at)
	if !ok || !found {
		return x86.Range{}
	}
	return x86.Range{Start: at, End: at.Add(int64(s.Size))}
}

// stringTable reads an array of pointers to names; base is the first one's number.
func (img *Image) stringTable(r x86.Range, base feature) map[string]feature {
	table := map[string]feature{}
	for i := range uint64(r.End-r.Start) / 8 {
		slot := img.bytes(r.Start.Add(int64(8*i)), 8)
		if slot == nil {
			break
		}
		if name := img.cString(opened.Abs64(slot)); name != "" {
			table[name] = base + feature(i)
		}
	}
	return table
}

// maxFlagName bounds a feature's name in bytes.
const maxFlagName = 32

// cString reads a short string, "" if there is none.
func (img *Image) cString(at x86.Addr) string {
	b := img.bytes(at, maxFlagName)
	if b == nil {
		return ""
	}
	name, _, ended := bytes.Cut(b, []byte{0})
	if !ended {
		return ""
	}
	return string(name)
}

// usedFlags lists the named features that the image's alternatives test.
func (img *Image) usedFlags(names featureNames) []string {
	list, _ := tableOwner{img: img}.alternatives()
	used := map[feature]bool{}
	for i := range list {
		used[list[i].feature] = true
	}
	var out []string
	for name, f := range names.flags {
		if used[f] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// verw begins the instruction that a kernel runs to clear the processor's buffers:
// verw displacement(%rip).
var verw = []byte{0x0f, 0x00, 0x2d}

// shortJumpSize is the length of a jmp rel8.
const shortJumpSize = 2

// clearBuffers returns the features on which a verw depends: X86_FEATURE_CLEAR_CPU_BUF
// moved from release to release, and only its use tells it. The verw is the
// replacement, or (to 6.6) it is skipped by a jump that is replaced by nothing.
func (img *Image) clearBuffers(list []alternative) map[feature]bool {
	found := map[feature]bool{}
	for _, a := range list {
		code := img.bytes(a.repl, a.replLen)
		if a.replLen == 0 && a.addrLen == shortJumpSize {
			code = img.bytes(a.addr+shortJumpSize, len(verw))
		}
		if bytes.HasPrefix(code, verw) {
			found[a.feature] = true
		}
	}
	return found
}

// clearHistory returns the features on which a call of the code that clears the branch history
// depends.
func (img *Image) clearHistory(list []alternative) map[feature]bool {
	found := map[feature]bool{}
	clear, ok := img.symbolAddr("clear_bhb_loop")
	for _, a := range list {
		b := img.bytes(a.repl, a.replLen)
		if ok && len(b) >= 5 && b[0] == x86.Call32 && opened.Rel32(a.repl+5, b[1:]) == clear {
			found[a.feature] = true
		}
	}
	return found
}

// fencedMSRs are the features on which it depends that writes to the local APIC's registers are
// fenced: mfence and lfence become nothing without the feature.
func (img *Image) fencedMSRs(list []alternative) map[feature]bool {
	found := map[feature]bool{}
	for _, a := range list {
		if a.not && a.replLen == 0 && bytes.Equal(img.bytes(a.addr, a.addrLen), append(slices.Clone(mfence), patch.Lfence...)) {
			found[a.feature] = true
		}
	}
	return found
}
