package running

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/booted"
	"kprobelab/hostfiles"
	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/tinyprogram"
)

// Programs that fill the memory. touch writes to CX pages below the stack pointer.
const (
	touch = "touch: sub $0x1000,%rsp\nmovb $0x1,(%rsp)\ndec %ecx\njne touch\n"
	// many makes processes without end, each smaller than the supervisor.
	many = "again: mov $0x39,%eax\nsyscall\ntest %eax,%eax\njne again\nmov $40,%ecx\n" + touch + wait
	// wait sleeps until a signal ends it.
	wait = "wait: mov $0x22,%eax\nsyscall\njmp wait\n"
	// large writes to a gigabyte.
	large = "mov $0x9,%eax\nxor %edi,%edi\nmov $0x40000000,%esi\nmov $0x3,%edx\nmov $0x4022,%r10d\nmov $-1,%r8\nxor %r9d,%r9d\nsyscall\n" +
		"again: movb $0x1,(%rax)\nadd $0x1000,%rax\njmp again\n"
)

// TestFullMemory: a full memory makes the guest's kernel kill a program or one of its processes, never the supervisor.
func TestFullMemory(t *testing.T) {
	eachBut(t, dumps.Ends, func(t *testing.T, k *kernel) {
		for _, c := range []struct {
			name, program, workload string
			code                    int
		}{
			{"many_processes", "/tmp/many", "", 130},
			{"a_large_program", "/tmp/large", "", 137},
			{"many_processes_of_a_workload", "/tmp/wait", "/tmp/many", 130},
			{"a_large_workload", "/tmp/wait", "/tmp/large", 130},
		} {
			t.Run(c.name, func(t *testing.T) {
				k.restore()
				for name, text := range map[string]string{"many": many, "large": large, "wait": wait} {
					b, err := tinyprogram.Build(nil, tinyprogram.Function{Name: "_start", Text: text})
					require.NoError(t, err)
					require.NoError(t, k.Put([]hostfiles.File{{Path: "/tmp/" + name, Mode: 0o755, Data: b}}))
				}
				s := &booted.Session{Program: booted.Program{Args: []string{c.program}}, For: 400 * time.Millisecond}
				if c.workload != "" {
					s.Workloads = []*booted.Program{{Args: []string{c.workload}}}
				}
				r, err := k.Run(context.Background(), s)
				require.NoError(t, err)
				log := fmt.Sprint(r.Trouble)
				require.Contains(t, log, "Out of memory: Killed process ")
				require.NotContains(t, log, "(kprobelab)")
				require.Equal(t, c.code, r.Code, log)
				if c.workload != "" {
					require.Equal(t, 137, r.Workloads[0].Code)
				}
			})
		}
	})
}

// TestSupervisorIsSpared: the kernel kills the supervisor last, and its programs as any other.
func TestSupervisorIsSpared(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		k.restore()
		const scores = "cat /proc/self/oom_score_adj /proc/$PPID/oom_score_adj"
		var out, beside bytes.Buffer
		workload := sh(scores, &beside)
		r, err := k.Run(context.Background(), &booted.Session{Program: sh("trap 'exit 3' INT; "+scores+"; while :; do sleep 1; done", &out), Workloads: []*booted.Program{&workload}})
		require.NoError(t, err)
		require.Equal(t, 3, r.Code)
		require.Equal(t, []string{"0\n-1000\n", "0\n-1000\n"}, []string{out.String(), beside.String()})
	})
}
