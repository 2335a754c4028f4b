//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"kprobelab/internal/bounded"
)

// withoutWeak makes weak maps (libbpf's usdt.bpf.h has some) global ones, and weak external variables of the kernel's configuration
// (extern int CONFIG_X __kconfig __weak), whose names it returns: cilium/ebpf 0.22 refuses a whole object for a weak one. A damaged object
// stays as it is: the reader says what is wrong with it.
func withoutWeak(object []byte) (global []byte, weak []string) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil || f.Class != elf.ELFCLASS64 {
		return object, nil
	}
	defer f.Close()
	table := f.SectionByType(elf.SHT_SYMTAB)
	symbols, err := f.Symbols()
	if err != nil || table == nil || table.Offset > uint64(len(object)) {
		return object, nil
	}
	global = slices.Clone(object)
	for i, s := range symbols {
		variable := s.Section == elf.SHN_UNDEF && (strings.HasPrefix(s.Name, "CONFIG_") || strings.HasPrefix(s.Name, "LINUX_"))
		isMap := s.Section > elf.SHN_UNDEF && int(s.Section) < len(f.Sections) && f.Sections[s.Section].Name == ".maps"
		if elf.ST_BIND(s.Info) != elf.STB_WEAK || !variable && !isMap {
			continue
		}
		// Symbols leaves out the first, which is empty. st_info is the fifth byte of a symbol.
		if at := table.Offset + uint64(i+1)*elf.Sym64Size + 4; at < uint64(len(global)) {
			global[at] = elf.ST_INFO(elf.STB_GLOBAL, elf.ST_TYPE(s.Info))
			if variable {
				weak = append(weak, s.Name)
			}
		}
	}
	return global, weak
}

// cookies is the variable that says whether probes carry cookies.
const cookies = "LINUX_HAS_BPF_COOKIE"

// settled are the values of variables of .kconfig for which cilium/ebpf has an error, as libbpf has them: 0 for weak ones that the kernel's
// configuration does not have. Without a configuration the library says so itself.
func settled(object []byte, weak []string) map[string]uint64 {
	values := map[string]uint64{}
	if bytes.Contains(object, []byte(cookies+"\x00")) {
		values[cookies] = 0
		if hasCookies() {
			values[cookies] = 1
		}
	}
	if len(weak) == 0 {
		return values
	}
	config, err := configuration()
	if err != nil {
		return values
	}
	for _, name := range weak {
		if strings.HasPrefix(name, "CONFIG_") && !bytes.Contains(config, []byte("\n"+name+"=")) {
			values[name] = 0
		}
	}
	return values
}

// leaveOut takes variables that have their values elsewhere out of .kconfig.
func leaveOut(spec *ebpf.CollectionSpec, values map[string]uint64) {
	var all *btf.Datasec
	if len(values) == 0 || spec.Types == nil || spec.Types.TypeByName(".kconfig", &all) != nil {
		return
	}
	all.Vars = slices.DeleteFunc(all.Vars, func(v btf.VarSecinfo) bool {
		_, elsewhere := values[v.Type.TypeName()]
		return elsewhere
	})
}

// hasCookies reports whether a program can ask for the number that its attachment has.
func hasCookies() bool { return features.HaveProgramHelper(ebpf.Kprobe, asm.FnGetAttachCookie) == nil }

// withoutNames gives variables of the kernel's configuration the types that names and qualifiers stand for: cilium/ebpf 0.22 wants
// LINUX_KERNEL_VERSION of type int, and objects have __u32.
func withoutNames(spec *ebpf.CollectionSpec) {
	var all *btf.Datasec
	if spec.Types == nil || spec.Types.TypeByName(".kconfig", &all) != nil {
		return
	}
	for _, v := range all.Vars {
		if v, ok := v.Type.(*btf.Var); ok {
			v.Type = btf.UnderlyingType(v.Type)
		}
	}
}

// configuration reads the kernel's configuration from where cilium/ebpf does, after an empty line.
func configuration() ([]byte, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return nil, err
	}
	text, err := bounded.ReadFile("/boot/config-"+unix.ByteSliceToString(u.Release[:]), bounded.Configuration)
	if err == nil {
		return append([]byte("\n"), text...), nil
	}
	packed, err := bounded.ReadFile("/proc/config.gz", bounded.Configuration)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err = bounded.ReadAll(z, bounded.Configuration)
	return append([]byte("\n"), text...), err
}
