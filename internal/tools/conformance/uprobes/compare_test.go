package uprobes

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/profile"
)

// Rule: an answer that differs from the rules is told with the reason, and only such an answer.
func TestCompare(t *testing.T) {
	c, ok := profile.Named("6.1")
	require.True(t, ok)
	code := append([]byte{0x49, 0x8b, 0x05, 0x10, 0, 0, 0}, make([]byte, 64)...) // mov 0x10(%rip),%rax, with a B that says nothing
	code = append(code, 0x55, 0xf4)                                              // push %rbp; hlt
	code = append(code, make([]byte, 16)...)
	const moved, push, hlt = 0, 7 + 64, 7 + 64 + 1
	const copied = "488b8610000000000000000000000000"
	for name, test := range map[string]struct {
		at     uint32
		answer string
		want   string
	}{
		"stepped":          {moved, "010501cc4800000007000000" + copied, "0 of 1 differ"},
		"another_copy":     {moved, "010501cc480000000700000049" + copied[2:], "copy 49"},
		"emulated_instead": {moved, "010500cc4800000007000000", "copies stepped: 0, not stepped"},
		"byte_put_back":    {moved, "010501cc4900000007000000" + copied, "first byte 49 afterwards, not 48"},
		"refused_instead":  {moved, "010000000000080000000000", "errno 8, not 0"},
		"killed":           {moved, "020900000000000000000000", "       1          3 the program was killed"},
		"emulated":         {push, "010500cc5500000001000000", "0 of 1 differ"},
		"went_elsewhere":   {push, "010500cc5500000002000000", "ip moved by 2, not 1"},
		"refused":          {hlt, "0100000000000c0200000000", "3 refused with errno 524"},
	} {
		t.Run(name, func(t *testing.T) {
			answers, err := readAnswers(strings.NewReader(test.answer + "\n"))
			require.NoError(t, err)
			var out bytes.Buffer
			_, err = compare(&out, code, []uint32{test.at}, []uint32{3}, answers, c)
			require.NoError(t, err)
			require.Contains(t, out.String(), test.want)
		})
	}
	for _, bad := range []string{"", "x", "0105"} {
		_, err := readAnswers(strings.NewReader(bad + "\n"))
		require.Error(t, err)
	}
	_, err := compare(&bytes.Buffer{}, code, []uint32{0}, []uint32{1}, nil, c)
	require.Error(t, err)
}

// Rule: an instruction is asked about once, wherever it is, but for a page that ends in it.
func TestBound(t *testing.T) {
	c := corpus{stands: map[uint32]int{}, seen: map[instruction]uint32{}, code: make([]byte, 2*pageSize)}
	c.code[2*pageSize-2] = 0x55
	c.bound(0, 5)
	c.bound(5, 5)
	c.bound(pageSize-3, 5)
	c.bound(pageSize-5, 5)
	c.bound(10, 4)
	c.bound(2*pageSize-2, 16)
	require.Equal(t, 6, c.boundaries)
	require.Equal(t, []uint32{0, pageSize - 3, 10, 2*pageSize - 2}, c.instructions)
	require.Equal(t, map[uint32]int{0: 3, pageSize - 3: 1, 10: 1, 2*pageSize - 2: 1}, c.stands)
}
