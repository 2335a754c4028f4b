package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
)

// places are texts, and what they mean in the guest kernel: an offset from the symbol gcd; missing is for a name that no
// symbol has, wrong for a text that is no place.
var places = func() map[string]int64 {
	const gcd = 0xffffffff81000180
	list := map[string]int64{
		"gcd": 0, "gcd+0": 0, "gcd+00": 0, "gcd+0x0": 0, "gcd+5": 5, "gcd+0x5": 5, "gcd+0X5": 5, "gcd+05": 5, "gcd+010": 8, "gcd+0x8": 8, "gcd+8": 8,
		"gcd+0x0a": 10, "gcd+0xA": 10, "gcd+10": 10, "gcd+012": 10, "gcd+111": 111, "gcd+0x6f": 111,
		"nosuch": missing, "nosuch+4": missing, "add1": missing, "dead": missing, "deadbeef": missing, "face+0x10": missing, "gcd.cold": missing, "demo:gcd": missing,
		"fff": missing, "x1234": missing, "_": missing,
		"": wrong, "+5": wrong, "gcd+": wrong, "gcd+x": wrong, "gcd+0x": wrong, "gcd+08": wrong, "gcd+1_0": wrong, "gcd+0b1": wrong, "gcd+0o7": wrong, "gcd+-1": wrong,
		"gcd+4294967296": wrong, "gcd+1+1": wrong, "0x": wrong, "0xg": wrong, "1gcd": wrong, "0x1_0": wrong, "0xfffffffffffffffff": wrong, "12345678901234567": wrong,
	}
	for _, form := range []string{"0x%x", "%x", "0x%X", "%X"} {
		list[fmt.Sprintf(form, uint64(gcd))] = 0
		list[fmt.Sprintf(form, uint64(gcd))+"+5"] = 5
		list[fmt.Sprintf(form, uint64(gcd+5))] = 5
		list[fmt.Sprintf(form, uint64(gcd))+"+010"] = 8
	}
	return list
}()

const (
	missing = -1
	wrong   = -2
)

// asked is the address that a command has for a text, "" for none.
func asked(args ...string) (address, said string) {
	var out, errs bytes.Buffer
	execute(append([]string{"kprobelab"}, args...), &out, &errs)
	type answer struct{ Address, Addr string }
	for _, text := range append([]string{out.String()}, strings.Split(out.String(), "\n")...) {
		var a answer
		if json.Unmarshal([]byte(text), &a) == nil && a.Address+a.Addr != "" {
			return a.Address + a.Addr, out.String() + errs.String()
		}
	}
	return "", out.String() + errs.String()
}

// errnoOf is the first errno that a command has for a text.
func errnoOf(t *testing.T, args ...string) string {
	var out, errs bytes.Buffer
	execute(append([]string{"kprobelab"}, args...), &out, &errs)
	m := regexp.MustCompile(`"errno": ?(-?\d+)`).FindStringSubmatch(out.String())
	require.NotNil(t, m, "%v: %s%s", args, out.String(), errs.String())
	return m[1]
}

// check and scan answer the same for a text.
func TestPlacesMeanTheSameToCheck(t *testing.T) {
	list := filepath.Join(t.TempDir(), "points")
	for text := range places {
		if text == "" {
			continue // an empty line is none
		}
		require.NoError(t, os.WriteFile(list, []byte(text+"\n"), 0o600))
		require.Equal(t, errnoOf(t, "scan", "--json", "--points", list, "-"), errnoOf(t, "check", "--json", list, "-"), text)
	}
}

// A text means the same place to every command.
func TestPlacesMeanTheSameToEveryCommand(t *testing.T) {
	require.GreaterOrEqual(t, len(places), 40)
	lab, err := kprobelab.Open("", nil)
	require.NoError(t, err)
	defer lab.Close()
	gcd := lab.Image.Lookup("gcd")[0].Addr
	require.EqualValues(t, uint64(0xffffffff81000180), uint64(gcd), "the texts of the table are made for it")
	list := filepath.Join(t.TempDir(), "points")
	noSymbol := regexp.MustCompile(`no such symbol|no symbol |symbol not found|no such file or directory|-2\b|ENOENT|UNKNOWN_SYMBOL`)
	noPlace := regexp.MustCompile(`BAD_LINE|is not a number of 32 bits|is not an address of 64 bits|a symbol or an address is missing|want a symbol|nothing to probe|what\?`)
	for _, c := range []struct {
		name string
		args func(text string) []string
	}{
		{"explain", func(text string) []string { return []string{"explain", "--json", "-", text} }},
		{"scan", func(text string) []string {
			require.NoError(t, os.WriteFile(list, []byte(text+"\n"), 0o600))
			return []string{"scan", "--json", "--points", list, "-"}
		}},
		{"run kprobe", func(text string) []string { return []string{"run", "--json", "--kprobe", text} }},
		{"run watch", func(text string) []string { return []string{"run", "--json", "--watch", text + ":1:x"} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for text, want := range places {
				if text == "" && c.name == "scan" {
					continue // an empty line is none
				}
				at, said := asked(c.args(text)...)
				switch {
				case want == missing:
					require.Empty(t, at, text)
					require.Regexp(t, noSymbol, said, text)
				case want == wrong:
					require.Empty(t, at, text)
					require.Regexp(t, noPlace, said, text)
				case at == "":
					// Refused, as in the middle of an instruction: what was understood is said.
					require.Contains(t, said, fmt.Sprintf("gcd+0x%x", want), text)
				default:
					require.Equal(t, gcd.Add(want).String(), at, text)
				}
			}
		})
	}
}
