package report

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
)

// rowsOf reads what a scan wrote as JSON lines.
func rowsOf(t testing.TB, text []byte) []ScanRow {
	var rows []ScanRow
	d := json.NewDecoder(bytes.NewReader(text))
	for d.More() {
		var r ScanRow
		require.NoError(t, d.Decode(&r))
		rows = append(rows, r)
	}
	return rows
}

func listOf(points ...string) (list []ScanPoint) {
	for _, p := range points {
		list = append(list, ScanPoint{Text: p})
	}
	return list
}

func scanPoints(t testing.TB, s *Scan, points ...string) []ScanRow {
	var b bytes.Buffer
	s.Detail = true
	totals, err := s.WritePoints(&b, ScanJSON, listOf(points...))
	require.NoError(t, err)
	require.Equal(t, len(points), totals.Points)
	return rowsOf(t, b.Bytes())
}

// asProfile is a scan of the guest kernel under another kernel's rules.
func asProfile(t testing.TB, name string) *Scan {
	s := NewScan(guest(t))
	c, ok := profile.Named(name)
	require.True(t, ok)
	s.Profile = c
	return s
}

// TestWalkedFunctionsAnswerAsPoints: the scan of whole functions, which walks
// each once, gives the rows that its own addresses give as a list of points.
func TestWalkedFunctionsAnswerAsPoints(t *testing.T) {
	for _, name := range profile.Names() {
		t.Run(name, func(t *testing.T) {
			s := asProfile(t, name)
			s.Padding = true
			functions, err := s.Functions()
			require.NoError(t, err)
			if testing.Short() {
				functions = functions[:len(functions)/4]
			}
			var walked bytes.Buffer
			totals, err := s.WriteFunctions(&walked, ScanTSV, functions)
			require.NoError(t, err)
			require.Greater(t, totals.Points, 3000)
			points, err := ReadPoints(bytes.NewReader(walked.Bytes()))
			require.NoError(t, err)
			require.Len(t, points, totals.Points)
			var listed bytes.Buffer
			again, err := s.WritePoints(&listed, ScanTSV, points)
			require.NoError(t, err)
			require.True(t, walked.String() == listed.String(), "the rows differ")
			require.Equal(t, totals.Accepted, again.Accepted)
			require.Equal(t, totals.Refused, again.Refused)
		})
	}
}

// TestEveryAddressIsRefusedOrListed: what the scan does not list is refused as
// no boundary, or is padding.
func TestEveryAddressIsRefusedOrListed(t *testing.T) {
	s := NewScan(guest(t))
	s.Padding = true
	functions, err := s.Functions("vfs_*", "gcd", "str*", "*printf*")
	require.NoError(t, err)
	var b bytes.Buffer
	_, err = s.WriteFunctions(&b, ScanJSON, functions)
	require.NoError(t, err)
	listed := map[Addr]bool{}
	for _, row := range rowsOf(t, b.Bytes()) {
		listed[row.Addr] = true
	}
	for _, f := range functions {
		for off := range f.Size {
			if at := known(f.Addr.Add(int64(off))); !listed[at] {
				require.Equal(t, -84, scanPoints(t, s, at.String())[0].Errno, "%s+%d", f.Name, off)
			}
		}
	}
}

func TestScanTotalsAddUp(t *testing.T) {
	s := NewScan(guest(t))
	functions, err := s.Functions()
	require.NoError(t, err)
	var b bytes.Buffer
	quiet, err := s.WriteFunctions(&b, ScanNone, functions)
	require.NoError(t, err)
	require.Empty(t, b.String())
	refused, kept, accepted := sum(quiet.Refused), sum(quiet.Kept), sum(quiet.Accepted)
	require.Equal(t, quiet.Points, quiet.Optimized+kept+refused)
	require.Equal(t, quiet.Points, accepted+refused)
	require.Positive(t, quiet.Optimized)
	require.Positive(t, quiet.Padding)
	require.NoError(t, quiet.WriteText(&b))
	require.Contains(t, b.String(), "int3 padding, not among these")

	s.Padding = true
	all, err := s.WriteFunctions(&bytes.Buffer{}, ScanNone, functions)
	require.NoError(t, err)
	require.Equal(t, quiet.Padding, all.Padding)
	require.Equal(t, quiet.Points+quiet.Padding, all.Points)
}

func sum[K comparable](m map[K]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

func TestScanTotalsText(t *testing.T) {
	totals := newTotals()
	for _, row := range []ScanRow{
		{How: probepoint.Boosted, Optimized: true},
		{How: probepoint.Stepped, Rule: rule.NotBoostable},
		{How: probepoint.Stepped, Rule: rule.TooShort},
		{How: probepoint.Stepped, Rule: rule.TooShort},
		{Errno: -84, Rule: rule.NotBoundary},
		{Errno: -22, Rule: rule.JumpLabel},
		{Errno: -22, Rule: rule.JumpLabel},
		{Errno: -95, Rule: rule.VMCall},
		{Errno: -22, Rule: rule.Line},
	} {
		totals.count(&row)
	}
	totals.Padding = 12
	var b bytes.Buffer
	require.NoError(t, totals.WriteText(&b))
	require.Equal(t, strings.Join([]string{
		"points",
		"     1  accepted, optimized: a jump to a detour buffer takes the int3's place",
		"     2  accepted, TOO_SHORT: fewer than the 5 bytes that the jump needs are left of the function",
		"     1  accepted, NOT_BOOSTABLE: an instruction of the region is not boostable: the kernel copies it into no detour buffer",
		"     2  EINVAL JUMP_LABEL: in a jump label, which the kernel rewrites",
		"     1  EINVAL BAD_LINE: the line is no point",
		"     1  EILSEQ NOT_BOUNDARY: not at an instruction boundary",
		"     1  EOPNOTSUPP VMCALL: it is a vmcall or of its group",
		"     9  in all",
		"",
		"   how, of those accepted, while no jump is there",
		"     3  stepped: a copy runs in the slot, and a trap after it returns",
		"     1  boosted: a copy runs in the slot, and a jump after it returns",
		"     0  emulated: kprobes does to the registers what the instruction would",
		"     0  ftrace: the function tracer calls the probe; there is no int3 and no slot",
		"     4  accepted",
		"",
		"    12  int3 padding, not among these",
		"",
	}, "\n"), b.String())
}

func TestScanFormatsAgree(t *testing.T) {
	s := NewScan(guest(t))
	points := listOf("vfs_read", "vfs_read+0x1", "nosuch", "gcd+zz", "gcd+5")
	for _, s.Slots = range []bool{false, true} {
		for _, s.Detail = range []bool{false, true} {
			sameInBoth(t, s, points)
		}
	}
}

func sameInBoth(t *testing.T, s *Scan, points []ScanPoint) {
	var tsv, lines bytes.Buffer
	_, err := s.WritePoints(&tsv, ScanTSV, points)
	require.NoError(t, err)
	_, err = s.WritePoints(&lines, ScanJSON, points)
	require.NoError(t, err)
	table := strings.Split(strings.TrimSuffix(tsv.String(), "\n"), "\n")
	require.Len(t, table, len(points)+1)
	for i, line := range strings.Split(strings.TrimSpace(lines.String()), "\n") {
		require.Equal(t, strings.Split(table[0], "\t"), jsonNames(t, line))
		row := rowsOf(t, []byte(line))[0]
		require.Equal(t, table[i+1], string(row.appendTSV(nil, s)))
	}
}

// TestScanColumns are the contract's, in their order.
func TestScanColumns(t *testing.T) {
	s := NewScan(guest(t))
	const nine = "address\tsymbol\toffset\terrno\tftrace\tboostable\temulated\toptimized\treason"
	require.Equal(t, nine+"\thazard\n", ScanTSV.header(s))
	s.Detail, s.Slots = true, true
	require.Equal(t, nine+"\tdetail\tslot_addr\tslot\thazard\n", ScanTSV.header(s))
}

// TestStringsAreQuotedAsJSON, the plain ones and the others.
func TestStringsAreQuotedAsJSON(t *testing.T) {
	for _, s := range []string{"", "gcd", "a b", `a"b`, `a\b`, "a\nb", "é", "\x7f", "<&>"} {
		var back string
		require.NoError(t, json.Unmarshal(appendString(nil, s), &back))
		require.Equal(t, s, back)
	}
}

// jsonNames are the names of one object in their order.
func jsonNames(t testing.TB, line string) (names []string) {
	d := json.NewDecoder(strings.NewReader(line))
	_, err := d.Token()
	require.NoError(t, err)
	for d.More() {
		name, err := d.Token()
		require.NoError(t, err)
		_, err = d.Token()
		require.NoError(t, err)
		names = append(names, name.(string))
	}
	return names
}

func TestFunctionsMatchAnyPattern(t *testing.T) {
	s := NewScan(guest(t))
	list, err := s.Functions("vfs_[rw][er]*", "gcd")
	require.NoError(t, err)
	require.Len(t, list, 3)
	_, err = s.Functions("gcd", "nosuch*")
	require.ErrorIs(t, err, ErrNoFunction)
	require.ErrorContains(t, err, `"nosuch*"`)
	_, err = s.Functions("[")
	require.ErrorIs(t, err, path.ErrBadPattern)
	_, err = s.Functions("linux_banner") // data is no function
	require.ErrorIs(t, err, ErrNoFunction)
}

func TestLinesThatAreNoPoints(t *testing.T) {
	s := NewScan(guest(t))
	entry := scanPoints(t, s, "gcd")[0]
	for line, want := range map[string]ScanRow{
		"nosuch":              {Symbol: "nosuch", Errno: -2, Reason: "UNKNOWN_SYMBOL", Detail: "no such symbol"},
		"demo:gcd+2":          {Symbol: "demo:gcd", Offset: 2, Errno: -2, Reason: "UNKNOWN_SYMBOL", Detail: "no such symbol"},
		"0":                   {Addr: known(0x0000000000000000), Errno: -22, Reason: "NO_PLACE", Detail: "neither a symbol nor an address is given"},
		"fff":                 {Symbol: "fff", Errno: -2, Reason: "UNKNOWN_SYMBOL", Detail: "no such symbol"},
		"0xfff":               {Addr: known(0x0000000000000fff), Errno: -2, Reason: "NO_SYMBOL", Detail: "no symbol covers the address"},
		"0xfffffffffffffffff": {Symbol: "0xfffffffffffffffff", Errno: -22, Reason: "BAD_LINE", Detail: `"0xfffffffffffffffff" is not an address of 64 bits`},
		"gcd+":                {Symbol: "gcd+", Errno: -22, Reason: "BAD_LINE", Detail: `the offset "" is not a number of 32 bits`},
		"gcd+0x":              {Symbol: "gcd+0x", Errno: -22, Reason: "BAD_LINE", Detail: `the offset "0x" is not a number of 32 bits`},
		"gcd+4294967296":      {Symbol: "gcd+4294967296", Errno: -22, Reason: "BAD_LINE", Detail: `the offset "4294967296" is not a number of 32 bits`},
		"+4":                  {Symbol: "+4", Errno: -22, Reason: "BAD_LINE", Detail: "a symbol or an address is missing"},
		"a\x1b[31m":           {Symbol: `a\x1b[31m`, Errno: -2, Reason: "UNKNOWN_SYMBOL", Detail: "no such symbol"},
		"\xff":                {Symbol: `\xff`, Errno: -2, Reason: "UNKNOWN_SYMBOL", Detail: "no such symbol"},
		"gcd+00":              entry,
		"1f":                  {Addr: known(0x000000000000001f), Errno: -2, Reason: "NO_SYMBOL", Detail: "no symbol covers the address"},
	} {
		require.Equal(t, want, scanPoints(t, s, line)[0], line)
	}
}

func TestOffsetsAreTheKernels(t *testing.T) {
	s := NewScan(guest(t))
	rows := scanPoints(t, s, "gcd+10", "gcd+0xa", "gcd+012")
	require.Equal(t, uint64(10), rows[0].Offset)
	require.Equal(t, rows[0], rows[1])
	require.Equal(t, rows[0], rows[2], "a leading zero is octal, as in kprobe_events")
}

func TestInitTextSaysThatItIsFreed(t *testing.T) {
	s := NewScan(guest(t))
	for _, sym := range s.Symbols {
		if _, init := s.View.InInit(sym.Addr); init {
			row := scanPoints(t, s, sym.Name)[0]
			require.Equal(t, -22, row.Errno)
			require.Equal(t, "not in kernel text: boot has freed this init text", row.Detail)
			return
		}
	}
	t.Fatal("the guest kernel has no init text")
}

// twice is a kernel in which a name has two addresses.
type twice struct{ kimage.View }

func (v twice) Lookup(name string) []kimage.Symbol {
	return append(v.View.Lookup(name), v.View.Lookup("vfs_read")...)
}

func TestAmbiguousNamesListTheirAddresses(t *testing.T) {
	s := NewScan(guest(t))
	gcd, read := scanPoints(t, s, "gcd")[0].Addr, scanPoints(t, s, "vfs_read")[0].Addr
	s.View = twice{s.View}
	note := fmt.Sprintf("gcd has 2 addresses (%s, %s): the first is taken", gcd, read)
	reason := fmt.Sprintf("; 2 addresses: %s, %s", gcd, read)
	rows := scanPoints(t, s, "gcd", "gcd+0x1")
	require.Equal(t, 0, rows[0].Errno)
	require.Equal(t, gcd, rows[0].Addr)
	require.Equal(t, "FTRACE_BASED"+reason, rows[0].Reason)
	require.True(t, strings.HasSuffix(rows[0].Detail, "; "+note), rows[0].Detail)
	require.Equal(t, "NOT_BOUNDARY"+reason, rows[1].Reason)
	require.Equal(t, "not at an instruction boundary; "+note, rows[1].Detail)
}

func TestReadPoints(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte("gcd\n"))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing":         {"", nil},
		"comments":        {"# a\n\n  # b\n#c\tgcd\n", nil},
		"first_column":    {"gcd\t1\nvfs_read 2\n  lcm  \n", []string{"gcd", "vfs_read", "lcm"}},
		"header":          {"addr\tsymbol\n0x1\tgcd\n", []string{"0x1"}},
		"our_own_header":  {"address\tsymbol\n0x1\tgcd\n", []string{"0x1"}},
		"name_as_header":  {"addr\naddr\t1\n", []string{"addr", "addr"}},
		"dos_line_ends":   {"gcd\r\nlcm\r\n", []string{"gcd", "lcm"}},
		"no_last_newline": {"gcd\nlcm", []string{"gcd", "lcm"}},
		"gzip":            {packed.String(), []string{"gcd"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadPoints(strings.NewReader(c.text))
			require.NoError(t, err)
			require.Equal(t, listOf(c.want...), got)
		})
	}
	_, err = ReadPoints(strings.NewReader("gcd\n" + strings.Repeat("x", bounded.ListLine+1)))
	require.EqualError(t, err, "line 2 is longer than 1048576 bytes")
	_, err = ReadPoints(strings.NewReader(packed.String()[:packed.Len()-6]))
	require.Error(t, err)
}

func TestReadPointsWithSlots(t *testing.T) {
	for name, header := range map[string]string{"header": "addr\terr\tslot_addr\n", "comment": "# x\n#addr\terr\tslot_addr\n"} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadPoints(strings.NewReader(header + "gcd\t0\tffffffffc0001000\nlcm\t0\t\nlcm\n0x1\t\t0x30\n"))
			require.NoError(t, err)
			require.Equal(t, []ScanPoint{{"gcd", 0xffffffffc0001000}, {"lcm", 0}, {"lcm", 0}, {"0x1", 0x30}}, got)
		})
	}
}

func TestSlotsOfPoints(t *testing.T) {
	s := NewScan(guest(t)).scanner()
	s.Slots = true
	own := s.row(probepoint.Request{Symbol: "gcd", Offset: 5}, 0xffffffffc0123000, nil)
	require.Equal(t, known(0xffffffffc0123000), own.SlotAddr)
	require.True(t, strings.HasSuffix(own.Slot.String(), "cc"), own.Slot)
	require.Equal(t, known(s.SlotAddr), s.point(ScanPoint{Text: "gcd+5"}).SlotAddr)
	require.Empty(t, s.point(ScanPoint{Text: "gcd"}).Slot, "ftrace needs none")
	require.Empty(t, s.point(ScanPoint{Text: "gcd+1"}).Slot)
	s.Slots = false
	require.Empty(t, s.point(ScanPoint{Text: "gcd+5"}).Slot)
}

// TestInOrder: results come in order however many processors there are, and
// an error ends it.
func TestInOrder(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	next := 0
	require.NoError(t, inOrder(5000, func(i int) int { return i * i }, func(i, v int) error {
		require.Equal(t, next, i)
		require.Equal(t, i*i, v)
		next++
		return nil
	}))
	require.Equal(t, 5000, next)
	full := errors.New("no space left")
	require.ErrorIs(t, inOrder(5000, func(i int) int { return i }, func(i, _ int) error {
		if i == 3 {
			return full
		}
		return nil
	}), full)
	require.NoError(t, inOrder(0, func(i int) int { return i }, func(int, int) error { return full }))
}

func FuzzScanLine(f *testing.F) {
	for _, line := range []string{"gcd", "gcd+0x4", "0xffffffff81000000", "fff", "+", "a+b+c", "demo:x", "\xff"} {
		f.Add(line)
	}
	s := NewScan(guest(f)).scanner()
	s.Detail = true
	f.Fuzz(func(t *testing.T, line string) {
		row := s.point(ScanPoint{Text: line})
		require.Equal(t, row.Optimized, row.Reason == "")
		require.LessOrEqual(t, row.Errno, 0)
		require.Equal(t, 10, bytes.Count(row.appendTSV(nil, s.Scan), []byte{'\t'}))
		require.Zero(t, bytes.Count(row.appendTSV(nil, s.Scan), []byte{'\n'}))
	})
}

// BenchmarkScan is the cost of an instruction in a scan of whole functions, its share
// of the decoding included.
func BenchmarkScan(b *testing.B) {
	s := NewScan(guest(b))
	functions, err := s.Functions()
	require.NoError(b, err)
	for name, f := range map[string]ScanFormat{"totals": ScanNone, "tsv": ScanTSV, "json": ScanJSON} {
		b.Run(name, func(b *testing.B) {
			rows := 0
			for b.Loop() {
				totals, err := s.WriteFunctions(io.Discard, f, functions)
				require.NoError(b, err)
				rows += totals.Points
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), "ns/insn")
		})
	}
}
