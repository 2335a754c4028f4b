package report

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kprobelab/kprobes/probepoint"
)

// bpfSections are the kinds of section whose programs attach to the kernel's code, by
// the part before the slash of the section's name (libbpf, section_defs).
var bpfSections = map[string]Probe{
	"kprobe":           {Via: ViaPerf},
	"kretprobe":        {Via: ViaPerf, Return: true},
	"ksyscall":         {Via: ViaPerf, syscall: true},
	"kretsyscall":      {Via: ViaPerf, syscall: true, Return: true},
	"kprobe.multi":     {Via: ViaMulti},
	"kretprobe.multi":  {Via: ViaMulti, Return: true},
	"kprobe.session":   {Via: ViaMulti, Return: true},
	"fentry":           {Via: ViaTrampoline},
	"fentry.s":         {Via: ViaTrampoline, asleep: true},
	"fexit":            {Via: ViaTrampoline, Return: true},
	"fexit.s":          {Via: ViaTrampoline, Return: true, asleep: true},
	"fmod_ret":         {Via: ViaTrampoline, Return: true},
	"fmod_ret.s":       {Via: ViaTrampoline, Return: true, asleep: true},
	"lsm":              {Via: ViaTrampoline},
	"lsm.s":            {Via: ViaTrampoline, asleep: true},
	"iter":             {Via: ViaIterator},
	"iter.s":           {Via: ViaIterator, asleep: true},
	"tracepoint":       {Via: ViaTracepoint},
	"tp":               {Via: ViaTracepoint},
	"raw_tracepoint":   {Via: ViaRaw},
	"raw_tp":           {Via: ViaRaw},
	"raw_tracepoint.w": {Via: ViaRaw},
	"raw_tp.w":         {Via: ViaRaw},
	"tp_btf":           {Via: ViaRaw},
}

// Reasons why a program has no answer.
const (
	unaskedPlace  = "the section names no place: the tool chooses one at run time"
	unaskedUser   = "it probes a program in user space, which is not in a kernel's image"
	unaskedOther  = "a program of this kind attaches to no place in the kernel's code"
	unaskedTarget = "it takes the place of a function of another program, which the tool names at run time"
	unaskedNewer  = "only loaders newer than libbpf 1.5 know the kind, and the kernels' answers are not known here"
)

// unaskedSections lists the other kinds of section that loaders know. A name that ends in a slash
// matches all sections that begin with it. Any other name matches itself; if more is true, it
// also matches itself with a slash and further text.
var unaskedSections = []struct {
	names []string
	more  bool
	why   string
}{
	{[]string{
		"uprobe", "uprobe.s", "uretprobe", "uretprobe.s", "uprobe.multi", "uprobe.multi.s", "uretprobe.multi", "uretprobe.multi.s",
		"usdt", "usdt.s",
	}, true, unaskedUser},
	{[]string{"freplace"}, true, unaskedTarget},
	{[]string{"struct_ops", "struct_ops.s", "lsm_cgroup"}, true, unaskedOther},
	{[]string{
		"socket", "sk_reuseport/migrate", "sk_reuseport", "tc/ingress", "tc/egress", "tcx/ingress", "tcx/egress", "tc", "classifier", "action",
		"netkit/primary", "netkit/peer", "syscall", "xdp.frags/devmap", "xdp/devmap", "xdp.frags/cpumap", "xdp/cpumap", "xdp.frags", "xdp",
		"perf_event", "lwt_in", "lwt_out", "lwt_xmit", "lwt_seg6local", "sockops", "sk_skb/stream_parser", "sk_skb/stream_verdict",
		"sk_skb/verdict", "sk_skb", "sk_msg", "lirc_mode2", "flow_dissector", "cgroup_skb/", "cgroup/", "sk_lookup", "netfilter",
	}, false, unaskedOther},
	{[]string{
		"uprobe.session", "uprobe.session.s", "tp.s", "tracepoint.s", "raw_tp.s", "raw_tracepoint.s", "tp_btf.s", "fsession", "fsession.s",
		"fentry.multi", "fentry.multi.s", "fexit.multi", "fexit.multi.s", "fsession.multi", "fsession.multi.s",
	}, true, unaskedNewer},
}

// unasked says why programs of a section have no answer, "" if loaders do not know the section.
func unasked(section string) string {
	for i := range unaskedSections {
		list := &unaskedSections[i]
		for _, name := range list.names {
			rest, ok := strings.CutPrefix(section, name)
			if ok && (rest == "" || strings.HasSuffix(name, "/") || list.more && rest[0] == '/') {
				return list.why
			}
		}
	}
	return ""
}

// bpfProbes lists the programs of a compiled BPF object in the order of its
// sections.
func bpfProbes(object []byte) ([]Probe, error) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("not an ELF object: %w", err)
	}
	if f.Machine != elf.EM_BPF {
		return nil, fmt.Errorf("the object is not for BPF, but for %s", strings.TrimPrefix(f.Machine.String(), "EM_"))
	}
	symbols, err := f.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, err
	}
	var list []Probe
	source := readLines(f, symbols)
	for i, s := range f.Sections {
		// .text has the functions that programs call.
		if s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_EXECINSTR == 0 || s.Size == 0 || s.Name == ".text" {
			continue
		}
		p := sectionProbe(s.Name)
		for _, program := range programs(symbols, elf.SectionIndex(i)) {
			p.Program = printable(program.Name)
			at := source[begin{s.Name, program.Value}]
			p.File, p.Line = at.file, at.line
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("the object has no program")
	}
	return list, nil
}

// sectionProbe reads a section's name; a question mark before it asks loaders
// not to load the program by themselves.
func sectionProbe(section string) Probe {
	name := strings.TrimPrefix(section, "?")
	kind, place, slash := strings.Cut(name, "/")
	p, ok := bpfSections[kind]
	p.Text, p.kind, p.place, p.Optional = printable(section), strings.TrimSuffix(kind, ".s"), place, name != section
	switch {
	case !ok:
		if p.unasked = unasked(name); p.unasked == "" {
			p.badSection = "libbpf knows no section of this kind"
		}
	case !slash:
		p.unasked = unaskedPlace
	default:
		p.readPlace()
	}
	return p
}

// readPlace reads what stands after the slash as libbpf does.
func (p *Probe) readPlace() {
	switch p.Via {
	case ViaPerf:
		if p.syscall {
			return
		}
		n := strings.IndexFunc(p.place, func(r rune) bool { return !isNameRune(r) })
		name, rest := p.place, ""
		if n >= 0 {
			name, rest = p.place[:n], p.place[n:]
		}
		off := scannedOffset(rest)
		switch {
		case name == "":
			p.badSection = "no function's name begins there"
		case p.Return && off != 0:
			p.badSection = "a return probe takes no offset"
		}
		p.request = &probepoint.Request{Symbol: name, Offset: uint32(off)}
		if p.place = name; off != 0 {
			p.place = fmt.Sprintf("%s+%#x", name, off)
		}
	case ViaMulti:
		// The name ends at the first other character.
		if n := strings.IndexFunc(p.place, func(r rune) bool { return !isNameRune(r) && r != '*' && r != '?' }); n >= 0 {
			p.place = p.place[:n]
		}
		if p.place == "" {
			p.badSection = "no pattern begins there"
		}
	case ViaTracepoint:
		if !strings.Contains(p.place, "/") {
			p.badSection = "an event is SYSTEM/NAME"
		}
	}
}

func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.'
}

// scannedOffset returns the offset that scanf reads by "+%li", 0 if it reads none. Characters
// after the number do not matter.
func scannedOffset(text string) uint64 {
	text, ok := strings.CutPrefix(text, "+")
	if !ok {
		return 0
	}
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	negative := strings.HasPrefix(text, "-")
	if negative || strings.HasPrefix(text, "+") {
		text = text[1:]
	}
	base, lower := 10, strings.ToLower(text)
	switch {
	case strings.HasPrefix(lower, "0x"):
		base, text = 16, text[2:]
	case strings.HasPrefix(lower, "0b"):
		base, text = 2, text[2:]
	case strings.HasPrefix(lower, "0"):
		base = 8
	}
	end := strings.IndexFunc(text, func(r rune) bool {
		_, err := strconv.ParseUint(string(r), base, 8)
		return err != nil
	})
	if end >= 0 {
		text = text[:end]
	}
	off, err := strconv.ParseUint(text, base, 63)
	if err != nil && text != "" {
		off = 1<<63 - 1
	}
	if negative {
		return -off
	}
	return off
}

// programs are the functions in a section.
func programs(symbols []elf.Symbol, section elf.SectionIndex) (list []elf.Symbol) {
	for _, s := range symbols {
		if s.Section == section && elf.ST_TYPE(s.Info) == elf.STT_FUNC && elf.ST_BIND(s.Info) == elf.STB_GLOBAL {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		list = []elf.Symbol{{}}
	}
	return list
}
