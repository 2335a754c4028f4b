package fetch_test

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/tracing/definition/ofimage"
	"kprobelab/internal/tracing/fetch"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// memory is one of a kernel and of a program alike: the same bytes at the same addresses.
type memory struct {
	from x86.Addr
	b    []byte
}

func (m *memory) Read(addr uint64, b []byte, _ bool) bool {
	off := addr - uint64(m.from)
	if off > uint64(len(m.b)) || uint64(len(b)) > uint64(len(m.b))-off {
		return false
	}
	copy(b, m.b[off:])
	return true
}

func (m *memory) StackWord(regs *x86.PtRegs, n int) uint64 {
	var b [8]byte
	m.Read(regs.SP+8*uint64(n), b[:], false)
	return binary.LittleEndian.Uint64(b[:])
}

func (m *memory) PerCPU() uint64            { return 0x40 }
func (m *memory) Current() uint64           { return uint64(m.from) }
func (m *memory) Comm() string              { return "task" }
func (m *memory) Symbol(addr uint64) string { return x86.Addr(addr).String() }

// newMemory has pointers to itself, texts and numbers of all sizes in turn.
func newMemory() *memory {
	m := &memory{from: 0x400000, b: make([]byte, 1<<14)}
	for at := 0; at < len(m.b); at += 32 {
		binary.LittleEndian.PutUint64(m.b[at:], uint64(m.from)+uint64(at*7%len(m.b)))
		binary.LittleEndian.PutUint64(m.b[at+8:], 0x8182838485868788+uint64(at))
		copy(m.b[at+16:], "text of it\x00\xff\xfe")
	}
	return m
}

// fetched is the line of trace that a definition's arguments make.
func fetched(d *definition.Definition, m *memory) string {
	var regs x86.PtRegs
	for i := range regs.Words() {
		regs.Words()[i] = uint64(m.from) + 8*uint64(i)
	}
	regs.SP = uint64(m.from) + 0x100
	r := fetch.Recorder{Source: m, Regs: &regs, Rec: make([]byte, 1<<16-1), End: d.Size}
	var b strings.Builder
	for i := range d.Args {
		a := &d.Args[i]
		r.Argument(a.Code, a.Offset)
		f := fetch.Field(a, 0)
		b.WriteString(" " + a.Name + "=")
		fetch.Print(&b, a, &f, r.Rec[:r.End], m.Symbol)
	}
	return b.String()
}

// arguments are those of all definitions of testdata, each once.
func arguments(t *testing.T) (list []string) {
	text, err := os.ReadFile("../definition/testdata/definitions.txt")
	require.NoError(t, err)
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " -> ")
		words := definition.ReadLine(line).Words
		if len(words) < 3 || line[0] == '#' || line[0] == '[' {
			continue
		}
		for _, w := range words[2:] {
			if !seen[w] && !strings.Contains(w, "<") {
				seen[w], list = true, append(list, w)
			}
		}
	}
	return list
}

// Whatever an argument of testdata is, a kernel's event and a program's fetch the same from the
// same memory, where both take it; each says what the other does not take.
func TestKernelAndUserEventsFetchAlike(t *testing.T) {
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), nil)
	require.NoError(t, err)
	kernel := &ofimage.Kernel{View: img, Profile: img.Profile(), Types: img.Types, Loaded: func(string) bool { return false }}
	all := arguments(t)
	require.Greater(t, len(all), 80)
	both := map[string]int{}
	for _, release := range profile.All() {
		c, ok := profile.Named(release)
		require.True(t, ok)
		for _, arg := range all {
			ours, err := definition.Parse(definition.LineOf("p:g/e", "gcd+5", arg), kernel, &c.Tracing)
			theirs, userErr := definition.ParseUser(definition.LineOf("p:g/e", "/bin/prog:0x10", arg), func(string) error { return nil }, &c.Tracing)
			if err != nil || userErr != nil {
				continue
			}
			if ours.Args[0].Code[0].Code == definition.OpSymbol {
				continue // an address of the image
			}
			both[release]++
			require.Equal(t, ours.Size, theirs.Size, "%s: %s", release, arg)
			require.Equal(t, fetched(ours, newMemory()), fetched(theirs, newMemory()), "%s: %s", release, arg)
		}
	}
	for _, release := range []string{"4.4", "5.10", "6.1", "6.12", "7.0"} {
		t.Logf("%s: %d of %d arguments", release, both[release], len(all))
		require.GreaterOrEqual(t, both[release], 10, release)
	}
}

// What programs do with memory that is not there, by the kind of value.
func TestWhatCannotBeRead(t *testing.T) {
	c, _ := profile.Named("6.12")
	for arg, want := range map[string]string{
		"+0(%r15):u8": "0", "+16(%r15):string": `"text of it"`, "+0x100000(%r15):u32": "0", "+0(+8(%r15)):x64": "0x0", "+0x100000(%r15):string": "(fault)",
		"+0(+8(%r15)):string[2]": "{(fault),(fault)}", "+0x3fff(%r15):u16": "0", "+0x100000(%r15):u8[3]": "{0,0,0}", "$comm": `"task"`,
		"%ax:b4@4/32": "5", "%di:char": "'p'", "%sp:x64": "0x400100",
	} {
		d, err := definition.ParseUser(definition.LineOf("p:g/e", "/bin/prog:0x10", "x="+arg), func(string) error { return nil }, &c.Tracing)
		require.NoError(t, err, arg)
		require.True(t, strings.HasPrefix(fetched(d, newMemory()), " x="+want), "%s: %s", arg, fetched(d, newMemory()))
	}
}

// A text that does not fit makes no record, and its field stays a fault.
func TestTextThatDoesNotFit(t *testing.T) {
	c, _ := profile.Named("6.1")
	d, err := definition.ParseUser(definition.ReadLine("p:g/e /bin/prog:0x10 +16(%r15):string"), func(string) error { return nil }, &c.Tracing)
	require.NoError(t, err)
	m := newMemory()
	for room, fits := range map[int]bool{d.Size: false, d.Size + 10: false, d.Size + 4096: true} {
		regs := &x86.PtRegs{R15: uint64(m.from)}
		r := fetch.Recorder{Source: m, Regs: regs, Rec: make([]byte, room), End: d.Size}
		r.Argument(d.Args[0].Code, 0)
		require.Equal(t, !fits, r.Overflow, room)
		f := fetch.Field(&d.Args[0], 0)
		_, ok := f.Text(r.Rec[:r.End], 0)
		require.Equal(t, fits, ok, room)
	}
}
