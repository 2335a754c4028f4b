package running

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/breakpoints"
	"kprobelab/internal/integration/dumps"
	"kprobelab/x86"
)

// TestEntryAreaByTheImage: the part of the address space that no register may watch is the areas of the CPUs that a kernel
// was built for, 8192 of 236 KiB and a page, or from 6.2 on all of cpu_entry_area's.
func TestEntryAreaByTheImage(t *testing.T) {
	for name, end := range map[string]x86.Addr{"5.10": 0xfffffe0076001000, "6.1": 0xfffffe0076001000, "6.12": 0xfffffe8000000000, "newest": 0xfffffe8000000000} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, x86.Range{Start: 0xfffffe0000000000, End: end}, boot(t, name).Registers().Kernel.Entry[0])
		})
	}
}

// TestDebugRegisters: a program requests hardware breakpoints of booted kernels at random, by task,
// by CPU and by ptrace; the rules give the same answers. QUESTIONS is the number of requests, to
// all kernels; without it, two kernels get some.
func TestDebugRegisters(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("QUESTIONS"))
	names, each := dumps.Running, 300
	if n == 0 {
		names, each = []string{"6.1.smp2", "newest"}, 100
	}
	program, err := os.ReadFile("../../../testdata/registers.elf")
	require.NoError(t, err)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			k := boot(t, name)
			asked := 0
			for first := true; first || asked < n; first = false {
				seed := rand.Uint64()
				k.restore()
				k.put("/registers", program)
				set := k.Registers()
				set.Kernel.Restricted = true // Debian's
				list := breakpoints.Random(rand.New(rand.NewPCG(seed, 2)), breakpoints.ChoiceOf(set.Kernel, k.Image), set.Kernel, each)
				end := k.fed(breakpoints.Encode(list), "/registers")
				got, err := breakpoints.Read(end.out)
				require.NoError(t, err)
				asked += len(got)
				require.Empty(t, breakpoints.Differences(set.Kernel, list, got), "seed %d", seed)
			}
			t.Logf("%d questions", asked)
		})
	}
}
