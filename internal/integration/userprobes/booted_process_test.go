package userprobes

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/process"
)

// Pieces of programs that make processes: a system call without arguments, the parent's wait for its
// child, after which edi is the status's exit code or signal.
const (
	fork  = "mov $0x39,%eax\nsyscall\n"
	vfork = "mov $0x3a,%eax\nsyscall\n"
	wait  = "push $-0x1\npop %rdi\nsub $0x10,%rsp\nmov %rsp,%rsi\nxor %edx,%edx\nxor %r10d,%r10d\nmov $0x3d,%eax\nsyscall\nmov (%rsp),%edi\nadd $0x10,%rsp\n" +
		"mov %edi,%eax\nshr $0x8,%edi\nand $0x7f,%eax\nadd %eax,%edi"
	// again executes the file whose name is at the data's start, with two arguments.
	again = "push $0x0\npush %rdi\npush %rdi\nmov $0x402000,%edi\nmov %rdi,(%rsp)\nmov %rdi,0x8(%rsp)\nmov %rsp,%rsi\nxor %edx,%edx\nmov $0x3b,%eax\nsyscall\n"
)

// Rule: a process inherits probes by fork, vfork and execve as on a kernel.
func TestProcessesAsOnBootedKernels(t *testing.T) {
	const f1, f1Returns = "p:uprobes/a /prog:0x1080 %di", "r:uprobes/r /prog:0x1080 $retval:u8"
	call := func(edi string) string { return "mov $" + edi + ",%edi\ncall 0x401080\n" }
	inParent := func(make, child string) string {
		return make + "test %eax,%eax\njne parent\n" + child + "\nparent: " + wait + exit
	}
	const plain = "push %rdi\npop %rax\nnopl (%rax)\nret"
	cases := map[string]struct {
		functions []string
		events    []string
	}{
		"both_call":          {[]string{call("0x1") + inParent(fork, call("0x2")+"mov $0x3,%edi"+exit), plain}, []string{f1, f1Returns, "p:uprobes/s /prog:0x1082"}},
		"child_after_parent": {[]string{inParent(fork, call("0x2")+call("0x3")+"mov $0x3,%edi"+exit), plain}, []string{f1, "p:uprobes/s /prog:0x1082"}},
		"vfork":              {[]string{call("0x1") + inParent(vfork, call("0x2")+"mov $0x3,%edi"+exit), plain}, []string{f1, f1Returns, "p:uprobes/s /prog:0x1082"}},
		"fork_in_a_call": {
			[]string{"call 0x401080\ntest %eax,%eax\njne parent\nmov $0x5,%edi" + exit + "\nparent: " + wait + exit, "nop\n" + fork + "ret"},
			[]string{"r:uprobes/r /prog:0x1080", "p:uprobes/s /prog:0x1080"},
		},
		"fork_in_calls_of_calls": {
			[]string{"call 0x401080\ntest %eax,%eax\njne parent\nmov $0x5,%edi" + exit + "\nparent: " + wait + exit, "call 0x401100\nret", "nop\njmp 0x401180", fork + "nop\nret"},
			[]string{"r:uprobes/r /prog:0x1080", "r:uprobes/q /prog:0x1100", "r:uprobes/p /prog:0x1180", "p:uprobes/s /prog:0x1187"},
		},
		"vfork_in_a_call": {
			// The child ends in a call of its own, and its return address is the parent's, too.
			[]string{"call 0x401080\ntest %eax,%eax\nmov %eax,%edi\n" + wait + exit, vfork + "test %eax,%eax\njne out\nmov $0x7,%edi\ncall 0x401100\nout: ret", "mov $0x4,%edi" + exit},
			[]string{"r:uprobes/r /prog:0x1080", "r:uprobes/q /prog:0x1100"},
		},
		"fork_that_is_stepped": {[]string{"nop\n" + inParent(fork, "mov $0x3,%edi"+exit), "ret"}, []string{"p:uprobes/a /prog:0x1006 %ax", "p:uprobes/b /prog:0x1000"}},
		"fork_that_is_stepped_in_a_call": {
			[]string{"call 0x401080\ntest %eax,%eax\njne parent\nmov $0x5,%edi" + exit + "\nparent: " + wait + exit, fork + "nop\nret"},
			[]string{"r:uprobes/r /prog:0x1080", "p:uprobes/s /prog:0x1085"},
		},
		"vfork_that_is_stepped": {[]string{inParent(vfork, "mov $0x3,%edi"+exit), "ret"}, []string{"p:uprobes/a /prog:0x1005 %ax"}},
		"wait_that_is_stepped":  {[]string{inParent(fork, "mov $0x3,%edi"+exit), "ret"}, []string{"p:uprobes/a /prog:0x102b %ax"}},
		"every_instruction_of_a_child": {
			[]string{inParent(fork, "call 0x401080"+exit), "mov $0x6,%edi\npush %rdi\npop %rax\nxor %eax,%eax\nret"},
			[]string{"p:uprobes/a /prog:0x1080", "p:uprobes/b /prog:0x1085", "p:uprobes/c /prog:0x1086 %ax", "p:uprobes/d /prog:0x1087", "p:uprobes/e /prog:0x1089"},
		},
		"exec": {
			[]string{"mov (%rsp),%eax\ncmp $0x2,%eax\nje again\n" + inParent(fork, "call 0x401100") + "\nagain: call 0x401080\nmov $0x9,%edi" + exit, plain, again + "ret"},
			[]string{f1, f1Returns, "p:uprobes/s /prog:0x1000", "r:uprobes/lost /prog:0x1100"},
		},
		"exec_that_is_stepped": {
			[]string{"mov (%rsp),%eax\ncmp $0x2,%eax\nje again\n" + inParent(fork, "call 0x401100") + "\nagain: call 0x401080\nmov $0x9,%edi" + exit, plain, again + "nop\nret"},
			[]string{f1, "p:uprobes/s /prog:0x111c"},
		},
		"vfork_and_exec": {
			[]string{"mov (%rsp),%eax\ncmp $0x2,%eax\nje again\n" + inParent(vfork, "call 0x401100") + "\nagain: call 0x401080\nmov $0x9,%edi" + exit, plain, again + "ret"},
			[]string{f1, f1Returns, "p:uprobes/s /prog:0x1000"},
		},
		"child_killed_at_a_probe": {[]string{call("0x1") + inParent(fork, call("0x2")), "mov (%rdi),%eax\nret"}, []string{"p:uprobes/a /prog:0x1000"}},
		"child_faults_at_a_probe": {[]string{inParent(fork, call("0x10")), "nop\nmov (%rdi),%eax\nret"}, []string{f1, "p:uprobes/s /prog:0x1081 %di"}},
	}
	eachKernel(t, func(t *testing.T, b *bootedKernel) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				f := small(t, []byte("/prog\x00"), c.functions...)
				want, got := b.run(f, nil, nil, c.events...), b.alone(f, nil, nil, c.events...)
				if name == "vfork_that_is_stepped" && b.Image.Profile().Name == "5.10" {
					// The child dies of SIGTRAP, and the parent with it, which shares its memory; here it goes on.
					require.Equal(t, 128+int(process.SIGTRAP), want.code)
					require.NotEqual(t, want.code, got.code, "it is as on 5.10 now: compare it like the others")
					return
				}
				require.Equal(t, byTask(want.trace), byTask(got.trace))
				require.Equal(t, want.code, got.code)
				require.NotEmpty(t, got.trace)
			})
		}
	})
}

// byTask returns the hits of each process, without the processes' numbers and times.
func byTask(lines []string) (list []string) {
	tasks := map[string]string{}
	for i, text := range told(lines) {
		task := strings.Fields(lines[i])[0]
		tasks[task] += text + "\n"
	}
	return slices.Sorted(maps.Values(tasks))
}
