package bpf_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/bpf"
	"kprobelab/bpf/answer"
	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/integration/dumps/runs"
)

// loader builds the program of the guest.
var loader = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "bpfloader")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "loader")
	cmd := exec.Command("go", "build", "-o", file, "kprobelab/internal/bpfloader")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.New(string(out))
	}
	return os.ReadFile(file)
})

func options(t *testing.T) *bpf.Options {
	code, err := loader()
	require.NoError(t, err)
	return &bpf.Options{Loader: code, Lab: kprobelab.Options{Budget: bpf.Budget}}
}

// each loads an object on every kernel that there is a dump of.
func each(t *testing.T, object []byte, test func(t *testing.T, programs map[string]answer.Program)) {
	eachOf(t, dumps.Running, dumps.Twin, object, nil, func(t *testing.T, _ *kprobelab.Lab, a *answer.Object) {
		programs := map[string]answer.Program{}
		for _, p := range a.Programs {
			programs[p.Name] = p
		}
		test(t, programs)
	})
}

// eachKernel loads an object on the oldest and the newest kernel (make soak: on each), with options that set changes; it may be nil.
func eachKernel(t *testing.T, object []byte, set func(*testing.T, *kprobelab.Lab, *bpf.Options), test func(t *testing.T, l *kprobelab.Lab, a *answer.Object)) {
	eachOf(t, dumps.Running, dumps.Ends, object, set, test)
}

func eachOf(t *testing.T, names []string, skip func(testing.TB, string), object []byte, set func(*testing.T, *kprobelab.Lab, *bpf.Options), test func(t *testing.T, l *kprobelab.Lab, a *answer.Object)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			skip(t, name)
			o := options(t)
			l, err := kprobelab.Open(runs.File(t, name), &o.Lab)
			require.NoError(t, err)
			t.Cleanup(func() { _ = l.Close() })
			k, err := l.Booted()
			require.NoError(t, err)
			if set != nil {
				set(t, l, o)
			}
			a, err := bpf.Load(k, object, o)
			require.NoError(t, err)
			test(t, l, a)
		})
	}
}

// TestVerdictsOfTheKernels: what each kernel loads and attaches, and the line of source to blame where it does not.
func TestVerdictsOfTheKernels(t *testing.T) {
	unset := fine("unset", "kprobe/vfs_open")
	unset.code[0], unset.lines[0] = readR2, "int x = nobody;"
	field := fine("field", "kprobe/vfs_fsync")
	field.code = [][8]byte{moveField, returnZero, exit}
	field.lines = []string{"unsigned at = offsetof(struct task_struct, nosuch);", "int x = 0;", "return x;"}
	field.relocated = 0
	programs := []program{
		unset, field, fine("probe", "kprobe/vfs_read"), fine("inside", "kprobe/vfs_read+0x1"), fine("returns", "kretprobe/vfs_read"),
		fine("absent", "kprobe/no_such_function"), fine("optional", "?kprobe/vfs_write"), fine("system_call", "ksyscall/openat"),
		fine("enters", "fentry/vfs_read"), fine("leaves", "fexit/vfs_read"), fine("point", "tracepoint/sched/sched_switch"),
		fine("no_point", "tp/sched/no_such_event"), fine("raw", "raw_tp/sys_enter"), fine("clock", "perf_event"), fine("packet", "xdp"),
		fine("control", "cgroup_skb/ingress"), fine("unknown", "whatever"), fine("nowhere", "kprobe"), fine("traffic", "tc"),
		fine("filter", "socket"), fine("dissector", "flow_dissector"), fine("finder", "sk_lookup"), fine("sharer", "sk_reuseport"),
		fine("verdict", "sk_skb/stream_verdict"), fine("message", "sk_msg"),
	}
	each(t, object{programs}.build(), func(t *testing.T, got map[string]answer.Program) {
		require.Len(t, got, len(programs))
		for _, name := range []string{"probe", "returns", "optional", "system_call", "enters", "leaves", "point", "raw", "clock", "packet", "control", "filter", "dissector", "finder", "sharer", "verdict", "message"} {
			p := got[name]
			require.True(t, p.Loads, "%+v", p)
			require.NotNil(t, p.Attaches, "%+v", p)
			require.True(t, *p.Attaches, "%+v", p)
			require.Equal(t, [2]int{2, 2}, [2]int{p.Instructions, p.Verified}, name)
			require.Nil(t, p.Blame)
		}
		for name, want := range map[string]string{"absent": "ENOENT: ", "inside": "EILSEQ: ", "no_point": "ENOENT: "} {
			p := got[name]
			require.True(t, p.Loads, name)
			require.False(t, *p.Attaches, name)
			require.True(t, strings.HasPrefix(p.AttachError, want), "%+v", p)
		}
		for _, name := range []string{"nowhere", "traffic"} {
			require.True(t, got[name].Loads, name)
			require.Nil(t, got[name].Attaches, name)
			require.NotEmpty(t, got[name].AttachError, name)
		}
		p := got["unknown"]
		require.False(t, p.Loads)
		require.Contains(t, p.Error, "no kind of program")
		p = got["unset"]
		require.False(t, p.Loads)
		require.Nil(t, p.Attaches)
		require.Equal(t, "R2 !read_ok", p.Error)
		require.Equal(t, "EACCES", p.Errno)
		require.Equal(t, &answer.Place{File: "/src/tool.bpf.c", Line: 10, Text: "int x = nobody;"}, p.Blame)
		require.Contains(t, p.Log, "processed ")
		p = got["field"]
		require.False(t, p.Loads)
		require.Empty(t, p.Errno, "the kernel has never seen it as it was written")
		require.Contains(t, p.Error, "this kernel has no task_struct.nosuch")
		require.Equal(t, "unsigned at = offsetof(struct task_struct, nosuch);", p.Blame.Text)
	})
}

// TestObjectsThatAreNone: one sentence, before or inside of the guest, and no table.
func TestObjectsThatAreNone(t *testing.T) {
	whole := object{[]program{fine("a", "kprobe/vfs_read")}}.build()
	file := runs.File(t, "6.1")
	for name, data := range map[string][]byte{"empty": nil, "text": []byte("int main;"), "cut": whole[:len(whole)/2], "no_programs": object{}.build()} {
		t.Run(name, func(t *testing.T) {
			table, err := bpf.Ask(t.Context(), "x.o", data, []string{"6.1"}, func(context.Context, string) (string, error) { return file, nil }, options(t))
			require.ErrorIs(t, err, bpf.ErrObject)
			require.NotContains(t, err.Error(), "\n")
			require.Nil(t, table)
		})
	}
}

// TestProgramsAtTheVerifiersLimit: a program that the verifier gives up has its reason, even where it fills the guest's memory; the
// programs after it are asked.
func TestProgramsAtTheVerifiersLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("shortened: the verifier takes a million instructions (make check runs it)")
	}
	data := object{[]program{endless(), fine("last", "kprobe/vfs_read")}}.build()
	names := []string{"6.1"}
	if os.Getenv("KPROBELAB_SOAK") != "" {
		names = dumps.Running
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			file := runs.File(t, name)
			table, err := bpf.Ask(t.Context(), "x.o", data, []string{name}, func(context.Context, string) (string, error) { return file, nil }, options(t))
			require.NoError(t, err)
			require.Equal(t, 1, table.Code())
			list := table.Columns[0].Programs
			require.Len(t, list, 2)
			require.False(t, list[0].Loads)
			require.Regexp(t, "^BPF program is too large. Processed 1000001 insn$|^signal 9 has ended the loader; ", list[0].Error)
			require.Less(t, len(list[0].Log), 1000)
			require.True(t, *list[1].Attaches)
		})
	}
}

// TestKernelsThatCannotBeAsked: the others answer, and the reason is in the column.
func TestKernelsThatCannotBeAsked(t *testing.T) {
	file := runs.File(t, "6.1")
	absent := errors.New("there is no such kernel")
	data := object{[]program{fine("a", "kprobe/vfs_read")}}.build()
	table, err := bpf.Ask(t.Context(), "x.o", data, []string{"5.4", "6.1"}, func(_ context.Context, kernel string) (string, error) {
		if kernel == "5.4" {
			return "", absent
		}
		return file, nil
	}, options(t))
	require.ErrorIs(t, err, absent)
	require.Equal(t, absent.Error(), table.Columns[0].Err)
	require.Len(t, table.Columns[1].Programs, 1)
	require.Contains(t, table.Columns[1].Release, "6.1.")
	var out bytes.Buffer
	require.NoError(t, table.Text(&out, false))
	require.Equal(t, `program  section          5.4  6.1
a        kprobe/vfs_read  -    attaches

5.4
  there is no such kernel
`, out.String())
}
