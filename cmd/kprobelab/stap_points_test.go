package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
)

// pointsRelease is the kernel on which stap 4.8 was asked.
const pointsRelease = "6.1.0-56-cloud-amd64"

// debugInfo returns a kernel's vmlinux with DWARF. It has 600 MB, and CI does not have it: POINTS=N make
// conformance-stap fetches the vmlinux of pointsRelease, and runs the tests that need it.
func debugInfo(t *testing.T, release string) string {
	file := dumps.DebugInfo(release)
	if file == "" {
		t.Skip("no vmlinux with debugging information of " + release + " in .cache/kernel (scripts/kernel.sh --debuginfo fetches it)")
	}
	return file
}

// Probe points are where stap -p2 has them. make conformance-stap compares many more.
func TestStapPointsOfAKernelWithDWARF(t *testing.T) {
	vmlinux := debugInfo(t, pointsRelease)
	place := regexp.MustCompile(`^(kernel\.\S+)\? /\* pc=_stext\+(0x[0-9a-f]+) \*/ /\* <- `)
	resolved := func(t *testing.T, point string) (list []string) {
		for _, line := range stapped(t, "-p2", "-r", vmlinux, "-e", "probe "+point+" ? { println(0) } probe begin { println(0) }") {
			if m := place.FindStringSubmatch(line); m != nil {
				list = append(list, m[1]+" "+m[2])
			}
		}
		slices.Sort(list)
		return list
	}
	inlined := []string{
		"0x34b335", "0x34b82a", "0x34c40a", "0x34c6bb", "0x34c810", "0x34d7e5", "0x34d915", "0x36823d", "0x36830d",
		"0x368410", "0x368531", "0x368650", "0x368771", "0x36885d", "0x368961",
	}
	for name, c := range map[string]struct {
		point, want string
		at          []string
	}{
		"a function":                         {`kernel.function("vfs_read")`, `kernel.function("vfs_read@fs/read_write.c:450")`, []string{"0x34cc50"}},
		"its return":                         {`kernel.function("vfs_read").return`, `kernel.function("vfs_read@fs/read_write.c:450").return`, []string{"0x34cc50"}},
		"of a file":                          {`kernel.function("vfs_read@fs/read_write.c").call`, `kernel.function("vfs_read@fs/read_write.c:450").call`, []string{"0x34cc50"}},
		"inlined":                            {`kernel.function("fdget_pos").inline`, `kernel.function("fdget_pos@include/linux/file.h:73").inline`, inlined},
		"inlined only":                       {`kernel.function("fdget_pos")`, `kernel.function("fdget_pos@include/linux/file.h:73")`, inlined},
		"inlined is not called":              {`kernel.function("fdget_pos").call`, "", nil},
		"inlined into its own code":          {`kernel.function("vfs_rmd*")`, `kernel.function("vfs_rmdir@fs/namei.c:4223")`, []string{"0x35cd20", "0x35cd55"}},
		"called, not inlined":                {`kernel.function("vfs_rmd*").call`, `kernel.function("vfs_rmdir@fs/namei.c:4223").call`, []string{"0x35cd20"}},
		"static is not exported":             {`kernel.function("audit_cb").exported`, "", nil},
		"exported":                           {`kernel.function("vfs_read").exported`, `kernel.function("vfs_read@fs/read_write.c:450").exported`, []string{"0x34cc50"}},
		"thrown away after booting":          {`kernel.function("sock_init")`, "", nil},
		"an exit that is not needed":         {`kernel.function("tpm_exit")`, "", nil},
		"a statement that is a whole":        {`kernel.statement("vfs_read")`, `kernel.statement("vfs_read@fs/read_write.c:450")`, []string{"0x34cc50"}},
		"a line":                             {`kernel.statement("vfs_read@fs/read_write.c:470")`, `kernel.statement("vfs_read@fs/read_write.c:470")`, []string{"0x34cdb5"}},
		"a line of whatever function":        {`kernel.statement("*@fs/read_write.c:479")`, `kernel.statement("vfs_read@fs/read_write.c:479")`, []string{"0x34cd17"}},
		"a line from the function's on":      {`kernel.statement("vfs_read@fs/read_write.c+5")`, `kernel.statement("vfs_read@fs/read_write.c:455")`, []string{"0x34cf3f"}},
		"by the symbol table's name":         {`kernel.function("__x64_sys_getpid")`, `kernel.function("__do_sys_getpid@kernel/sys.c:951")`, []string{"0xb0f40"}},
		"a function, whatever line":          {`kernel.function("vfs_read@fs/read_write.c:455")`, `kernel.function("vfs_read@fs/read_write.c:450")`, []string{"0x34cc50"}},
		"the nearest line":                   {`kernel.statement("vfs_read@fs/read_write.c:453").nearest`, `kernel.statement("vfs_read@fs/read_write.c:454")`, []string{"0x34cc63"}},
		"by one of several names, a pattern": {`kernel.function("__x64_sys_getppi*")`, `kernel.function("__do_sys_getppid@kernel/sys.c:968")`, []string{"0xb0f90"}},
		"not the rest of a function":         {`kernel.statement("wb_get_lookup@mm/backing-dev.c:567")`, `kernel.statement("wb_get_lookup@mm/backing-dev.c:567")`, []string{"0x2a1723"}},
		"nor its lines":                      {`kernel.statement("wb_get_lookup@mm/backing-dev.c:575-578")`, "", nil},
		"a symbol of two rests that are one": {`kernel.function("tl_to_darg*").call`, `kernel.function("tl_to_darg.part.0").call`, []string{"0x9df7ec"}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for _, at := range c.at {
				want = append(want, c.want+" "+at)
			}
			require.Equal(t, want, resolved(t, c.point))
		})
	}
	t.Run("a line without code in one of several files, although it need not be there", func(t *testing.T) {
		const script = `probe kernel.statement("kref_put@include/linux/kref.h:66") ? { println(0) } probe begin { println(0) }`
		code, out, said := command("stap", "-p2", "-r", vmlinux, "-e", script)
		require.Equal(t, 1, code)
		require.Empty(t, out)
		require.Contains(t, said, "semantic error: no line records for include/linux/kref.h:66 (try :65)")
	})
	t.Run("renamed and split is there twice", func(t *testing.T) {
		require.Equal(t, []string{
			`kernel.function("trace_event_get_offsets_fdb_delete.isra.0") 0x7f7710`,
			`kernel.function("trace_event_get_offsets_fdb_delete.isra.0.cold") 0xa014be`,
			`kernel.function("trace_event_get_offsets_fdb_delete@include/trace/events/bridge.h:69") 0x7f7710`,
		}, resolved(t, `kernel.function("trace_event_get_offsets_fdb_delete*")`))
	})
}

// stap -L of the real stap lists the same lines and variables.
func TestStapListOfAKernelWithDWARF(t *testing.T) {
	vmlinux := debugInfo(t, pointsRelease)
	const read = "$file:struct file* $buf:char* $count:size_t $pos:loff_t*"
	for name, c := range map[string]struct {
		point string
		want  []string
	}{
		"all lines of a function": {`kernel.statement("kernel_read@fs/read_write.c:*")`, []string{
			`kernel.statement("kernel_read@fs/read_write.c:440") $file:struct file* $buf:void* $count:size_t $pos:loff_t*`,
			`kernel.statement("kernel_read@fs/read_write.c:441") $file:struct file* $buf:void* $count:size_t $pos:loff_t*`,
			`kernel.statement("kernel_read@fs/read_write.c:444") $file:struct file* $buf:void* $count:size_t $pos:loff_t* $ret:ssize_t`,
			`kernel.statement("kernel_read@fs/read_write.c:446") $file:struct file* $buf:void* $count:size_t $pos:loff_t* $ret:ssize_t`,
			`kernel.statement("kernel_read@fs/read_write.c:447") $file:struct file* $buf:void* $count:size_t $pos:loff_t* $ret:ssize_t`,
		}},
		"a list of lines": {`kernel.statement("vfs_read@fs/read_write.c:455,457,460-462")`, []string{
			`kernel.statement("vfs_read@fs/read_write.c:455") ` + read,
			`kernel.statement("vfs_read@fs/read_write.c:457") ` + read,
			`kernel.statement("vfs_read@fs/read_write.c:461") ` + read,
			`kernel.statement("vfs_read@fs/read_write.c:462") ` + read + " $ret:ssize_t",
		}},
		"a return":             {`kernel.function("vfs_read").return`, []string{`kernel.function("vfs_read@fs/read_write.c:450").return $return:ssize_t ` + read}},
		"what all copies have": {`kernel.function("fdget_pos").inline`, []string{`kernel.function("fdget_pos@include/linux/file.h:73").inline`}},
		"const after the type, and the call at the entry passed": {`kernel.function("sort_r@lib/sort.c")`, []string{
			`kernel.function("sort_r@lib/sort.c:210") $base:void* $num:size_t $size:size_t $cmp_func:cmp_r_func_t $swap_func:swap_r_func_t $priv:void const* $n:size_t`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, strings.Join(c.want, "\n")+"\n", strings.Join(stapped(t, "-r", vmlinux, "-L", c.point), ""))
		})
	}
}
