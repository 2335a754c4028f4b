// Package oracle reads real kernels' answers, for tests: the measured rows, the live kernel text
// and the tables of patch sites.
//
// The data is not part of the repository. It is looked for in
// $KPROBELAB_ORACLE, else in ../shared beside the repository; where it is
// absent a test is skipped with that reason.
//
// It must not know how any answer is computed.
package oracle

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"kprobelab/x86"
)

// Kernels maps the name of each kernel's folder to the profile it is.
var Kernels = map[string]string{"oracle": "6.1", "oracle510": "5.10", "oracle612": "6.12"}

// Dir is the folder of that kernel's data; the test is skipped without it.
func Dir(tb testing.TB, kernel string) string {
	tb.Helper()
	dir := folder(kernel)
	if !Here(kernel) {
		tb.Skipf("no measured data of a real kernel: set KPROBELAB_ORACLE (%s)", kernel)
	}
	return dir
}

// Here reports whether there is data of that kernel.
func Here(kernel string) bool {
	_, err := os.Stat(folder(kernel))
	return err == nil
}

func folder(kernel string) string {
	root := os.Getenv("KPROBELAB_ORACLE")
	if root == "" {
		_, file, _, _ := runtime.Caller(0)
		root = filepath.Join(filepath.Dir(file), "..", "..", "..", "..", "shared")
	}
	return filepath.Join(root, kernel)
}

// File is a file of that kernel's data.
func File(tb testing.TB, kernel string, elem ...string) string {
	tb.Helper()
	return filepath.Join(append([]string{Dir(tb, kernel)}, elem...)...)
}

// Image is that kernel's own file, vmlinuz.
func Image(tb testing.TB, kernel string) string {
	tb.Helper()
	files, err := filepath.Glob(File(tb, kernel, "vmlinuz-*"))
	if err != nil || len(files) != 1 {
		tb.Fatalf("one image of the kernel wanted in %s: %q, %v", kernel, files, err)
	}
	return files[0]
}

// Point is one measured row. Numbers that do not apply are zero, bytes nil.
type Point struct {
	Addr                          x86.Addr
	Sym                           string
	Off, SymSize                  uint64
	Kind                          string
	Err                           int
	Opt, Ftrace, Boost, EntryFlag bool
	Opcode                        byte
	InsnSize                      int
	Emul                          string
	EType, EASize                 byte
	Rel32                         int32
	TPLen                         int
	SlotAddr                      x86.Addr
	Slot, Armed5                  []byte
	OptSize                       int
	OptCopied                     []byte
	DetourAddr                    x86.Addr
	Detour                        []byte
	Reason                        string
}

// Points reads the measured rows of a kernel.
func Points(tb testing.TB, kernel string) []Point {
	tb.Helper()
	var points []Point
	Rows(tb, File(tb, kernel, "points.tsv.gz"), func(f []string) {
		if len(f) < 26 {
			tb.Fatalf("points.tsv: a row of %d columns", len(f))
		}
		points = append(points, parsePoint(f))
	})
	return points
}

func parsePoint(f []string) Point {
	return Point{
		Addr: x86.Addr(number(f[0], 16)), Sym: f[1],
		Off: number(f[2], 10), SymSize: number(f[3], 10), Kind: f[4],
		Err: int(signed(f[5])), Opt: f[6] == "1", Ftrace: f[7] == "1",
		Boost: f[8] == "1", EntryFlag: f[9] == "1",
		Opcode: byte(number(f[10], 16)), InsnSize: int(number(f[11], 10)),
		Emul: f[12], EType: byte(number(f[13], 10)), EASize: byte(number(f[14], 10)),
		Rel32: int32(signed(f[15])), TPLen: int(number(f[16], 10)),
		SlotAddr: x86.Addr(number(f[17], 16)), Slot: unhex(f[18]), Armed5: unhex(f[19]),
		OptSize: int(number(f[20], 10)), OptCopied: unhex(f[21]),
		DetourAddr: x86.Addr(number(f[22], 16)), Detour: unhex(f[23]), Reason: f[25],
	}
}

// number and signed read a column; an empty one is zero, which the columns'
// description says is meant.
func number(s string, base int) uint64 {
	v, _ := strconv.ParseUint(s, base, 64)
	return v
}

func signed(s string) int64 {
	v, _ := strconv.ParseInt(s, 10, 64)
	return v
}

func unhex(s string) []byte {
	b, _ := hex.DecodeString(s)
	return b
}

// Rows calls f with the columns of every row of a gzipped TSV file, without
// its comment lines.
func Rows(tb testing.TB, path string, f func(columns []string)) {
	tb.Helper()
	file, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		tb.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if line := lines.Text(); !strings.HasPrefix(line, "#") {
			f(strings.Split(line, "\t"))
		}
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
}

// Text is the live text of a booted kernel, _stext to _etext.
type Text struct {
	Base  x86.Addr
	Bytes []byte
}

// LiveELF is a kernel's live text and symbols, as an ELF file.
func LiveELF(tb testing.TB, kernel string) []byte {
	tb.Helper()
	packed, err := os.ReadFile(File(tb, kernel, "live.elf.zst"))
	if err != nil {
		tb.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer z.Close()
	data, err := z.DecodeAll(packed, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// LiveText reads a kernel's live text.
func LiveText(tb testing.TB, kernel string) Text {
	tb.Helper()
	f, err := elf.NewFile(bytes.NewReader(LiveELF(tb, kernel)))
	if err != nil {
		tb.Fatal(err)
	}
	s := f.Section(".text")
	text, err := s.Data()
	if err != nil {
		tb.Fatal(err)
	}
	return Text{x86.Addr(s.Addr), text}
}

// At is the text from addr on, nil where addr is outside.
func (t Text) At(addr x86.Addr) []byte {
	if !addr.In(t.Base, t.Base.Add(int64(len(t.Bytes)))) {
		return nil
	}
	return t.Bytes[addr.Sub(t.Base):]
}

// ProbedAt returns the address at which the kernel put the probe: with IBT, past an ENDBR, or past
// the nop that replaces a sealed ENDBR (docs/spec 14.2).
func (p Point) ProbedAt(text Text) x86.Addr {
	b := text.At(p.Addr)
	if p.Off != 0 || len(b) < 5 {
		return p.Addr
	}
	endbr := string(b[:4]) == "\xf3\x0f\x1e\xfa" || string(b[:4]) == "\x66\x0f\x1f\x00"
	if endbr && p.Opcode == b[4] {
		return p.Addr.Add(4)
	}
	return p.Addr
}
