package bpf_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/bpf"
	"kprobelab/bpf/answer"
)

// TestVariablesOfTheKernel: with a type, the verifier knows a variable by the number of its type; without, a program gets its address. Weak
// ones that the kernel does not have are 0.
func TestVariablesOfTheKernel(t *testing.T) {
	object := compiled(t, `
#define __ksym __attribute__((section(".ksyms")))
#define __weak __attribute__((weak))
#define bad *(volatile int *)0
static void *(*per_cpu)(const void *p, u32 cpu) = (void *)153;
struct rq { u32 nr_running; int cpu; } __attribute__((preserve_access_index));
extern const struct rq runqueues __ksym;
extern const int nosuch_weak __ksym __weak;
extern const int nosuch_strong __ksym;
extern const void jiffies_64 __ksym;
extern const void nosuch_void __ksym __weak;
u64 address; int processor;
SEC("raw_tp/sys_enter") int typed(void *ctx) { struct rq *r = per_cpu(&runqueues, 0); processor = r ? r->cpu + 10 : 0; return 0; }
SEC("raw_tp/sys_enter") int outside(void *ctx) { return *(volatile int *)((void *)&runqueues + (1 << 20)); }
SEC("raw_tp/sys_enter") int weak(void *ctx) { return &nosuch_weak ? bad : 0; }
SEC("raw_tp/sys_enter") int strong(void *ctx) { return nosuch_strong; }
SEC("raw_tp/sys_enter") int plain(void *ctx) { address = (u64)&jiffies_64; return 0; }
SEC("raw_tp/sys_enter") int weak_plain(void *ctx) { return &nosuch_void ? bad : 0; }
`)
	with := func(_ *testing.T, _ *kprobelab.Lab, o *bpf.Options) { o.Workload = "true" }
	eachKernel(t, object, with, func(t *testing.T, l *kprobelab.Lab, a *answer.Object) {
		absent, processor := []string{"strong", "outside"}, "10"
		if strings.HasPrefix(l.Image.Release(), "5.10.") { // its BTF has no variables
			absent, processor = append(absent, "typed"), "0"
		}
		attached(t, a, absent...)
		for _, p := range a.Programs {
			switch p.Name {
			case "strong":
				require.False(t, p.Loads)
				require.Equal(t, "this kernel has no variable nosuch_strong (extern __ksym, with a type)", p.Error)
			case "outside":
				require.False(t, p.Loads)
				if processor != "0" {
					require.Equal(t, "EACCES", p.Errno, "%+v", p)
				}
			}
		}
		require.Empty(t, a.Run.Error)
		at := l.Image.Lookup("jiffies_64")
		require.Len(t, at, 1)
		require.Equal(t, `{"processor":`+processor+`,"address":`+strconv.FormatUint(uint64(at[0].Addr), 10)+`}`, string(bss(a)))
	})
}
