package boot

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

func TestCommandLineWithKASLR(t *testing.T) {
	require.Contains(t, (&Options{}).CommandLine(), " nokaslr ")
	line := (&Options{KASLR: true, Append: "nopti"}).CommandLine()
	require.NotContains(t, line, "kaslr")
	require.Contains(t, line, "console=ttyS0 ")
	require.Contains(t, line, " nopti")
}

func TestCheckWords(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		says string
	}{
		"kaslr_is_no_word":         {Options{Append: "quiet kaslr"}, "--kaslr"},
		"kaslr_beside_the_flag":    {Options{Append: "kaslr", KASLR: true}, "--kaslr"},
		"nokaslr_against_the_flag": {Options{Append: "nokaslr", KASLR: true}, "contradict"},
		"nokaslr_again":            {Options{Append: "nokaslr"}, ""},
		"words_of_init":            {Options{Append: "quiet -- kaslr"}, ""},
		"part_of_another_word":     {Options{Append: "x=kaslr kaslr_seed"}, ""},
		"no_words":                 {Options{KASLR: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.o.CheckWords()
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestGateOffset(t *testing.T) {
	gate := [16]byte{0xd0, 0x0a, 0x10, 0, 0, 0x8e, 0x60, 0xa1, 0xff, 0xff, 0xff, 0xff}
	require.Equal(t, x86.Addr(0xffffffffa1600ad0), gateOffset(gate))
}
