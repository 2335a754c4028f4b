package probepoint_test

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/profile"
	"kprobelab/x86"
)

var update = flag.Bool("update", false, "make testdata/vectors/registration.tsv anew from the measured data")

const (
	factsFile   = "../../testdata/vectors/registration.tsv"
	factsHeader = "# What Debian's kernels answered: 5.10.223, 6.1.192 and 6.12.107, one instruction a line.\n#profile\tbytes\tat\ttables\terrno\tftrace\tboostable\temulated\n"
)

// fact is one answer of a real kernel, without addresses: an instruction, the kernel's tables that
// have its address, and the decision.
type fact struct {
	profile string
	// bytes are the instruction, its 4-byte displacements and immediates zeroed; at is the probe's
	// offset in it.
	bytes []byte
	at    int
	// tables is a list, by commas, of extable, ftrace, jump_label,
	// static_call, bug_table, blacklist and pfx (the symbol's name).
	tables string
	// errno is negative; emul is the kernel's routine.
	errno         int
	ftrace, boost bool
	emul          string
}

func (f *fact) String() string {
	return fmt.Sprintf("%s\t%x\t%d\t%s\t%d\t%t\t%t\t%s\n", f.profile, f.bytes, f.at, f.tables, f.errno, f.ftrace, f.boost, f.emul)
}

func parseFact(t testing.TB, line string) *fact {
	c := strings.Split(line, "\t")
	require.Len(t, c, 8, line)
	b, err := hex.DecodeString(c[1])
	require.NoError(t, err)
	at, err := strconv.Atoi(c[2])
	require.NoError(t, err)
	e, err := strconv.Atoi(c[4])
	require.NoError(t, err)
	return &fact{c[0], b, at, c[3], e, c[5] == "true", c[6] == "true", c[7]}
}

// TestFacts checks every fact, on a function of a nop and the instruction.
func TestFacts(t *testing.T) {
	if *update {
		writeFacts(t)
	}
	text, err := os.ReadFile(factsFile)
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(text)) {
		if line[0] == '#' {
			continue
		}
		want := parseFact(t, strings.TrimSuffix(line, "\n"))
		require.Equal(t, line, want.String())
		got := *want
		got.ask(t)
		require.Equal(t, line, got.String())
		n++
	}
	require.Greater(t, n, 300, "facts")
}

// view is the smallest kernel in which the fact can be true.
func (f *fact) view() *fakeView {
	v := kernel(nop, string(f.bytes))
	at := text.Add(1)
	place := kimage.Site{Addr: at, Len: len(f.bytes)}
	for table := range strings.SplitSeq(f.tables, ",") {
		switch table {
		case "extable":
			v.exceptions = []x86.Addr{at}
		case "ftrace":
			v.sites[kimage.SiteFtrace] = []kimage.Site{place}
		case "jump_label":
			v.sites[kimage.SiteJumpLabel] = []kimage.Site{place}
		case "static_call":
			v.sites[kimage.SiteStaticCall] = []kimage.Site{place}
		case "bug_table":
			v.bugs = []x86.Addr{at}
		case "blacklist":
			v.black = []x86.Range{v.span()}
		case "pfx":
			v.symbols[0].Name = "__pfx_fn"
		}
	}
	return v
}

// ask computes the decision.
func (f *fact) ask(t testing.TB) {
	v, c := f.view(), named(t, f.profile)
	p, err := probepoint.Resolve(v, probepoint.Request{Addr: text.Add(int64(1 + f.at))}, c)
	require.NoError(t, err)
	place, err := probepoint.Place(v, &p, slotAt, false, c)
	f.errno, f.ftrace = -int(errno.Of(err)), err == nil && p.Ftrace
	f.boost, f.emul = place.Slot.Boosted, place.Slot.Emulation.String()
}

// writeFacts takes one fact of each sort from the measured points.
func writeFacts(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(factsHeader)
	for _, name := range []string{"5.10", "6.1", "6.12"} {
		for kernel, p := range oracle.Kernels {
			if p == name {
				for _, f := range factsOf(t, kernel, named(t, name)) {
					b.WriteString(f.String())
				}
			}
		}
	}
	require.NoError(t, os.WriteFile(factsFile, b.Bytes(), 0o644))
}

func factsOf(t *testing.T, kernel string, c *profile.Config) (list []*fact) {
	img := openOracle(t, kernel)
	points := oracle.Points(t, kernel)
	seen := map[string]bool{}
	for i := range points {
		f, sort := factOf(img, &points[i], c)
		if f != nil && !seen[sort] {
			seen[sort] = true
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *fact) int {
		return cmp.Or(cmp.Compare(b.errno, a.errno), bytes.Compare(a.bytes, b.bytes), cmp.Compare(a.tables, b.tables), cmp.Compare(a.at, b.at))
	})
	return list
}

// factOf makes a fact of a measured point, and returns its sort. Nil: the decision did not depend
// on one instruction.
func factOf(img *kimage.Image, p *oracle.Point, c *profile.Config) (*fact, string) {
	pt, err := probepoint.Resolve(img, probepoint.Request{Addr: p.Addr}, c)
	if err != nil || pt.Addr != p.Addr || !img.InText(p.Addr) || strings.Contains(p.Reason, "unsuffixed") {
		return nil, ""
	}
	f := &fact{profile: c.Name, errno: p.Err}
	var k decoder.Kernel
	var start x86.Addr
	for s := range kimage.NewWalker(img, &c.Decoder).Function(pt.Symbol) {
		start, k = s.Addr, s.Insn
		if s.Next() > p.Addr || s.AfterInt3 && !c.Check.PaddingInt3 {
			break
		}
	}
	f.at = int(p.Addr.Sub(start))
	if f.at >= k.Length {
		return nil, ""
	}
	f.bytes = make([]byte, k.Length)
	img.CodeAt(start, f.bytes)
	zero(f.bytes, k.DispOff, k.DispLen)
	zero(f.bytes, k.ImmOff, k.ImmLen)
	f.tables = tablesOf(img, start, p.Addr, &pt)
	if p.Err == 0 {
		f.ftrace = p.Ftrace
	}
	if p.Err == 0 && !p.Ftrace {
		f.boost, f.emul = p.Boost, p.Emul
	}
	sort := fmt.Sprint(f.tables, f.errno, f.ftrace, f.boost, f.emul, f.at > 0)
	if f.at == 0 && p.Err == 0 && !p.Ftrace {
		sort += fmt.Sprint(k.VexLen, k.Opcode, grouped(&k))
	}
	return f, sort
}

// zero takes places out of an instruction.
func zero(b []byte, off, n int) {
	if n >= 4 {
		clear(b[off : off+n])
	}
}

// grouped returns ModRM if the opcode alone does not select the operation.
func grouped(k *decoder.Kernel) string {
	switch op := k.Opcode[0]; {
	case op&^3 == 0x80, op&^1 == 0xc0, op&^3 == 0xd0, op&^1 == 0xf6, op&^1 == 0xfe:
		return fmt.Sprint(k.Reg(), k.Mod() == 3)
	case op == 0x0f && slices.Contains([]byte{0x00, 0x01, 0xae, 0xba, 0xc7}, k.Opcode[1]):
		return fmt.Sprint(k.Reg(), k.Mod() == 3)
	}
	return ""
}

func tablesOf(img *kimage.Image, start, at x86.Addr, pt *probepoint.Point) string {
	var list []string
	add := func(name string, in bool) {
		if in {
			list = append(list, name)
		}
	}
	_, extable := img.ExceptionEntry(start)
	add("extable", extable)
	for _, k := range []struct {
		name string
		kind kimage.SiteKind
	}{{"ftrace", kimage.SiteFtrace}, {"jump_label", kimage.SiteJumpLabel}, {"static_call", kimage.SiteStaticCall}} {
		_, in := img.SiteAt(k.kind, at)
		add(k.name, in)
	}
	add("bug_table", img.BugEntry(start))
	_, black := img.Blacklisted(at)
	add("blacklist", black)
	add("pfx", strings.HasPrefix(pt.Symbol.Name, "__pfx_"))
	return strings.Join(list, ",")
}
