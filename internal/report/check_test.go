package report_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
)

// checked asks the guest kernel about probes in text form.
func checked(t *testing.T, text string) []report.CheckRow {
	t.Helper()
	probes, err := report.ReadProbes(strings.NewReader(text))
	require.NoError(t, err)
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), nil)
	require.NoError(t, err)
	var c report.Check
	c.Add(report.OfImage(img), probes)
	return c.Probes
}

// Rule: a line is asked for in its own way, and says what the name is.
func TestCheckLines(t *testing.T) {
	for line, want := range map[string]struct {
		via                      report.Via
		ret                      bool
		found                    report.Found
		errno, kretprobe, events int
		runs, reason             string
	}{
		"vfs_read":                 {report.ViaRegister, false, report.FoundUnique, 0, 0, 0, "ftrace", ""},
		"vfs_read%return":          {report.ViaRegister, true, report.FoundUnique, 0, 0, 0, "ftrace", ""},
		"p vfs_read":               {report.ViaEvents, false, report.FoundUnique, 0, 0, 0, "ftrace", ""},
		"r16:a/b vfs_read $retval": {report.ViaEvents, true, report.FoundUnique, 0, 0, 0, "ftrace", ""},
		"p:x gcd%return":           {report.ViaEvents, true, report.FoundUnique, 0, 0, 0, "ftrace", ""},
		"gcd+0x5":                  {report.ViaRegister, false, report.FoundUnique, 0, -22, 0, "optimized", ""},
		"r:x gcd+0x5":              {report.ViaEvents, true, report.FoundUnique, -22, -22, -22, "optimized", "NOT_ENTRY"},
		"nothing_has_this":         {report.ViaRegister, false, report.FoundAbsent, -2, -2, -2, "", "UNKNOWN_SYMBOL"},
		"p nothing_has_this":       {report.ViaEvents, false, report.FoundAbsent, -2, -2, -2, "", "UNKNOWN_SYMBOL"},
		"vfs_read+1":               {report.ViaRegister, false, report.FoundUnique, -84, -22, -84, "", "NOT_BOUNDARY"},
		"some words":               {report.ViaRegister, false, report.FoundAbsent, -22, -22, -22, "", "BAD_LINE"},
		"vfs_read+x":               {report.ViaRegister, false, report.FoundAbsent, -22, -22, -22, "", "BAD_LINE"},
		"p:bad":                    {report.ViaEvents, false, report.FoundAbsent, -22, -2, -22, "", "BAD_DEFINITION"},
		"p:1a vfs_read":            {report.ViaEvents, false, report.FoundUnique, -22, 0, -22, "ftrace", "BAD_DEFINITION"},
		"p vfs_read a=%zz":         {report.ViaEvents, false, report.FoundUnique, -22, 0, -22, "ftrace", "BAD_DEFINITION"},
		"p vfs_read $retval":       {report.ViaEvents, false, report.FoundUnique, -22, 0, -22, "ftrace", "BAD_DEFINITION"},
		"p vfs_read a=@nosuch":     {report.ViaEvents, false, report.FoundUnique, -2, 0, -2, "ftrace", "BAD_DEFINITION"},
		"p vfs_read a=@jiffies":    {report.ViaEvents, false, report.FoundUnique, 0, 0, 0, "ftrace", ""},
		"p gcd+5 $arg1":            {report.ViaEvents, false, report.FoundUnique, -22, -22, -22, "optimized", "BAD_DEFINITION"},
		"r0:x vfs_read":            {report.ViaEvents, true, report.FoundUnique, -22, 0, -22, "ftrace", "BAD_DEFINITION"},
		"rx:x vfs_read":            {report.ViaEvents, true, report.FoundUnique, 0, 0, 0, "ftrace", ""},
		"-:a/b":                    {report.ViaRegister, false, report.FoundAbsent, -22, -22, -22, "", "BAD_LINE"},
		"0x1000":                   {report.ViaRegister, false, report.FoundAddress, -2, -2, -2, "", "NO_SYMBOL"},
	} {
		t.Run(line, func(t *testing.T) {
			row := checked(t, "# a comment\n\n"+line+" # after\n")[0]
			c := row.Cells[0]
			require.Equal(t, want.via, row.Via)
			require.Equal(t, want.ret, row.Return)
			require.Equal(t, want.found, c.Found)
			require.Equal(t, want.errno, c.Errno)
			require.Equal(t, want.errno == 0, c.Attaches)
			require.Equal(t, want.kretprobe, c.Kretprobe)
			require.Equal(t, want.events, c.Events)
			require.Equal(t, want.runs, c.Runs)
			require.Equal(t, want.reason, c.Reason.String())
			require.Equal(t, c.Reason != rule.None, c.Detail != "")
		})
	}
}

// Rule: kprobe_events keeps a definition whose module may come, or whose address
// nothing is known at; it is planted by then, and does not attach now.
func TestCheckWaits(t *testing.T) {
	for line, waits := range map[string]bool{
		"p nomod:fn": true, "p :fn": true, "p 0x1000": true, "nomod:fn": false, "0x1000": false, "p nothing_has_this": false, "p:1a nomod:fn": false,
		"p nomod:fn a=@nosuch": true, "p nomod:fn a=nosuch": false, "p vfs_read a=@nosuch": false,
	} {
		c := checked(t, line)[0].Cells[0]
		require.False(t, c.Attaches, line)
		require.Equal(t, waits, c.Reason == rule.Waits, line)
		require.Equal(t, waits, c.Errno == 0, line)
	}
}

// Rule: of a BPF object every program in a section of kernel probes is one.
func TestCheckBPFObject(t *testing.T) {
	object := bpfObject(elf.EM_BPF, "kprobe/vfs_read", "?kretprobe/gcd", "kprobe/gcd+0x5", "ksyscall/read", "kprobe.multi/vfs_*",
		"kprobe", "kprobe/nothing_has_this", "tracepoint/sched/sched_switch", "license")
	probes, err := report.ReadProbes(bytes.NewReader(object))
	require.NoError(t, err)
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), nil)
	require.NoError(t, err)
	var c report.Check
	c.Add(report.OfImage(img), probes)
	var got []string
	for _, p := range c.Probes {
		got = append(got, strings.Join([]string{p.Text, p.Program, string(p.Via), p.Cells[0].Reason.String(), p.Cells[0].Runs}, " "))
	}
	require.Equal(t, []string{
		"kprobe/vfs_read prog0 perf_event  ftrace",
		"?kretprobe/gcd prog1 perf_event  ftrace",
		"kprobe/gcd+0x5 prog2 perf_event  optimized",
		"ksyscall/read prog3 perf_event  ftrace",
		"kprobe.multi/vfs_* prog4 kprobe.multi NO_FPROBE ",
		"kprobe prog5 perf_event BAD_LINE ",
		"kprobe/nothing_has_this prog6 perf_event UNKNOWN_SYMBOL ",
	}, got)
}

func TestCheckRefusesOtherObjects(t *testing.T) {
	for name, c := range map[string]struct {
		input []byte
		want  string
	}{
		"empty":         {nil, "it names no probe"},
		"comments_only": {[]byte("# nothing\n"), "it names no probe"},
		"other_machine": {bpfObject(elf.EM_X86_64, "kprobe/x"), "an object for BPF is wanted, this one is for X86_64"},
		"truncated":     {bpfObject(elf.EM_BPF, "kprobe/x")[:60], "not an ELF object"},
		"no_probes":     {bpfObject(elf.EM_BPF, "xdp"), "no program in a section kprobe/"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := report.ReadProbes(bytes.NewReader(c.input))
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// bpfObject makes an object file with a program in each section.
func bpfObject(machine elf.Machine, sections ...string) []byte {
	names := map[string]uint32{}
	strtab := []byte{0}
	name := func(s string) uint32 {
		if _, ok := names[s]; !ok {
			names[s] = uint32(len(strtab))
			strtab = append(append(strtab, s...), 0)
		}
		return names[s]
	}
	const code = 0x40
	headers := []elf.Section64{{}}
	symbols := []elf.Sym64{{}}
	for i, s := range sections {
		headers = append(headers, elf.Section64{Name: name(s), Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Off: code, Size: 8, Addralign: 8})
		symbols = append(symbols, elf.Sym64{Name: name("prog" + string(rune('0'+i))), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Shndx: uint16(i + 1), Size: 8})
	}
	n := len(headers)
	var body bytes.Buffer
	body.Write(make([]byte, 8)) // the programs' code
	table := code + uint64(body.Len())
	name(".symtab")
	name(".strtab")
	binaryWrite(&body, symbols)
	strings := code + uint64(body.Len())
	body.Write(strtab)
	headers = append(headers,
		elf.Section64{Name: name(".symtab"), Type: uint32(elf.SHT_SYMTAB), Off: table, Size: uint64(24 * len(symbols)), Link: uint32(n + 1), Info: 1, Entsize: 24},
		elf.Section64{Name: name(".strtab"), Type: uint32(elf.SHT_STRTAB), Off: strings, Size: uint64(len(strtab))})
	h := elf.Header64{Type: uint16(elf.ET_REL), Machine: uint16(machine), Version: 1, Shoff: code + uint64(body.Len()), Ehsize: 64, Shentsize: 64, Shnum: uint16(len(headers)), Shstrndx: uint16(n + 1)}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	var out bytes.Buffer
	binaryWrite(&out, h)
	out.Write(body.Bytes())
	binaryWrite(&out, headers)
	return out.Bytes()
}

func binaryWrite(b *bytes.Buffer, v any) {
	if err := binary.Write(b, binary.LittleEndian, v); err != nil {
		panic(err)
	}
}

func FuzzReadProbes(f *testing.F) {
	f.Add([]byte("vfs_read\np:x gcd+5\n"))
	f.Add(bpfObject(elf.EM_BPF, "kprobe/x", "?kprobe.multi/y*"))
	f.Fuzz(func(t *testing.T, b []byte) {
		probes, err := report.ReadProbes(bytes.NewReader(b))
		require.Equal(t, err == nil, len(probes) > 0)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
		}
	})
}
