package show

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValue(t *testing.T) {
	for _, c := range []struct {
		rax  uint64
		t    Type
		want string
	}{
		{17, Type{}, "17 (0x11)"},
		{0, Type{}, "0"},
		{1 << 62, Type{}, "4611686018427387904 (0x4000000000000000)"},
		{0xffff888000001000, Type{}, "0xffff888000001000"},
		{0xffffffea, Type{}, "4294967274 (0xffffffea, as an int -22, -EINVAL)"},
		{0xffffffffffffffea, Type{}, "-22 (0xffffffffffffffea, -EINVAL)"},
		{0xffffffffffffffea, Type{Signed, 8}, "-22 (0xffffffffffffffea, -EINVAL)"},
		{0xffffffff, Type{Signed, 4}, "-1 (0xffffffff, -EPERM)"},
		{0xabcdef00ffff0000, Type{Signed, 4}, "-65536 (0xffff0000)"},
		{0x1234567800000011, Type{Signed, 4}, "17 (0x11)"},
		{0xcbf43926, Type{Unsigned, 4}, "3421780262 (0xcbf43926)"},
		{0xffffff01, Type{Unsigned, 1}, "1"},
		{0xff01, Type{Bool, 1}, "true"},
		{0xff00, Type{Bool, 1}, "false"},
		{5, Type{Void, 0}, "void"},
		{0, Type{Pointer, 8}, "NULL"},
		{0xffff888000001000, Type{Pointer, 8}, "0xffff888000001000"},
		{0xfffffffffffffffe, Type{Pointer, 8}, "-2 (0xfffffffffffffffe, -ENOENT)"},
		{0xfffffffffffff001, Type{}, "-4095 (0xfffffffffffff001)"},
	} {
		require.Equal(t, c.want, Value(c.rax, c.t), "%#x as %v", c.rax, c.t)
	}
}

func TestBuffer(t *testing.T) {
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"text":            {[]byte("abc\x00\x00\x00\x00\x00\x00"), `"abc"`},
		"empty_text":      {make([]byte, 9), `""`},
		"no_bytes":        {nil, `""`},
		"text_with_lines": {[]byte("a\n\tb\x00\x00\x00\x00\x00"), `"a\n\tb"`},
		"maybe_a_number":  {[]byte("{\x00\x00\x00"), `"{" {7b 00 00 00}`},
		"no_nul":          {[]byte("abc"), "{61 62 63}"},
		"garbage_after":   {[]byte("a\x00b"), "{61 00 62}"},
		"not_utf8":        {[]byte{0xff, 0}, "{ff 00}"},
		"control":         {[]byte{1, 0}, "{01 00}"},
		"long":            {[]byte("abcdefghijklmnop\xff"), "\n  0000  61 62 63 64 65 66 67 68 69 6a 6b 6c 6d 6e 6f 70  |abcdefghijklmnop|\n  0010  ff                                               |.|"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Buffer(c.in, "  ")) })
	}
}

func TestDumpSaysWhatItLeavesOut(t *testing.T) {
	long := Dump([]byte(strings.Repeat("x", 600)), "")
	require.Equal(t, 33, strings.Count(long, "\n"))
	require.Contains(t, long, "… 88 more bytes\n")
	zeros := make([]byte, 128)
	zeros[3] = 0xff
	require.Contains(t, Dump(zeros, ""), "… 112 more bytes, all zero\n")
	require.NotContains(t, Dump(zeros[:36], ""), "…")
}

func ExampleDump() {
	fmt.Print(Dump([]byte("\x7fELF\x02\x01\x01 and so on"), ""))
	// Output:
	// 0000  7f 45 4c 46 02 01 01 20 61 6e 64 20 73 6f 20 6f  |.ELF... and so o|
	// 0010  6e                                               |n|
}
