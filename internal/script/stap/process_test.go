package stap

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/script/host"
)

// A file with two functions, in an image that has the functions of no kernel.
func ofPrograms() *Kernel {
	return &Kernel{Kernel: host.Kernel{Program: func(file string) (*host.Program, error) {
		if file != "/bin/prog" {
			return nil, errors.New("no such file")
		}
		return &host.Program{File: file, Functions: []host.ProgramSymbol{{Name: "one", Addr: 0x1000, Size: 16, Offset: 0x200}, {Name: "other", Addr: 0x1010, Size: 8, Offset: 0x210}}}, nil
	}}}
}

func TestProbesOfPrograms(t *testing.T) {
	for script, want := range map[string][]string{
		`process("/bin/prog").function("one")`:          {`process("/bin/prog").function("one")`},
		`process("/bin/prog").function("o*").call`:      {`process("/bin/prog").function("one").call`, `process("/bin/prog").function("other").call`},
		`process("/bin/prog").function("other").return`: {`process("/bin/prog").function("other").return`},
	} {
		s, err := Analyze("<input>", "probe "+script+" { println(int_arg(1)) }", &Options{}, ofPrograms())
		require.NoError(t, err, script)
		var got []string
		for _, p := range s.Probes {
			require.Equal(t, host.User, p.Kind)
			require.Equal(t, p.Function == "one", p.InProgram.Offset == 0x200)
			got = append(got, p.Point)
		}
		require.Equal(t, want, got)
		require.Equal(t, script == `process("/bin/prog").function("other").return`, s.Probes[0].InProgram.Return)
	}
	for script, want := range map[string]string{
		`process("/bin/none").function("one")`:        "cannot find executable '/bin/none'",
		`process("/bin/prog").function("none")`:       "no match",
		`process("/bin/prog").begin`:                  "of probes of programs there is",
		`process.begin`:                               "of probes of programs there is",
		`process("/bin/prog").function("one@a.c:1")`:  "lines of programs are not there",
		`process("/bin/prog").function("one").inline`: "probe point mismatch",
	} {
		_, err := Analyze("<input>", "probe "+script+" { }", &Options{}, ofPrograms())
		var p Problems
		require.ErrorAs(t, err, &p, script)
		require.Contains(t, p.Text(), want, script)
	}
	_, err := Analyze("<input>", `probe process("/bin/prog").function("one") { }`, &Options{}, &Kernel{})
	require.ErrorContains(t, err, "need the dump of a booted kernel")
}
