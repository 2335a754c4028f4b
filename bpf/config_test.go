package bpf_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/bpf"
	"kprobelab/bpf/answer"
)

// configured are programs that load if a variable of the configuration has its value.
const configured = `
#define __kconfig __attribute__((section(".kconfig")))
extern const int CONFIG_HZ __kconfig;
extern const int CONFIG_NOSUCH __kconfig __attribute__((weak));
SEC("kprobe/vfs_read") int hertz(void *ctx) { return CONFIG_HZ == 250 ? 0 : *(volatile int *)(0UL); }
SEC("kprobe/vfs_write") int none(void *ctx) { return CONFIG_NOSUCH == 0 ? 0 : *(volatile int *)(0UL); }
typedef u32 number;
extern const volatile number LINUX_KERNEL_VERSION __kconfig;
SEC("kprobe/vfs_fsync") int version(void *ctx) { return LINUX_KERNEL_VERSION >= 0x50a00 ? 0 : *(volatile int *)(0UL); }
SEC("kprobe/vfs_open") int other(void *ctx) { return 0; }
`

// TestVariablesOfTheConfiguration: a program reads the kernel's configuration, a weak variable that is not in it is 0, and a program
// without such a variable loads without a configuration.
func TestVariablesOfTheConfiguration(t *testing.T) {
	object := compiled(t, configured)
	for name, c := range map[string]struct {
		config string
		loads  []string
	}{
		"the kernel's":  {"CONFIG_HZ=250\n", []string{"hertz", "none", "other", "version"}},
		"another value": {"CONFIG_HZ=100\n", []string{"none", "other", "version"}},
		"none":          {"", []string{"other"}},
	} {
		t.Run(name, func(t *testing.T) {
			with := func(_ *testing.T, _ *kprobelab.Lab, o *bpf.Options) {
				if c.config != "" {
					o.Config = []byte(c.config)
				}
			}
			eachKernel(t, object, with, func(t *testing.T, _ *kprobelab.Lab, a *answer.Object) {
				var loads []string
				for _, p := range a.Programs {
					if p.Loads {
						loads = append(loads, p.Name)
					}
				}
				require.Equal(t, c.loads, loads)
			})
		})
	}
}

// TestMapsOfStacksWithoutASize: a tool sets it, and the map can be made without.
func TestMapsOfStacksWithoutASize(t *testing.T) {
	object := compiled(t, `
struct { __uint(type, 7); __uint(key_size, 4); } stacks SEC(".maps");
SEC("kprobe/vfs_read") int stack(void *ctx) { return ((long (*)(void *, void *, u64))27)(ctx, &stacks, 0) < 0; }
`)
	eachKernel(t, object, nil, func(t *testing.T, _ *kprobelab.Lab, a *answer.Object) {
		require.Equal(t, "attaches", a.Programs[0].Word(), a.Programs[0].Error)
	})
}

// TestTypesThatAreNotThere: their size and number are 0, as with libbpf, and the program loads.
func TestTypesThatAreNotThere(t *testing.T) {
	object := compiled(t, `
#define bad *(volatile int *)(0UL)
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct nosuch_type { long a; };
struct task_struct { int pid; };
#pragma clang attribute pop
SEC("kprobe/vfs_read") int size(void *ctx) { return __builtin_preserve_type_info(*(struct nosuch_type *)0, 1) == 0 ? 0 : bad; }
SEC("kprobe/vfs_write") int number(void *ctx) { return __builtin_btf_type_id(*(struct nosuch_type *)0, 1) == 0 ? 0 : bad; }
SEC("kprobe/vfs_open") int there(void *ctx) { return __builtin_preserve_type_info(*(struct task_struct *)0, 1) != 0 ? 0 : bad; }
SEC("kprobe/vfs_fsync") int wrong(void *ctx) { return __builtin_preserve_type_info(*(struct nosuch_type *)0, 1) != 0 ? 0 : bad; }
`)
	eachKernel(t, object, nil, func(t *testing.T, _ *kprobelab.Lab, a *answer.Object) {
		loads := map[string]bool{}
		for _, p := range a.Programs {
			loads[p.Name] = p.Loads
		}
		require.Equal(t, map[string]bool{"number": true, "size": true, "there": true, "wrong": false}, loads)
	})
}
