package report_test

import (
	"bytes"
	"debug/elf"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/kimage/btf"
	"kprobelab/profile"
	"kprobelab/x86"
)

// configured is the guest kernel with a configuration.
func configured(t *testing.T, config string) *kimage.Image {
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), &kimage.Options{Config: path})
	require.NoError(t, err)
	return img
}

// Rule: nothing attaches to a kernel that is built without the component, in any way.
func TestCheckKernelsWithout(t *testing.T) {
	const all = "CONFIG_KPROBES=y\nCONFIG_KPROBE_EVENTS=y\nCONFIG_PERF_EVENTS=y\nCONFIG_KPROBES_ON_FTRACE=y\nCONFIG_BPF_SYSCALL=y\nCONFIG_BPF_EVENTS=y\nCONFIG_UPROBES=y\nCONFIG_UPROBE_EVENTS=y\nCONFIG_DYNAMIC_FTRACE=y\nCONFIG_FPROBE=y\n"
	noKprobes, noEvents := all+"# CONFIG_KPROBES is not set\n", all+"# CONFIG_KPROBE_EVENTS is not set\n"
	for name, c := range map[string]struct {
		config, probe string
		via           report.Via
		errno         errno.Errno
		reason        string
	}{
		"all_there":                {all, "vfs_read", report.ViaRegister, 0, ""},
		"all_there_by_events":      {all, "vfs_read", report.ViaEvents, 0, ""},
		"all_there_by_perf":        {all, "vfs_read", report.ViaPerf, 0, ""},
		"no_kprobes":               {noKprobes, "vfs_read", report.ViaRegister, errno.EOPNOTSUPP, "NO_KPROBES"},
		"no_kprobes_return":        {noKprobes, "vfs_read%return", report.ViaRegister, errno.EOPNOTSUPP, "NO_KPROBES"},
		"no_kprobes_inside":        {noKprobes, "gcd+5", report.ViaRegister, errno.EOPNOTSUPP, "NO_KPROBES"},
		"no_kprobes_pattern":       {noKprobes, "vfs_*", report.ViaRegister, errno.EOPNOTSUPP, "NO_KPROBES"},
		"no_kprobes_absent_name":   {noKprobes, "nosuch", report.ViaRegister, errno.EOPNOTSUPP, "NO_KPROBES"},
		"no_kprobes_by_events":     {noKprobes, "vfs_read", report.ViaEvents, errno.ENOENT, "NO_KPROBE_EVENTS"},
		"no_kprobes_by_perf":       {noKprobes, "vfs_read", report.ViaPerf, errno.ENOENT, "NO_KPROBE_EVENTS"},
		"no_kprobes_definition":    {noKprobes, "p:a/b vfs_read", report.ViaEvents, errno.ENOENT, "NO_KPROBE_EVENTS"},
		"no_events_register":       {noEvents, "vfs_read", report.ViaRegister, 0, ""},
		"no_events":                {noEvents, "vfs_read", report.ViaEvents, errno.ENOENT, "NO_KPROBE_EVENTS"},
		"no_events_by_perf":        {noEvents, "vfs_read", report.ViaPerf, errno.ENOENT, "NO_KPROBE_EVENTS"},
		"no_events_definition":     {noEvents, "r:a/b vfs_read", report.ViaEvents, errno.ENOENT, "NO_KPROBE_EVENTS"},
		"no_bpf_by_perf":           {all + "# CONFIG_BPF_SYSCALL is not set\n", "vfs_read", report.ViaPerf, errno.ENOSYS, "NO_BPF"},
		"no_bpf_events_by_perf":    {all + "# CONFIG_BPF_EVENTS is not set\n", "vfs_read", report.ViaPerf, errno.EINVAL, "NO_BPF"},
		"no_bpf_register":          {all + "# CONFIG_BPF_SYSCALL is not set\n", "vfs_read", report.ViaRegister, 0, ""},
		"a_group_without_kprobes":  {noKprobes, "vfs_read|gcd", report.ViaRegister, errno.EOPNOTSUPP, "NO_KPROBES"},
		"no_perf_events_by_events": {all + "# CONFIG_PERF_EVENTS is not set\n", "vfs_read", report.ViaEvents, 0, ""},
		"no_perf_events_by_perf":   {all + "# CONFIG_PERF_EVENTS is not set\n", "vfs_read", report.ViaPerf, errno.EINVAL, "NO_BPF"},
	} {
		t.Run(name, func(t *testing.T) {
			probes, err := report.ReadProbes(bytes.NewReader([]byte(c.probe)))
			require.NoError(t, err)
			report.AskBy(probes, c.via)
			var check report.Check
			check.Add(report.OfImage(configured(t, c.config)), probes)
			cell := check.Probes[0].Cells[0]
			require.Equal(t, c.errno == 0, cell.Attaches)
			require.Equal(t, -int(c.errno), cell.Errno)
			require.Equal(t, c.reason, cell.Reason.String())
			require.Equal(t, c.errno == 0, cell.Detail == "")
		})
	}
}

// Rule: explain and scan say so too.
func TestExplainAndScanWithoutKprobes(t *testing.T) {
	img := configured(t, "# CONFIG_KPROBES is not set\n")
	e, err := report.NewScan(img).Explain("gcd+0x5")
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, e.WriteText(&text, report.Style{}))
	require.Contains(t, text.String(), "EOPNOTSUPP NO_KPROBES: this kernel is built without kprobes")
	s := report.NewScan(img)
	functions, err := s.Functions("gcd")
	require.NoError(t, err)
	totals, err := s.WriteFunctions(&text, report.ScanNone, functions)
	require.NoError(t, err)
	text.Reset()
	require.NoError(t, totals.WriteText(&text))
	require.Contains(t, text.String(), "EOPNOTSUPP NO_KPROBES")
	require.Regexp(t, `(?m)^ +0  accepted, optimized`, text.String())
}

// lister is a kernel whose types and lists are given: the guest kernel has none.
type lister struct {
	*report.ImageKernel
	profile  profile.Config
	ids      map[string]int
	passed   map[string]btf.Passed
	programs kimage.Programs
	inject   []string
}

// Traceable: nokprobe_function, which is called no_site, has no site.
func (k *lister) Traceable(at x86.Addr) bool {
	s, ok := k.SymbolAt(at)
	return ok && s.Name != "nokprobe_function" && k.ImageKernel.Traceable(at)
}

func (k *lister) Lookup(name string) []kimage.Symbol {
	if name == "no_site" {
		name = "nokprobe_function"
	}
	return k.ImageKernel.Lookup(name)
}

func (k *lister) Profile() *profile.Config { return &k.profile }
func (k *lister) Typed() bool              { return true }
func (k *lister) FuncID(name string) (int, bool) {
	id, ok := k.ids[name]
	return id, ok
}

func (k *lister) Passed(name string) (btf.Passed, bool) {
	_, ok := k.ids[name]
	return k.passed[name], ok
}
func (k *lister) Programs() *kimage.Programs { return &k.programs }
func (k *lister) Injectable(at x86.Addr) bool {
	s, _ := k.SymbolAt(at)
	return slices.Contains(k.inject, s.Name)
}

// newLister is a kernel of a release.
func newLister(t *testing.T, release string) *lister {
	c, ok := profile.Named(release)
	require.True(t, ok)
	k := &lister{ImageKernel: report.OfImage(guestImage(t)), profile: *c, ids: map[string]int{}, passed: map[string]btf.Passed{}}
	for i, name := range []string{
		"vfs_read", "vfs_write", "kernel_clone", "gcd", "strlen", "no_site", "bpf_iter_task", "bpf_iter_run_prog", "bpf_iter_cgroup", "not_a_symbol", "do_exit",
	} {
		k.ids[name] = i + 1
	}
	k.programs = kimage.Programs{
		Sets: map[string][]int{
			kimage.SetDenied: {k.ids["gcd"]}, kimage.SetNoReturn: {k.ids["kernel_clone"]}, kimage.SetNeverAsleep: {k.ids["vfs_write"]},
		},
		Modifiable:      map[int]bool{k.ids["strlen"]: true},
		Iterators:       []kimage.Iterator{{Name: "task", Asleep: true}, {Name: "cgroup", Wants: errno.EINVAL}},
		InjectableKnown: true,
	}
	k.inject = []string{"vfs_read", "vfs_write"}
	return k
}

// Rule: a program at a function's trampoline is refused by the function's type, by the kernel's
// lists, and by its code, in this order.
func TestCheckTrampolines(t *testing.T) {
	words := func(n int) func(*lister) {
		return func(k *lister) { k.passed["vfs_read"] = btf.Passed{Words: n} }
	}
	structure := func(k *lister) { k.passed["vfs_read"] = btf.Passed{Words: 2, Struct: true} }
	without := func(change func(*profile.Built)) func(*lister) {
		return func(k *lister) { change(&k.profile.Built) }
	}
	for section, list := range map[string][]struct {
		release string
		set     func(*lister)
		errno   errno.Errno
		reason  string
	}{
		"fentry/vfs_read": {
			{"6.1", nil, 0, ""},
			{"6.1", words(6), 0, ""},
			{"6.1", words(7), errno.ENOTSUPP, "MANY_WORDS"},
			{"6.6", words(7), 0, ""},
			{"6.12", words(12), 0, ""},
			{"6.12", words(13), errno.ENOTSUPP, "MANY_WORDS"},
			{"5.15", structure, errno.EINVAL, "FUNC_TYPE"},
			{"6.1", structure, 0, ""},
			{"6.1", func(k *lister) {
				k.passed["vfs_read"] = btf.Passed{Refused: "the function takes variable arguments"}
			}, errno.EINVAL, "FUNC_TYPE"},
			{"6.1", without(func(b *profile.Built) { b.BPF = false }), errno.ENOSYS, "NO_BPF"},
			{"6.1", without(func(b *profile.Built) { b.Trampolines = false }), errno.EINVAL, "NO_BPF"},
			{"6.1", without(func(b *profile.Built) { b.DirectCalls = false }), errno.ENOTSUPP, "NO_BPF"},
			{"6.1", without(func(b *profile.Built) { b.BTF = false }), errno.ESRCH, "NO_BTF"},
			{"6.1", without(func(b *profile.Built) { b.Kprobes = false }), 0, ""},
		},
		"?fentry/vfs_read":          {{"6.1", nil, 0, ""}},
		"fentry/vmlinux:vfs_read":   {{"6.1", nil, 0, ""}},
		"fentry/ext4:vfs_read":      {{"6.1", nil, errno.ESRCH, "NOT_IN_BTF"}},
		"fentry/nosuch":             {{"6.1", nil, errno.ESRCH, "NOT_IN_BTF"}},
		"fentry/not_a_symbol":       {{"6.1", nil, errno.ENOENT, "UNKNOWN_SYMBOL"}},
		"fentry.s/vfs_read":         {{"6.1", nil, 0, ""}, {"6.1", func(k *lister) { k.inject = nil }, errno.EINVAL, "MAY_NOT_SLEEP"}},
		"fexit.s/vfs_write":         {{"6.1", nil, errno.EINVAL, "MAY_NOT_SLEEP"}},
		"fmod_ret.s/strlen":         {{"6.1", nil, 0, ""}},
		"fmod_ret/vfs_write":        {{"6.1", nil, 0, ""}},
		"fmod_ret/kernel_clone":     {{"6.1", nil, errno.EINVAL, "NOT_MODIFIABLE"}},
		"fexit/kernel_clone":        {{"6.1", nil, errno.EINVAL, "DENIED"}},
		"fentry/kernel_clone":       {{"6.1", nil, 0, ""}},
		"fentry/gcd":                {{"6.1", nil, errno.EINVAL, "DENIED"}},
		"fentry/no_site":            {{"6.1", nil, errno.EBUSY, "NO_FENTRY_SITE"}},
		"lsm/nosuch":                {{"6.1", nil, errno.ESRCH, "NOT_IN_BTF"}, {"6.1", without(func(b *profile.Built) { b.BPFLSM = false }), errno.EINVAL, "NO_BPF"}},
		"iter/task":                 {{"6.1", nil, 0, ""}, {"5.4", nil, errno.EINVAL, "NO_BPF"}},
		"iter.s/task":               {{"6.1", nil, 0, ""}},
		"iter/run_prog":             {{"6.1", nil, errno.EINVAL, "NOT_IN_BTF"}},
		"iter/cgroup":               {{"6.1", nil, errno.EINVAL, "ITERATES_OVER_ONE"}},
		"iter.s/cgroup":             {{"6.1", nil, errno.EINVAL, "MAY_NOT_SLEEP"}},
		"kprobe.multi/vfs_*":        {{"6.1", nil, 0, ""}, {"5.15", nil, errno.EINVAL, "NO_FPROBE"}},
		"kprobe.multi/nosuch":       {{"6.1", nil, errno.ENOENT, "NO_MATCH"}},
		"kprobe.multi/vfs_*,gcd":    {{"6.1", nil, 0, ""}},
		"kprobe.multi/,":            {{"6.1", nil, errno.EINVAL, "BAD_SECTION"}},
		"kprobe.session/vfs_read":   {{"6.1", nil, errno.EINVAL, "NO_FPROBE"}, {"6.12", nil, 0, ""}},
		"kretprobe/vfs_read":        {{"6.1", nil, 0, ""}},
		"kretprobe/vfs_read+5":      {{"6.1", nil, errno.EINVAL, "BAD_SECTION"}},
		"kretprobe/vfs_read+0x":     {{"6.1", nil, 0, ""}},
		"kprobe/vfs_read-0x10":      {{"6.1", nil, 0, ""}},
		"kprobe/gcd+0x5zz":          {{"6.1", nil, 0, ""}},
		"kprobe/gcd+05":             {{"6.1", nil, 0, ""}},
		"kprobe/gcd+ 5":             {{"6.1", nil, 0, ""}},
		"kprobe/gcd+1":              {{"6.1", nil, errno.EILSEQ, "NOT_BOUNDARY"}},
		"kprobe/ext4:vfs_read":      {{"6.1", nil, errno.ENOENT, "UNKNOWN_SYMBOL"}},
		"kprobe/*":                  {{"6.1", nil, errno.EINVAL, "BAD_SECTION"}},
		"kprobe/0xffffffff81000000": {{"6.1", nil, errno.ENOENT, "UNKNOWN_SYMBOL"}},
		"kprobe.s/vfs_read":         {{"6.1", nil, errno.EINVAL, "BAD_SECTION"}},
		"tracing/vfs_read":          {{"6.1", nil, errno.EINVAL, "BAD_SECTION"}},
		"tp/sched_switch":           {{"6.1", nil, errno.EINVAL, "BAD_SECTION"}},
	} {
		for i, c := range list {
			probes, err := report.ReadProbes(bytes.NewReader(bpfObject(elf.EM_BPF, section)))
			require.NoError(t, err)
			k := newLister(t, c.release)
			if c.set != nil {
				c.set(k)
			}
			var check report.Check
			check.Add(k, probes)
			cell := check.Probes[0].Cells[0]
			require.Equal(t, -int(c.errno), cell.Errno, "%s %d: %s", section, i, cell.Detail)
			require.Equal(t, c.reason, cell.Reason.String(), "%s %d: %s", section, i, cell.Detail)
			require.Equal(t, c.errno == 0, cell.Attaches, section)
		}
	}
}

// Rule: the kernel's own lists decide about hooks.
func TestCheckHooks(t *testing.T) {
	for name, c := range map[string]struct {
		sets    map[string][]int
		section string
		reason  string
	}{
		"listed":            {map[string][]int{kimage.SetHooks: {1}}, "lsm/vfs", ""},
		"not_listed":        {map[string][]int{kimage.SetHooks: {2}}, "lsm/vfs", "NO_HOOK"},
		"nothing_known":     {nil, "lsm/vfs", ""},
		"kept_from":         {map[string][]int{kimage.SetHooks: {1}, kimage.SetHooksOff: {1}}, "lsm/vfs", "NO_HOOK"},
		"asleep_and_listed": {map[string][]int{kimage.SetHooks: {1}, kimage.SetHooksAsleep: {1}}, "lsm.s/vfs", ""},
		"asleep_and_not":    {map[string][]int{kimage.SetHooks: {1}, kimage.SetHooksAsleep: {3}}, "lsm.s/vfs", "MAY_NOT_SLEEP"},
	} {
		t.Run(name, func(t *testing.T) {
			k := &hooked{newLister(t, "6.12")}
			k.programs.Sets = maps.Clone(c.sets)
			k.ids = map[string]int{"bpf_lsm_vfs": 1}
			probes, err := report.ReadProbes(bytes.NewReader(bpfObject(elf.EM_BPF, c.section)))
			require.NoError(t, err)
			var check report.Check
			check.Add(k, probes)
			require.Equal(t, c.reason, check.Probes[0].Cells[0].Reason.String())
		})
	}
}

// hooked is a kernel that calls vfs_read a security hook.
type hooked struct{ *lister }

func (k *hooked) Lookup(name string) []kimage.Symbol {
	if name == "bpf_lsm_vfs" {
		name = "vfs_read"
	}
	return k.lister.Lookup(name)
}
