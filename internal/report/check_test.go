package report_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/integration/oracle"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
)

// checked returns the guest kernel's answers for probes in text form.
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

// Rule: each form of a line has its own way, and the answer says what the name is.
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
		"some words":               {report.ViaEvents, false, report.FoundAbsent, -22, -22, -22, "", "BAD_LINE"},
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
		"kprobe.multi/vfs_* prog4 kprobe.multi  ftrace",
		"kprobe prog5 perf_event NOT_ASKED ",
		"kprobe/nothing_has_this prog6 perf_event UNKNOWN_SYMBOL ",
		"tracepoint/sched/sched_switch prog7 tracepoint NOT_ASKED ", // the guest kernel has no tracepoints
		"license prog8  BAD_SECTION ",
	}, got)
	require.Equal(t, []int{2, 2}, []int{c.Refused, c.NotAsked})
}

// Rule: a program that attaches to no code of a kernel is listed with the reason, and
// is no failure.
func TestCheckNotAsked(t *testing.T) {
	for section, why := range map[string]string{
		"uprobe//bin/sh:main": "user space", "uretprobe": "user space", "uprobe.multi.s/libc": "user space", "usdt/libc:a:b": "user space",
		"kprobe": "names no place", "fentry": "names no place", "raw_tp": "names no place", "tp": "names no place", "kprobe.multi": "names no place",
		"xdp": "no place in the kernel's code", "struct_ops/x": "no place in the kernel's code", "perf_event": "no place in the kernel's code",
		"freplace/x": "another program", "fsession/vfs_read": "newer than libbpf 1.5", "lsm_cgroup/bind": "no place in the kernel's code",
	} {
		probes, err := report.ReadProbes(bytes.NewReader(bpfObject(elf.EM_BPF, section)))
		require.NoError(t, err, section)
		var c report.Check
		c.Add(report.OfImage(guestImage(t)), probes)
		cell := c.Probes[0].Cells[0]
		require.True(t, cell.NotAsked && !cell.Attaches, section)
		require.Contains(t, cell.Detail, why, section)
		require.Equal(t, []int{0, 1}, []int{c.Refused, c.NotAsked}, section)
		var out bytes.Buffer
		require.NoError(t, c.WriteText(&out))
		require.Contains(t, out.String(), "0 of 0 attach, 1 not asked")
		out.Reset()
		require.NoError(t, c.WriteJUnit(&out))
		require.Contains(t, out.String(), `<skipped message="`)
		require.NotContains(t, out.String(), "<failure")
		out.Reset()
		require.NoError(t, c.WriteAnnotations(&out, "list"))
		require.Empty(t, out.String())
	}
}

// Rule: of a group one that attaches is enough, and which one is said.
func TestCheckGroups(t *testing.T) {
	for line, want := range map[string]struct {
		chosen, detail string
		ret            bool
	}{
		"vfs_read|nosuch":                  {"vfs_read", "", false},
		"nosuch | vfs_read":                {"vfs_read", "", false},
		"nosuch|vfs_read%return":           {"vfs_read%return", "", false},
		"gcd+0x6%return|gcd%return":        {"gcd%return", "", true},
		"nosuch|gcd+0x1|nokprobe_function": {"", "none attaches: nosuch: ENOENT absent; gcd+0x1: EILSEQ NOT_BOUNDARY; nokprobe_function: EINVAL BLACKLISTED", false},
		"nosuch*|vfs_*":                    {"vfs_*", "", false},
		"nosuch|":                          {"", "an alternative is missing", false},
		"nosuch|some words":                {"", "none attaches: nosuch: ENOENT absent; some words: EINVAL BAD_LINE", false},
	} {
		row := checked(t, line)[0]
		c := row.Cells[0]
		require.Equal(t, want.chosen, c.Chosen, line)
		require.Equal(t, want.chosen != "", c.Attaches, line)
		require.Equal(t, want.ret, row.Return, line)
		require.Contains(t, c.Detail, want.detail, line)
	}
}

// Rule: a pattern matches the functions that the tracer knows, and attaches if one of them does.
func TestCheckPatterns(t *testing.T) {
	for line, want := range map[string]string{
		"vfs_*": "ftrace", "vfs_*%return": "ftrace", "vfs_rea?": "ftrace", "nosuch_*": "ENOENT NO_MATCH", "vfs_[": "EINVAL BAD_LINE", "demo:*": "ENOENT NO_MATCH",
	} {
		c := checked(t, line)[0].Cells[0]
		if c.Attaches {
			require.Equal(t, want, c.Runs, line)
			require.Equal(t, report.FoundPattern, c.Found, line)
			require.Positive(t, c.Matches, line)
			require.LessOrEqual(t, c.Attached, c.Matches, line)
			continue
		}
		require.Equal(t, want, errno.Errno(-c.Errno).Name()+" "+c.Reason.String(), line)
	}
	some := checked(t, "*")[0].Cells[0]
	require.Less(t, some.Attached, some.Matches)
	require.NotEmpty(t, some.Others)
}

// Rule: --via chooses the interface for a name; the interfaces differ.
func TestAskBy(t *testing.T) {
	for via, want := range map[string]string{"module": "", "events": "NOTRACE", "bpf": "NOTRACE"} {
		probes, err := report.ReadProbes(strings.NewReader("opt_yes\nnosuch|opt_yes\np:x gcd\n"))
		require.NoError(t, err)
		report.AskBy(probes, report.Vias[via])
		var c report.Check
		c.Add(report.OfImage(guestImage(t)), probes)
		require.Equal(t, report.Vias[via], c.Probes[0].Via)
		require.Equal(t, report.ViaEvents, c.Probes[2].Via, "a definition has its own way")
		require.Equal(t, want, c.Probes[0].Cells[0].Reason.String(), via)
		require.Equal(t, want == "", c.Probes[1].Cells[0].Attaches, via)
	}
}

// Rule: to 5.1 the tracing files give EINVAL for a place inside an instruction, and
// perf finds no name with a dot; to 4.19 an unknown symbol in an argument is 0; to 5.3
// a part of a function is refused by a rule of its own.
func TestCheckOfOldReleases(t *testing.T) {
	type want struct{ v419, v54 int }
	for line, errnos := range map[string]want{
		"p gcd+1":              {-22, -84},
		"p vfs_read a=@nosuch": {0, -2},
		"kprobe/nosuch.isra.0": {-22, -2},
		"kprobe/gcd+1":         {-22, -84},
		"kprobe/gcd":           {0, 0},
	} {
		for release, no := range map[string]int{"4.19": errnos.v419, "5.4": errnos.v54} {
			name, perf := strings.CutPrefix(line, "kprobe/")
			probes, err := report.ReadProbes(strings.NewReader(name))
			require.NoError(t, err)
			if perf {
				report.AskBy(probes, report.ViaPerf)
			}
			p, ok := profile.Named(release)
			require.True(t, ok)
			img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), &kimage.Options{Profile: p})
			require.NoError(t, err)
			var c report.Check
			c.Add(report.OfImage(img), probes)
			require.Equal(t, no, c.Probes[0].Cells[0].Errno, "%s on %s", line, release)
		}
	}
}

// A gate over the probes of people's tools: what does not attach on which kernel.
func TestCheckOfTools(t *testing.T) {
	f, err := os.Open("../../testdata/probes/tools.txt")
	require.NoError(t, err)
	defer f.Close()
	probes, err := report.ReadProbes(f)
	require.NoError(t, err)
	require.Greater(t, len(probes), 60)
	report.AskBy(probes, report.ViaPerf)
	var c report.Check
	for _, kernel := range []string{"oracle510", "oracle", "oracle612"} {
		img, err := kimage.Open(oracle.Image(t, kernel), &kimage.Options{NoBoot: true})
		require.NoError(t, err)
		c.Add(report.OfImage(img), probes)
	}
	c.Compare()
	want := map[string]string{
		"xfs_file_read_iter": "UNKNOWN_SYMBOL UNKNOWN_SYMBOL UNKNOWN_SYMBOL", "nfs_file_read": "UNKNOWN_SYMBOL UNKNOWN_SYMBOL UNKNOWN_SYMBOL",
		"btrfs_file_write_iter": "UNKNOWN_SYMBOL UNKNOWN_SYMBOL UNKNOWN_SYMBOL", "tcp_drop": "UNKNOWN_SYMBOL UNKNOWN_SYMBOL UNKNOWN_SYMBOL",
		"blk_account_io_start|__blk_account_io_start": "- UNKNOWN_SYMBOL NOTRACE", "blk_account_io_done|__blk_account_io_done": "- NOTRACE NOTRACE",
		"__do_page_cache_readahead|do_page_cache_ra": "- UNKNOWN_SYMBOL UNKNOWN_SYMBOL", "kmem_cache_alloc": "- - UNKNOWN_SYMBOL",
		"__kmalloc": "- - UNKNOWN_SYMBOL", "finish_task_switch": "- ONLY_CLONES ONLY_CLONES", "ttwu_do_wakeup": "- - UNKNOWN_SYMBOL",
		"_do_fork": "UNKNOWN_SYMBOL UNKNOWN_SYMBOL UNKNOWN_SYMBOL", "kfree_skb": "- UNKNOWN_SYMBOL UNKNOWN_SYMBOL",
		"vfs_fallocate+0x12b": "NOT_BOUNDARY - NOT_BOUNDARY", "native_safe_halt": "NOTRACE NOTRACE UNKNOWN_SYMBOL", "__switch_to%return": "NOTRACE NOTRACE NOTRACE",
		"p:mem/alloc __kmalloc size=%di:u64 flags=%si:x32": "- - UNKNOWN_SYMBOL", "r:mem/got __kmalloc ptr=$retval:x64": "- - UNKNOWN_SYMBOL",
	}
	got := map[string]string{}
	for _, row := range c.Probes {
		var reasons []string
		for _, cell := range row.Cells {
			require.False(t, cell.NotAsked, row.Text)
			reason := cell.Reason.String()
			if cell.Attaches {
				reason = "-"
			}
			reasons = append(reasons, reason)
		}
		if answer := strings.Join(reasons, " "); answer != "- - -" {
			got[row.Text] = answer
		}
	}
	require.Equal(t, want, got)
}

// debugged is a kernel whose DWARF says where functions were inlined.
type debugged struct{ *report.ImageKernel }

func (debugged) Inlined(name string) ([]string, bool) {
	return map[string][]string{"put_twice": {"do_a", "do_b", "do_c"}}[name], true
}

// Rule: of a name that is not there it is said where its code is, as far as that is known.
func TestCheckSaysWhereInlined(t *testing.T) {
	probes, err := report.ReadProbes(strings.NewReader("put_twice\nnosuch\n"))
	require.NoError(t, err)
	var c report.Check
	c.Add(debugged{report.OfImage(guestImage(t))}, probes)
	require.Contains(t, c.Probes[0].Cells[0].Detail, "; the compiler has put its code into do_a, do_b, do_c")
	require.Contains(t, c.Probes[1].Cells[0].Detail, "; its code is in no other function")
	var out bytes.Buffer
	require.NoError(t, c.WriteText(&out))
	require.Contains(t, out.String(), "ENOENT absent, inlined in do_a, do_b and 1 more")
	require.Contains(t, checked(t, "nosuch")[0].Cells[0].Detail, "; no DWARF says whether it is inlined")
}

func guestImage(t testing.TB) *kimage.Image {
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), nil)
	require.NoError(t, err)
	return img
}

// Rule: programs at trampolines and tracepoints, and names that are not there, on three
// kernels of Debian.
func TestCheckOfRealKernels(t *testing.T) {
	object := bpfObject(elf.EM_BPF, "fentry/vfs_read", "fexit.s/tcp_v4_connect", "fentry/nosuch", "fentry/finish_task_switch", "fentry/do_syscall_64",
		"lsm/file_open", "lsm/nosuch", "tp/sched/sched_switch", "tracepoint/sched/sys_enter", "raw_tp/sched_switch", "tp_btf/nosuch",
		"fmod_ret/security_file_open", "fmod_ret/vfs_read", "kprobe.session/vfs_read",
		"iter/task", "iter.s/nosuch", "fentry/migrate_disable", "lsm/migrate_disable", "fexit/do_exit", "fentry/do_exit", "fentry/kmem_cache_alloc")
	want := map[string]string{
		"fentry/vfs_read": "trampoline", "fexit.s/tcp_v4_connect": "MAY_NOT_SLEEP", "fentry/nosuch": "NOT_IN_BTF",
		"lsm/file_open": "trampoline", "lsm/nosuch": "NOT_IN_BTF", "tp/sched/sched_switch": "tracepoint", "tracepoint/sched/sys_enter": "NO_TRACEPOINT",
		"raw_tp/sched_switch": "tracepoint", "tp_btf/nosuch": "NO_TRACEPOINT", "fmod_ret/security_file_open": "trampoline", "fmod_ret/vfs_read": "NOT_MODIFIABLE",
		"iter/task": "iterator", "iter.s/nosuch": "NOT_IN_BTF", "fentry/do_exit": "trampoline", "lsm/migrate_disable": "NOT_IN_BTF",
	}
	probes, err := report.ReadProbes(bytes.NewReader(object))
	require.NoError(t, err)
	var c report.Check
	for _, kernel := range []string{"oracle510", "oracle", "oracle612"} {
		img, err := kimage.Open(oracle.Image(t, kernel), &kimage.Options{NoBoot: true})
		require.NoError(t, err)
		c.Add(report.OfImage(img), probes)
	}
	c.Compare()
	answer := func(text string, i int) string {
		for _, row := range c.Probes {
			if row.Text == text {
				return row.Cells[i].Reason.String() + row.Cells[i].Runs
			}
		}
		return "no such row"
	}
	for text, w := range want {
		for i := range c.Images {
			require.Equal(t, w, answer(text, i), "%s %d", text, i)
		}
	}
	require.Equal(t, []string{"NO_FPROBE", "NO_FPROBE", "ftrace"}, []string{answer("kprobe.session/vfs_read", 0), answer("kprobe.session/vfs_read", 1), answer("kprobe.session/vfs_read", 2)})
	require.Equal(t, []string{"trampoline", "NOT_IN_BTF", "ONLY_CLONES"}, []string{answer("fentry/finish_task_switch", 0), answer("fentry/finish_task_switch", 1), answer("fentry/finish_task_switch", 2)})
	// 5.10 has no such function, 6.1 no list of functions that do not return.
	require.Equal(t, []string{"NOT_IN_BTF", "DENIED", "DENIED"}, []string{answer("fentry/migrate_disable", 0), answer("fentry/migrate_disable", 1), answer("fentry/migrate_disable", 2)})
	require.Equal(t, []string{"trampoline", "trampoline", "DENIED"}, []string{answer("fexit/do_exit", 0), answer("fexit/do_exit", 1), answer("fexit/do_exit", 2)})
	// BTF of 5.10 has the functions with a fentry site only.
	require.Equal(t, []string{"NOT_IN_BTF", "NO_FENTRY_SITE", "NO_FENTRY_SITE"}, []string{answer("fentry/do_syscall_64", 0), answer("fentry/do_syscall_64", 1), answer("fentry/do_syscall_64", 2)})
	last := c.Probes[len(c.Probes)-1].Cells[2]
	require.Equal(t, "kmem_cache_alloc_noprof", last.Absent.Renamed)
	require.Len(t, last.Absent.Elsewhere, 2)
	require.Contains(t, last.Detail, "kmem_cache_alloc_noprof does its work (since 6.10)")
}

func TestCheckRefusesOtherObjects(t *testing.T) {
	for name, c := range map[string]struct {
		input []byte
		want  string
	}{
		"empty":         {nil, "it names no probe"},
		"comments_only": {[]byte("# nothing\n"), "it names no probe"},
		"other_machine": {bpfObject(elf.EM_X86_64, "kprobe/x"), "the object is not for BPF, but for X86_64"},
		"truncated":     {bpfObject(elf.EM_BPF, "kprobe/x")[:60], "not an ELF object"},
		"no_probes":     {bpfObject(elf.EM_BPF, ".text"), "the object has no program"},
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
