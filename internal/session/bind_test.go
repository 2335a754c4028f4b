package session

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/callsyntax"
	"kprobelab/internal/show"
	"kprobelab/kimage"
)

func guest(t testing.TB) *kimage.Image {
	img, err := kprobelab.OpenImage("", nil)
	require.NoError(t, err)
	return img
}

func TestBindCall(t *testing.T) {
	img := guest(t)
	c, err := BindCall(img, "crc32_le(-1, &linux_banner+2, 3)")
	require.NoError(t, err)
	require.Equal(t, "crc32_le", c.Symbol.Name)
	require.Equal(t, img.Lookup("linux_banner")[0].Addr+2, c.Refs[1])
	require.Equal(t, show.Type{Kind: show.Unsigned, Size: 4}, c.Returns())

	c, err = BindCall(img, `snprintf(buf[8], 8, "%d", 1)`)
	require.NoError(t, err)
	require.Equal(t, show.Type{Kind: show.Signed, Size: 4}, c.Returns())
	require.Equal(t, "int snprintf(char *buf, size_t size, const char *fmt, ...)", c.Proto.String())
}

func TestBindErrors(t *testing.T) {
	img := guest(t)
	for name, c := range map[string]struct {
		call string
		col  int
		want string
	}{
		"syntax":           {"gcd(", 5, "expected an argument"},
		"unknown_function": {"nosuch()", 1, "there is no function nosuch in guest kernel"},
		"unknown_symbol":   {"gcd(1, &nosuch)", 8, "there is no symbol nosuch in guest kernel"},
		"data":             {"linux_banner()", 1, "linux_banner is data, not a function"},
		"init_text":        {"start_kernel()", 1, "start_kernel is init text, which is gone after boot"},
		"too_few":          {"gcd(1)", 1, "gcd takes 2 arguments, not 1: u64 gcd(u64 a, u64 b)"},
		"too_many":         {"gcd(1, 2, 3)", 1, "gcd takes 2 arguments, not 3"},
		"too_few_variadic": {"snprintf(buf[1])", 1, "snprintf takes at least 3 arguments, not 1"},
		"too_many_at_all":  {"memset(0" + strings.Repeat(", 0", 64) + ")", 200, "at most 64 arguments, not 65"},
		"too_wide":         {`crc32_le(0x100000000, "", 0)`, 10, "0x100000000 does not fit in u32 crc, which has 32 bits"},
		"no_address":       {`crc32_le("", "", 0)`, 10, "u32 crc is an integer of 32 bits, not an address"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := BindCall(img, c.call)
			var e *callsyntax.Error
			require.ErrorAs(t, err, &e)
			require.Contains(t, e.Msg, c.want)
			require.Equal(t, c.col, e.Col)
			_, err = BindTask(img, "gcd(1, 2); "+c.call)
			require.ErrorAs(t, err, &e)
			require.Contains(t, e.Msg, c.want)
		})
	}
}
