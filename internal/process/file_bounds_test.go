package process_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/engine"
	"kprobelab/internal/process"
	"kprobelab/x86"
)

// loaded opens a program with arguments and an environment.
func loaded(t *testing.T, data []byte, args, env []string) error {
	t.Helper()
	e, err := engine.Named("interp")
	require.NoError(t, err)
	p, err := process.New(process.Config{Program: &process.File{Name: "/x", Data: data}, Args: args, Env: env}, e.New)
	if err == nil {
		p.Close()
	}
	return err
}

// A program's file has no more headers, and takes no more addresses, than the bounds.
func TestProgramsThatAreTooLarge(t *testing.T) {
	good := build(t, exit[1:]).Data
	headers := func(n byte) []byte {
		b := slices.Clone(good)
		b[56] = n
		return b
	}
	const first, last = 64, 64 + 56 // the headers of the two segments
	span := func(size uint64) []byte {
		b := slices.Clone(good)
		start := binary.LittleEndian.Uint64(b[first+16:]) &^ 0xfff
		binary.LittleEndian.PutUint64(b[last+40:], 0x1000)
		binary.LittleEndian.PutUint64(b[last+16:], start+size-0x1000)
		return b
	}
	segment := func(size uint64) []byte {
		b := slices.Clone(good)
		binary.LittleEndian.PutUint64(b[first+16:], binary.LittleEndian.Uint64(b[first+16:])-0x1000) // room for the next one's pages
		binary.LittleEndian.PutUint64(b[last+40:], size)
		return b
	}
	for name, c := range map[string]struct {
		fits, past []byte
		want       string
	}{
		"ProgramHeaders": {headers(bounded.ProgramHeaders), headers(bounded.ProgramHeaders + 1), "65 program headers"},
		"span":           {span(bounded.ProgramImage), span(bounded.ProgramImage + 0x1000), "its segments span more than 256 MB"},
		"segment":        {nil, segment(bounded.ProgramImage + 1), "a segment's sizes or addresses do not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.fits != nil {
				require.NoError(t, loaded(t, c.fits, nil, nil))
			}
			err := loaded(t, c.past, nil, nil)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, errno.ENOEXEC, errno.Of(err))
		})
	}
}

// The arguments and the environment have a bound, from the user as from execve: E2BIG.
func TestArgumentsThatAreTooLong(t *testing.T) {
	good := build(t, exit[1:]).Data
	long := strings.Repeat("x", bounded.ProgramArguments-4096)
	require.NoError(t, loaded(t, good, []string{long}, nil))
	for name, c := range map[string][2][]string{
		"argument":        {{strings.Repeat("x", bounded.ProgramArguments)}, nil},
		"environment":     {nil, {strings.Repeat("x", bounded.ProgramArguments)}},
		"both":            {{long}, {long}},
		"many_empty_ones": {make([]string, bounded.ProgramArguments), nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, loaded(t, good, c[0], c[1]), errno.E2BIG)
		})
	}

	// execve: a string in one page, and n pointers to it.
	const sysExecve = 59
	execve := func(t *testing.T, n, length int) int64 {
		h := open(t, "interp")
		at := h.must(sysMmap, 0, 1*mB, 3, private|anonymous, 1<<64-1, 0)
		require.NoError(t, h.Write(x86.Addr(at), append(bytes.Repeat([]byte{'x'}, length), 0)))
		list := bytes.Repeat(binary.LittleEndian.AppendUint64(nil, at), n)
		require.NoError(t, h.Write(x86.Addr(at+512*kB), append(list, make([]byte, 8)...)))
		return h.Call(sysExecve, h.text("/bin/prog"), at+512*kB, 0)
	}
	for name, c := range map[string]struct {
		n, length int
		want      int64
	}{
		"ProgramStrings":             {bounded.ProgramStrings, 0, 0},
		"ProgramStrings_one_more":    {bounded.ProgramStrings + 1, 0, -int64(errno.E2BIG)},
		"ProgramArguments_long":      {1, bounded.ProgramArguments - 4096, 0},
		"ProgramArguments_one":       {1, bounded.ProgramArguments, -int64(errno.E2BIG)},
		"ProgramArguments_all":       {4, bounded.ProgramArguments / 4, -int64(errno.E2BIG)},
		"ProgramArguments_half_each": {2, bounded.ProgramArguments/2 - 4096, 0},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, execve(t, c.n, c.length)) })
	}
}

// The code of a function is read so far, whatever its symbol says.
func TestFunctionsThatAreTooLong(t *testing.T) {
	data := build(t, exit[1:]).Data
	h, err := elf.NewFile(bytes.NewReader(data))
	require.NoError(t, err)
	table := h.SectionByType(elf.SHT_SYMTAB)
	require.NotNil(t, table)
	sized := func(size uint64) *process.File {
		b := append(slices.Clone(data), make([]byte, 4<<20)...)
		for at := table.Offset + 24; at < table.Offset+table.Size; at += 24 {
			binary.LittleEndian.PutUint64(b[at+16:], size)
		}
		return &process.File{Name: "/x", Data: b}
	}
	list, err := sized(1).Symbols()
	require.NoError(t, err)
	at := list[0].Offset
	for size, want := range map[uint64]int{100: 100, bounded.ProgramFunction: bounded.ProgramFunction, bounded.ProgramFunction + 1: bounded.ProgramFunction, 1 << 62: bounded.ProgramFunction} {
		f := sized(size)
		code, _, ok := f.Function(at)
		require.True(t, ok)
		require.Len(t, code, want, "%#x", size)
		_, _, ok = f.Function(at + bounded.ProgramFunction)
		require.False(t, ok, "%#x", size)
	}
}
