package place_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/place"
	"kprobelab/x86"
)

func TestParse(t *testing.T) {
	at := func(addr x86.Addr, offset uint32) place.Place { return place.Place{Addr: addr, Offset: offset} }
	sym := func(name string, offset uint32) place.Place { return place.Place{Symbol: name, Offset: offset} }
	for text, want := range map[string]place.Place{
		"gcd": sym("gcd", 0), "gcd+5": sym("gcd", 5), "gcd+0x1f": sym("gcd", 31), "gcd+0X1F": sym("gcd", 31), "gcd+010": sym("gcd", 8), "gcd+0": sym("gcd", 0),
		"demo:init": sym("demo:init", 0), "demo:init+4": sym("demo:init", 4), "__x64_sys_read": sym("__x64_sys_read", 0), "foo.isra.0+1": sym("foo.isra.0", 1),
		"add": sym("add", 0), "dead": sym("dead", 0), "deadbeef": sym("deadbeef", 0), "face+2": sym("face", 2), "x1234": sym("x1234", 0), "gcd+4294967295": sym("gcd", 1<<32-1),
		"0xffffffff81000185": at(0xffffffff81000185, 0), "ffffffff81000185": at(0xffffffff81000185, 0), "FFFFFFFF81000185": at(0xffffffff81000185, 0),
		"ffffffff81000180+5": at(0xffffffff81000180, 5), "0xffffffff81000180+0x5": at(0xffffffff81000180, 5),
		"1234": at(0x1234, 0), "0x1234": at(0x1234, 0), "401615": at(0x401615, 0), "0": at(0, 0), "0x0": at(0, 0), "1139": at(0x1139, 0), "1a": at(0x1a, 0), "010": at(0x10, 0),
	} {
		got, err := place.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := place.Parse(got.String())
		require.NoError(t, err, text)
		require.Equal(t, got, again, "%s: what is printed is read as the same", text)
	}
	for text, want := range map[string]string{
		"": "a symbol or an address is missing", "+5": "a symbol or an address is missing", "gcd+": `the offset "" is not a number of 32 bits`,
		"gcd+0x": `the offset "0x" is not a number of 32 bits`, "gcd+x": `the offset "x" is not a number of 32 bits`, "gcd+-1": `the offset "-1" is not a number of 32 bits`,
		"gcd+08": `the offset "08" is not a number of 32 bits`, "gcd+0b1": `the offset "0b1" is not a number of 32 bits`, "gcd+1_0": `the offset "1_0" is not a number of 32 bits`,
		"gcd+4294967296": `the offset "4294967296" is not a number of 32 bits`, "gcd+1+2": `the offset "1+2" is not a number of 32 bits`, "gcd+ 1": `the offset " 1" is not a number of 32 bits`,
		"0x": `"0x" is not an address of 64 bits`, "0xg": `"0xg" is not an address of 64 bits`, "1gcd": `"1gcd" is not an address of 64 bits`,
		"0xfffffffffffffffff": `"0xfffffffffffffffff" is not an address of 64 bits`, "0x1_0": `"0x1_0" is not an address of 64 bits`, "0b1x": `"0b1x" is not an address of 64 bits`,
	} {
		_, err := place.Parse(text)
		require.EqualError(t, err, want, text)
	}
}
