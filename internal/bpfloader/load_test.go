//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

func TestLogsThatAreLong(t *testing.T) {
	log := "begin" + strings.Repeat("x", bounded.BPFLog) + "the reason"
	short := cut(log)
	require.True(t, strings.HasPrefix(short, "begin"))
	require.True(t, strings.HasSuffix(short, "the reason"))
	require.Contains(t, short, "\n[15 bytes]\n")
	require.Equal(t, log[:bounded.BPFLog], cut(log[:bounded.BPFLog]))
}

func TestFiguresOfTheVerifier(t *testing.T) {
	for log, want := range map[string][2]int{
		"verification time 29 usec\nstack depth 0\nprocessed 39 insns (limit 1000000) max_states_per_insn 1 total_states 3 peak_states 3 mark_read 1": {39, 3},
		"processed 7 insns": {7, 0},
		"processed":         {0, 0},
		"processed ":        {0, 0},
		"":                  {0, 0},
		"0: (95) exit":      {0, 0},
	} {
		verified, states := figures(log)
		require.Equal(t, want, [2]int{verified, states}, log)
	}
}

func TestTheLastInstructionOfALog(t *testing.T) {
	for log, want := range map[string]int{
		"0: R1=ctx() R10=fp0\n; int x = 0; @ t.c:3\n0: (b7) r0 = 0\nfrom 3 to 12: R0=1\n12: (bf) r0 = r2\nR2 !read_ok\nprocessed 2 insns": 12,
		"func#0 @0\nunreachable insn 5":   -1,
		"99999999999999999999: (95) exit": -1,
		"":                                -1,
	} {
		_, n := last(strings.Split(log, "\n"))
		require.Equal(t, want, n, log)
	}
}
