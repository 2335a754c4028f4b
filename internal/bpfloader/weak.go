//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"kprobelab/internal/bounded"
)

// withoutWeak makes weak external variables of the kernel's configuration (extern int CONFIG_X __kconfig __weak) global ones, and
// returns their names: cilium/ebpf 0.22 refuses a whole object for a weak one. A damaged object stays as it is: the reader says what is wrong with it.
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
		if elf.ST_BIND(s.Info) != elf.STB_WEAK || s.Section != elf.SHN_UNDEF || !strings.HasPrefix(s.Name, "CONFIG_") && !strings.HasPrefix(s.Name, "LINUX_") {
			continue
		}
		// Symbols leaves out the first, which is empty. st_info is the fifth byte of a symbol.
		if at := table.Offset + uint64(i+1)*elf.Sym64Size + 4; at < uint64(len(global)) {
			global[at] = elf.ST_INFO(elf.STB_GLOBAL, elf.ST_TYPE(s.Info))
			weak = append(weak, s.Name)
		}
	}
	return global, weak
}

// leaveZero takes weak variables that the kernel's configuration does not have out of .kconfig, so that they stay 0, as with libbpf.
// cilium/ebpf has an error for them. Without a configuration it says so itself.
func leaveZero(spec *ebpf.CollectionSpec, weak []string) {
	var all *btf.Datasec
	if len(weak) == 0 || spec.Types == nil || spec.Types.TypeByName(".kconfig", &all) != nil {
		return
	}
	config, err := configuration()
	if err != nil {
		return
	}
	all.Vars = slices.DeleteFunc(all.Vars, func(v btf.VarSecinfo) bool {
		name := v.Type.TypeName()
		return slices.Contains(weak, name) && strings.HasPrefix(name, "CONFIG_") && !bytes.Contains(config, []byte("\n"+name+"="))
	})
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
