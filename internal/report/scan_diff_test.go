package report

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/bounded"
	"kprobelab/kimage"
)

func readScan(t testing.TB, text string) *ScanFile {
	f, err := ReadScan("scan", strings.NewReader(text))
	require.NoError(t, err)
	return f
}

// line is a row of a scan as JSON.
func line(addr, symbol, offset, rest string) string {
	return `{"address":"` + addr + `","symbol":"` + symbol + `","offset":` + offset + `,"errno":0,"ftrace":false,` + rest + "}\n"
}

const (
	stepped   = `"boostable":false,"emulated":false,"optimized":false,"reason":"TOO_SHORT"`
	boosted   = `"boostable":true,"emulated":false,"optimized":true,"reason":""`
	ambiguous = `"boostable":true,"emulated":false,"optimized":true,"reason":"; 2 addresses: 0x10, 0x20"`
)

func TestCompareScans(t *testing.T) {
	was := readScan(t, line("0x10", "same", "0", boosted)+
		line("0x20", "changed", "0", boosted)+line("0x24", "changed", "4", boosted)+
		line("0x30", "code", "0", boosted)+line("0x33", "code", "3", stepped)+
		line("0x40", "gone", "0", stepped)+
		line("0x50", "twice", "0", boosted)+line("0x60", "twice", "0", stepped))
	is := readScan(t, line("0x1010", "same", "0", ambiguous)+
		line("0x1020", "changed", "0", boosted)+line("0x1024", "changed", "4", stepped)+
		line("0x1030", "code", "0", boosted)+
		line("0x1050", "twice", "0", boosted)+line("0x1060", "twice", "0", boosted)+
		line("0x1070", "added", "0", boosted))
	c := CompareScans(was, is)
	var b bytes.Buffer
	require.NoError(t, c.WriteText(&b, true))
	require.Equal(t, strings.Join([]string{
		"   old    new  points",
		"     3      3  same answer",
		"     2      2  another answer",
		"     2      1  in functions with other instructions",
		"     1      1  in functions of this kernel only",
		"     8      7  in all",
		"",
		"functions",
		"     2  the same in every answer",
		"     2  with another answer somewhere",
		"     1  with other instructions",
		"     0  the same but for a suffix of the name",
		"     1  of the old kernel only",
		"     1  of the new kernel only",
		"",
		"answers",
		"     1  int3, TOO_SHORT -> optimized (boosted)",
		"     1  optimized (boosted) -> int3, TOO_SHORT",
		"",
		"changed+0x4: optimized (boosted) -> int3, TOO_SHORT",
		"code: other instructions, 2 points, 1 optimized -> 1 point, 1 optimized",
		"gone: gone, had 1 point, 0 optimized",
		"twice (no. 2 of that name): int3, TOO_SHORT -> optimized (boosted)",
		"added: new, has 1 point, 1 optimized",
		"",
	}, "\n"), b.String())
	b.Reset()
	require.NoError(t, c.WriteText(&b, false))
	require.True(t, strings.HasSuffix(b.String(), "\n--all lists the 5 changes\n"), b.String())
	b.Reset()
	require.NoError(t, c.WriteJSON(&b))
	require.Equal(t, `{"change":"answer","symbol":"changed","offset":4,"old":{"errno":0,"ftrace":false,"boostable":true,"emulated":false,"optimized":true,"reason":""},"new":{"errno":0,"ftrace":false,"boostable":false,"emulated":false,"optimized":false,"reason":"TOO_SHORT"}}`,
		strings.Split(b.String(), "\n")[0])
	for _, l := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		require.True(t, json.Valid([]byte(l)))
	}
}

// TestScanComparedWithItself: nothing has changed, whatever was scanned.
func TestScanComparedWithItself(t *testing.T) {
	s := NewScan(guest(t))
	all, err := s.Functions()
	require.NoError(t, err)
	if testing.Short() {
		all = some(t, all)
	}
	var b bytes.Buffer
	totals, err := s.WriteFunctions(&b, ScanJSON, all)
	require.NoError(t, err)
	_, err = s.WritePoints(&b, ScanJSON, listOf("gcd+1", "nosuch", "fff", "nosuch+4", "+", "gcd"))
	require.NoError(t, err)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(b.Bytes())
	require.NoError(t, err)
	require.NoError(t, z.Close())
	f := readScan(t, packed.String())
	require.Equal(t, totals.Points+6, f.Rows)
	c := CompareScans(f, readScan(t, b.String()))
	require.Empty(t, c.Changes)
	require.Equal(t, f.Rows, c.Points[fateSame].Old)
}

// TestChangesOfRules: two releases' rules over one kernel.
func TestChangesOfRules(t *testing.T) {
	files := map[string]*ScanFile{}
	for _, name := range []string{"6.1", "6.12"} {
		s := asProfile(t, name)
		all, err := s.Functions()
		require.NoError(t, err)
		if testing.Short() {
			all = some(t, all)
		}
		var b bytes.Buffer
		_, err = s.WriteFunctions(&b, ScanJSON, all)
		require.NoError(t, err)
		files[name] = readScan(t, b.String())
	}
	c := CompareScans(files["6.1"], files["6.12"])
	more := 0
	for _, ch := range c.Changes {
		require.Equal(t, ChangeAnswer, ch.Change)
		if ch.New.Optimized && ch.Old.Reason == "NOT_BOOSTABLE" {
			more++
		}
	}
	require.Positive(t, more, "6.12 boosts shifts and more")
}

func TestReadScanRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "x: not what scan --json writes: it has no rows",
		"gcd\n":                                 "x: line 1: not what scan --json writes",
		"{}\n":                                  "x: line 1: not what scan --json writes",
		`{"address":"0x1"}`:                     "x: line 1: not what scan --json writes",
		"\x1f\x8b":                              "x: unexpected EOF",
		strings.Repeat(" ", bounded.ListLine+1): "x: line 1 is longer than 1048576 bytes",
	} {
		_, err := ReadScan("x", strings.NewReader(text))
		require.EqualError(t, err, want)
	}
}

// TestRenamesAreJoined: a function whose suffix alone the compiler has changed is the same function; a
// part of one is not.
func TestRenamesAreJoined(t *testing.T) {
	for name, c := range map[string]struct{ old, new, says string }{
		"isra_to_constprop":   {"f.isra.0", "f.constprop.0", "f.isra.0 (now f.constprop.0): the name alone"},
		"another_number":      {"f.isra.0", "f.isra.1", "f.isra.0 (now f.isra.1): the name alone"},
		"suffix_gone":         {"f.constprop.0.isra.0", "f", "f.constprop.0.isra.0 (now f): the name alone"},
		"suffix_comes":        {"f", "f.isra.0", "f (now f.isra.0): the name alone"},
		"lto":                 {"f.llvm.123", "f.llvm.456", "f.llvm.123 (now f.llvm.456): the name alone"},
		"cold_is_a_part":      {"f", "f.cold", "f: gone, had 1 point, 1 optimized"},
		"part_is_a_part":      {"f.part.0", "f.isra.0", "f.part.0: gone, had 1 point, 1 optimized"},
		"cold_of_a_clone":     {"f.isra.0.cold", "f.constprop.0.cold", "f.isra.0.cold (now f.constprop.0.cold): the name alone"},
		"another_function":    {"f.isra.0", "g.isra.0", "f.isra.0: gone, had 1 point, 1 optimized"},
		"a_dot_at_the_begin":  {".f", ".g", ".f: gone, had 1 point, 1 optimized"},
		"nothing_but_the_dot": {"f.", "f", "f. (now f): the name alone"},
	} {
		t.Run(name, func(t *testing.T) {
			changes := CompareScans(readScan(t, line("0x10", c.old, "0", boosted)), readScan(t, line("0x20", c.new, "0", boosted)))
			require.Equal(t, c.says, changes.Changes[0].String())
			joined := strings.HasSuffix(c.says, "alone")
			require.Equal(t, map[bool]int{true: 1, false: 0}[joined], changes.Renames)
			require.Len(t, changes.Changes, map[bool]int{true: 1, false: 2}[joined])
		})
	}
}

// TestScanWholeIsItsJSON: an image compares as the output of scan --json for it.
func TestScanWholeIsItsJSON(t *testing.T) {
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), nil)
	require.NoError(t, err)
	whole, err := ScanWhole(NewScan(img))
	require.NoError(t, err)
	s := NewScan(img)
	functions, err := s.Functions()
	require.NoError(t, err)
	var b bytes.Buffer
	_, err = s.WriteFunctions(&b, ScanJSON, functions)
	require.NoError(t, err)
	written, err := ReadScan("written", &b)
	require.NoError(t, err)
	require.NotZero(t, whole.Rows)
	require.Empty(t, CompareScans(whole, written).Changes)
}
