package bpftrace

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/script/host"
)

// fakeWays are the answers of a kernel that is made up.
type fakeWays struct {
	traced    []host.Function
	blacklist []string
	modules   []string
	// untyped are functions that BTF does not have, refused what kprobe_events says of places.
	untyped  []string
	refused  map[string]error
	verified []string
	unsited  []string
	links    bool
}

func (f *fakeWays) Traces() bool            { return true }
func (f *fakeWays) Traced() []host.Function { return f.traced }
func (f *fakeWays) Blacklist() []string     { return f.blacklist }
func (f *fakeWays) Loaded(m string) bool    { return slices.Contains(f.modules, m) }
func (f *fakeWays) Links() bool             { return f.links }
func (f *fakeWays) ProgramLinks() bool      { return f.links }
func (f *fakeWays) Link([]string) error     { return nil }

func (f *fakeWays) Typed(function, module string) (int, bool) {
	known := slices.ContainsFunc(f.traced, func(h host.Function) bool {
		return h.Name == function && (module == "" || module == vmlinux && h.Module == "" || h.Module == module)
	})
	return 2, known && !slices.Contains(f.untyped, function) || slices.Contains(f.verified, function) || slices.Contains(f.unsited, function)
}

func (f *fakeWays) Kprobe(place string, _ bool) error { return f.refused[place] }

func (f *fakeWays) Trampoline(function string, _ bool) (bool, error) {
	switch {
	case slices.Contains(f.verified, function):
		return true, errno.EINVAL
	case slices.Contains(f.unsited, function):
		return false, errno.EBUSY
	}
	return false, nil
}

// booted is a kernel with functions of every kind.
func booted() *fakeWays {
	return &fakeWays{
		traced: []host.Function{
			{Name: "vfs_read", Addr: 0x1000}, {Name: "vfs_open", Addr: 0x2000}, {Name: "vfs_black", Addr: 0x3000}, {Name: "rcu_call", Addr: 0x4000},
			{Name: "twice", Addr: 0x5000}, {Name: "twice", Addr: 0x6000}, {Name: "own", Module: "demo", Addr: 0x7000}, {Name: "a_lock_lock", Addr: 0x8000},
			{Name: "both", Addr: 0x9000}, {Name: "both", Module: "demo", Addr: 0xa000},
		},
		blacklist: []string{"vfs_black"}, modules: []string{"demo"}, untyped: []string{"vfs_open"}, verified: []string{"denied"}, unsited: []string{"notrace"},
		refused: map[string]error{"gone": errno.EINVAL, "vfs_read+1": errno.EILSEQ, "twice": errno.EADDRNOTAVAIL, "absent": errno.ENOENT},
		links:   true,
	}
}

func kernelWith(w *fakeWays) *Kernel {
	return &Kernel{
		Ways: w,
		Kernel: host.Kernel{
			Program: program,
			Functions: func(name string) (list []host.Function) {
				for _, f := range append(w.traced, host.Function{Name: "alias", Addr: 0x1000}, host.Function{Name: "x.cold", Addr: 0xb000}) {
					if f.Name == name {
						list = append(list, f)
					}
				}
				return list
			},
			Tracepoints: func(name string) []host.Tracepoint {
				if name == "switch" || name == "unlisted" {
					return []host.Tracepoint{{Name: name}}
				}
				return nil
			},
		},
		EventNames: func() []string { return []string{"sched:switch", "syscalls:sys_enter_read", "syscalls:sys_exit_read"} },
		Events: func(name string) []Event {
			if name == "sched:switch" || strings.HasPrefix(name, "syscalls:") {
				return []Event{{Name: name, Tracepoint: name}}
			}
			return nil
		},
		Formats: func() map[string]bool { return map[string]bool{"ftrace:function": true, "ftrace:branch": false} },
	}
}

const (
	notTraceable = ` is not traceable (either non-existing, inlined, or marked as "notrace"); attaching to it will likely fail`
	refusedText  = "cannot attach kprobe, Invalid argument\n"
)

// What is attached, and what is said, is what bpftrace 0.23.2 did on Linux 6.12.
func TestAttaching(t *testing.T) {
	for script, want := range map[string]struct {
		attached, probes int
		log              string
		failed           bool
		warns            string
	}{
		`kprobe:vfs_read { }`:                                    {attached: 1, probes: 1},
		`kprobe:vfs_* { }`:                                       {attached: 1, probes: 2},
		`kprobe:vfs_* { print(probe) }`:                          {attached: 2, probes: 2},
		`kprobe:tw*e { print(probe) }`:                           {attached: 1, probes: 1}, // a link takes names of several functions
		`kprobe:vmlinux:tw*e { print(probe) }`:                   {attached: 1, log: "cannot attach kprobe, Cannot assign requested address\nWARNING: could not attach probe kprobe:vmlinux:twice, skipping.\n"},
		`kprobe:vmlinux:vfs_* { }`:                               {attached: 2, probes: 2},
		`kprobe:*:o* { }`:                                        {attached: 1, probes: 1},
		`kprobe:v*:vfs_read { }`:                                 {attached: 1, probes: 1},
		`kprobe:v*_read, kprobe:none*, kprobe:vfs_o* { }`:        {attached: 2, probes: 2},
		`kprobe:rcu_* { }`:                                       {},
		`kprobe:vfs_r[e]ad { }`:                                  {},
		`kprobe:*_lock { }`:                                      {},
		`kprobe:twice { }`:                                       {attached: 1, log: "cannot attach kprobe, Cannot assign requested address\nERROR: Error attaching probe: kprobe:twice\n", failed: true},
		`kprobe:absent { }`:                                      {attached: 1, log: "cannot attach kprobe, probe entry may not exist\nERROR: Error attaching probe: kprobe:absent\n", failed: true, warns: "absent" + notTraceable},
		`kprobe:gone { }`:                                        {attached: 1, log: refusedText + "ERROR: Error attaching probe: kprobe:gone\n", failed: true, warns: "gone" + notTraceable},
		`kprobe:alias { }`:                                       {attached: 1, probes: 1, warns: "alias" + notTraceable},
		`kprobe:alias { print(probe) }`:                          {warns: "alias" + notTraceable},
		`kprobe:x.cold { }`:                                      {attached: 1, probes: 1, warns: "x.cold" + notTraceable},
		`kprobe:rcu_call { }`:                                    {attached: 1, probes: 1, warns: "rcu_call" + notTraceable},
		`kprobe:vfs_read+1 { }`:                                  {attached: 1, failed: true, log: "cannot attach kprobe, Invalid or incomplete multibyte or wide character\nERROR: Possible attachment attempt in the middle of an instruction, try a different offset.\nERROR: Error attaching probe: kprobe:vfs_read+1\n"},
		`kprobe:vfs_r*+1 { }`:                                    {attached: 1, probes: 1},
		`kprobe:vfs_read, kprobe:gone { }`:                       {attached: 2, probes: 1, log: refusedText + "WARNING: could not attach probe kprobe:gone, skipping.\n", warns: "gone" + notTraceable},
		`kprobe:vfs_read { } kprobe:gone { }`:                    {attached: 2, failed: true, log: refusedText + "ERROR: Error attaching probe: kprobe:gone\n", warns: "gone" + notTraceable},
		`BEGIN { } kprobe:gone { } END { }`:                      {attached: 3, failed: true, log: refusedText + "ERROR: Error attaching probe: kprobe:gone\n", warns: "gone" + notTraceable},
		`kretprobe:gone { } kprobe:twice { }`:                    {attached: 2, failed: true, log: refusedText + "ERROR: Error attaching probe: kretprobe:gone\n", warns: "gone" + notTraceable},
		`kprobe:vfs_read, kprobe:vfs_read { }`:                   {attached: 2, failed: true, log: "ERROR: Unknown BPF object load failure. Try using the \"-d libbpf\" option to see the full loading log.\nERROR: Loading BPF object(s) failed.\n"},
		`kprobe:vfs_read { } kprobe:vfs_read { }`:                {attached: 2, probes: 2},
		`kprobe:other:vfs_read { }`:                              {attached: 1, failed: true, log: "ERROR: Error attaching probe: kprobe:other:vfs_read: specified module other in probe kprobe:other:vfs_read is not loaded.\n"},
		`kprobe:other:vfs_* { }`:                                 {},
		`kprobe:demo:own { }`:                                    {attached: 1, probes: 1},
		`fentry:vfs_read { }`:                                    {attached: 1, probes: 1},
		`fentry:vfs_* { }`:                                       {attached: 1, probes: 1},
		`fentry:vfs_read, fentry:nothing { }`:                    {attached: 2, probes: 1, log: "WARNING: No BTF found for nothing, skipping.\n"},
		`fentry:nothing { }`:                                     {attached: 1, failed: true, log: "ERROR: No BTF found for nothing\n"},
		`fentry:other:vfs_read { }`:                              {attached: 1, failed: true, log: "ERROR: No BTF found for other:vfs_read\n"},
		`fexit:denied { }`:                                       {attached: 1, failed: true, log: "ERROR: Error loading BPF program for fexit_denied_1. Use -v for full kernel error log.\nERROR: Loading BPF object(s) failed.\n"},
		`BEGIN { } kprobe:vfs_open { } fentry:vmlinux:denied {}`: {attached: 3, failed: true, log: "ERROR: Error loading BPF program for fentry_vmlinux_denied_3. Use -v for full kernel error log.\nERROR: Loading BPF object(s) failed.\n"},
		`fentry:notrace { }`:                                     {attached: 1, failed: true, log: "ERROR: Error attaching probe: fentry:notrace\n"},
		`k*:vfs_read { }`:                                        {attached: 1, probes: 1},
		`rawtracepoint:s* { }`:                                   {attached: 1, probes: 1},
		`rawtracepoint:unlisted { }`:                             {attached: 1, probes: 1},
		`rawtracepoint:unlisted { print(probe) }`:                {},
		`rawtracepoint:none { }`:                                 {attached: 1, failed: true, log: "ERROR: Probe does not exist: rawtracepoint:none\n"},
		`tracepoint:s*:*s* { }`:                                  {attached: 3, probes: 3},
		`tracepoint:sys_* { }`:                                   {attached: 2, probes: 2},
		`tracepoint:ftrace:* { }`:                                {},
		`tracepoint:sched:none, tracepoint:sched:switch { }`: {attached: 2, probes: 1, log: "open(/sys/kernel/debug/tracing/events/sched/none/id): No such file or directory\n",
			warns: "tracepoint not found: sched:none"},
		`tracepoint:ftrace:function { }`:                                          {attached: 1, failed: true, log: "perf_event_open(/sys/kernel/debug/tracing/events/ftrace/function/id): Invalid argument\nERROR: Error attaching probe: tracepoint:ftrace:function\n"},
		`config = { missing_probes = "ignore" } kprobe:vfs_read, kprobe:gone { }`: {attached: 2, probes: 1},
		`config = { missing_probes = "ignore" } kprobe:gone { }`:                  {attached: 1, failed: true, log: refusedText + "ERROR: Error attaching probe: kprobe:gone\n"},
		`config = { missing_probes = "error" } kprobe:vfs_read, kprobe:gone { }`:  {attached: 2, failed: true, log: refusedText + "ERROR: Error attaching probe: kprobe:gone\n", warns: "gone" + notTraceable},
		`uprobe:/bin/p:o* { }`:                   {attached: 1, probes: 2},
		`uprobe:/bin/p:one, uprobe:p:gone { }`:   {attached: 2, probes: 1, log: "WARNING: Could not resolve symbol: /bin/p:gone, skipping probe.\n"},
		`uprobe:/bin/p:gone { }`:                 {attached: 1, failed: true, log: "ERROR: Could not resolve symbol: /bin/p:gone, cannot attach probe.\n"},
		`interval:s:1 { } interval:s:1 { }`:      {attached: 2, probes: 2},
		`watchpoint:1:1:w, watchpoint:2:1:w { }`: {attached: 2, probes: 2},
	} {
		s, err := Analyze("stdin", script, &Options{}, kernelWith(booted()))
		require.NoError(t, err, script)
		assert.Equal(t, want.attached, s.Attached, script)
		assert.Equal(t, want.log, s.Log, script)
		assert.Equal(t, want.failed, s.Failed, script)
		if !want.failed {
			planted := slices.DeleteFunc(slices.Clone(s.Probes), func(p *host.Probe) bool { return p.Kind == host.Begin || p.Kind == host.End })
			assert.Len(t, planted, want.probes, script)
		}
		if assert.Contains(t, s.Warnings, want.warns, script); want.warns == "" {
			assert.Empty(t, s.Warnings, script)
		}
	}
}

// A kernel before fprobe has no links of a program to many functions: there each has one of its own.
func TestAttachingWithoutLinks(t *testing.T) {
	w := booted()
	w.links = false
	for script, want := range map[string]int{`kprobe:vfs_* { }`: 2, `uprobe:/bin/p:o* { }`: 2, `kprobe:vfs_read { }`: 1} {
		s, err := Analyze("stdin", script, &Options{}, kernelWith(w))
		require.NoError(t, err, script)
		assert.Equal(t, want, s.Attached, script)
	}
}

// What is wrong with points is said before anything is attached.
func TestPointsThatAreWrong(t *testing.T) {
	for script, want := range map[string]string{
		`fentry:both { }`:                  "stdin:1:1-12: ERROR: ambiguous attach point, please specify module containing the function 'both'\n",
		`*:vfs_read { }`:                   "ERROR: wildcards are not allowed for hardware probe type\n*:vfs_read { }\n~~~~~~~~~~\nstdin:1:1-11: ERROR: Only single iter attach point is allowed.\n",
		`x*:vfs_read { }`:                  "stdin:1:1-12: ERROR: No probe type matched for x*\nx*:vfs_read { }\n~~~~~~~~~~~\nstdin:1:1-16: ERROR: No attach points for probe\nx*:vfs_read { }\n~~~~~~~~~~~~~~~\n",
		`tracepoint:nothing:* { }`:         "ERROR: tracepoints not found: nothing:*\n",
		`tracepoint:syscall:x { }`:         "ERROR: tracepoint not found: syscall:x\n",
		`fentry:nothing { print(args.x) }`: "ERROR: fentry:nothing: no BTF data for nothing\n",
		`kretprobe:vfs_read+4 { }`:         "ERROR: Offset not allowed\n",
		`config = { max_probes = 1 } kprobe:vfs_read { } kprobe:vfs_open { }`: "ERROR: Can't attach to 2 probes because it exceeds the current limit of 1 probes.\n",
		`config = { max_bpf_progs = 1 } kprobe:vmlinux:vfs_* { }`:             "ERROR: Failed to compile: Your program is trying to generate more than 2 BPF programs, which exceeds the current limit of 1.\n",
		`config = { missing_probes = "x" } kprobe:vfs_read { }`:               "ERROR: Invalid value for missing_probes: valid values are \"ignore\", \"warn\", and \"error\".\nstdin:1:29-32: ERROR: \n",
	} {
		_, err := Analyze("stdin", script, &Options{}, kernelWith(booted()))
		require.Error(t, err, script)
		assert.Contains(t, err.Error(), want, script)
	}
}

// Stars match as bpftrace's do: without going back.
func TestMatch(t *testing.T) {
	for pattern, names := range map[string]map[string]bool{
		"*":      {"": true, "a": true},
		"a*":     {"a": true, "ab": true, "ba": false},
		"*b":     {"ab": true, "b": true, "ba": false, "bb": false},
		"a*c":    {"abc": true, "ac": true, "acc": false, "bac": false},
		"*b*":    {"abc": true, "ac": false},
		"a":      {"a": true, "ab": false},
		"":       {"": true, "a": false},
		"a[b]":   {"a[b]": true, "ab": false},
		"*:x*":   {"m:xy": true, "xy": false},
		"**x**":  {"axb": true, "ab": false},
		"ab*ab*": {"abab": true, "ab": false},
	} {
		for name, want := range names {
			assert.Equal(t, want, match(pattern, name), "%s %s", pattern, name)
		}
	}
}
