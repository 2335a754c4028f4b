package kimage_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
	"kprobelab/kimage"
)

// A system call has events if the kernel's table has it: x86-64 kernels have the metadata of nice, and no such call.
func TestSyscallEventsAreTheTables(t *testing.T) {
	for _, name := range dumps.Running {
		t.Run(name, func(t *testing.T) {
			img, err := kimage.Open(dumps.File(t, name), nil)
			require.NoError(t, err)
			list := img.SyscallEvents()
			require.Greater(t, len(list), 300)
			named := func(name string) int {
				return slices.IndexFunc(list, func(e kimage.SyscallEvent) bool { return e.Name == name })
			}
			read := kimage.SyscallEvent{Name: "read", Args: []kimage.SyscallArg{{Type: "unsigned int", Name: "fd"}, {Type: "char *", Name: "buf"}, {Type: "size_t", Name: "count"}}}
			require.Equal(t, read, list[named("read")])
			require.Empty(t, list[named("getpid")].Args)
			require.Len(t, list[named("mmap")].Args, 6)
			require.NotEmpty(t, img.Lookup("__syscall_meta__nice"))
			for _, absent := range []string{"nice", "stime", "waitpid", "sgetmask"} {
				require.Negative(t, named(absent), absent)
			}
		})
	}
}
