package optimizer

import (
	"bufio"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

var update = flag.Bool("update", false, "rewrite testdata/vectors/optimization.tsv from the measured data")

// fact is one measured point without its address: what was around it, and
// whether the kernel optimized it. The columns of testdata/vectors/optimization.tsv:
//
//	kernel     the profile
//	optimized  1 or 0, measured
//	region     the instructions from the probe on that cover 5 bytes
//	left       how many bytes of the function are left, at most 64
//	around     what else decides, separated by commas: jump:BYTE:TO is a jump
//	           by that opcode to that offset from the probe, indirect:HEX and
//	           thunk:BYTE are jumps, exception a table entry, and
//	           ftrace|label|call:AT:LEN a patch site at that offset
type fact struct {
	kernel    string
	optimized bool
	region    []byte
	left      int
	around    []string
}

const factsFile = "../testdata/vectors/optimization.tsv"

func (f *fact) String() string {
	opt := 0
	if f.optimized {
		opt = 1
	}
	return fmt.Sprintf("%s\t%d\t%x\t%d\t%s", f.kernel, opt, f.region, f.left, strings.Join(f.around, ","))
}

func parseFact(t *testing.T, line string) fact {
	c := strings.Split(line, "\t")
	require.Len(t, c, 5, line)
	region, err := hex.DecodeString(c[2])
	require.NoError(t, err)
	left, err := strconv.Atoi(c[3])
	require.NoError(t, err)
	f := fact{kernel: c[0], optimized: c[1] == "1", region: region, left: left}
	if c[4] != "" {
		f.around = strings.Split(c[4], ",")
	}
	return f
}

// probeAt is the offset of the probe in the facts' functions; before it lies the fact's surrounding
// code.
const probeAt = 64

// build makes a function for which Check must make the fact's decision.
func (f *fact) build(t *testing.T) *code {
	v := nops(probeAt, f.region, max(0, f.left-len(f.region)))
	v.size = uint64(probeAt + f.left)
	at := 0
	for _, a := range f.around {
		w := strings.Split(a, ":")
		switch w[0] {
		case "jump", "thunk":
			at += f.putJump(t, v, at, w)
		case "indirect":
			b, err := hex.DecodeString(w[1])
			require.NoError(t, err)
			at += copy(v.bytes[at:], b)
		case "exception":
			v.exceptions = append(v.exceptions, base.Add(int64(at)))
			at++
		default:
			v.site(siteKinds[w[0]], probeAt+number(t, w[1]), number(t, w[2]))
		}
	}
	require.LessOrEqual(t, at, probeAt)
	return v
}

var siteKinds = map[string]kimage.SiteKind{
	"ftrace": kimage.SiteFtrace, "label": kimage.SiteJumpLabel, "call": kimage.SiteStaticCall,
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

func (f *fact) putJump(t *testing.T, v *code, at int, w []string) int {
	op, err := strconv.ParseUint(w[1], 16, 8)
	require.NoError(t, err)
	to := thunkBase.Sub(base)
	if w[0] == "jump" {
		to = int64(probeAt + number(t, w[2]))
	}
	b := []byte{byte(op)}
	switch {
	case op >= 0x80 && op <= 0x8f:
		b = []byte{0x0f, byte(op)}
		fallthrough
	case op == 0xe9:
		to -= int64(at + len(b) + 4)
		b = append(b, byte(to), byte(to>>8), byte(to>>16), byte(to>>24))
	default:
		b = append(b, byte(to-int64(at+2)))
	}
	return copy(v.bytes[at:], b)
}

// TestDecisionsAsFacts checks some hundred measured points, without the kernels: each with the
// surrounding code that it had.
func TestDecisionsAsFacts(t *testing.T) {
	if *update {
		writeFacts(t)
	}
	file, err := os.Open(factsFile)
	require.NoError(t, err)
	defer file.Close()
	n := map[bool]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		f := parseFact(t, lines.Text())
		c := named(f.kernel)
		v := Check(f.build(t), base+probeAt, c)
		require.Equal(t, f.optimized, v.OK, "%s: %v", lines.Text(), ids(v))
		requireSame(t, NewScanner(f.build(t), c).Decide(base+probeAt), v)
		n[f.optimized]++
	}
	t.Logf("%d optimized, %d not", n[true], n[false])
	require.Greater(t, min(n[true], n[false]), 100)
}

func writeFacts(t *testing.T) {
	lines := []string{"# kernel\toptimized\tregion\tleft\taround: measured on real kernels, see facts_test.go"}
	for _, kernel := range []string{"oracle510", "oracle", "oracle612"} {
		img := openKernel(t, kernel, "live.elf.zst")
		text := oracle.LiveText(t, kernel)
		points := oracle.Points(t, kernel)
		seen := map[string]int{}
		for i := range points {
			p := &points[i]
			if p.Err != 0 || p.Ftrace {
				continue
			}
			f, kind := factOf(img, p.ProbedAt(text), p.Opt)
			if seen[kind]++; seen[kind] == 1 {
				lines = append(lines, f.String())
			}
		}
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(factsFile), 0o755))
	require.NoError(t, os.WriteFile(factsFile, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
}

// factOf describes a point of an image, and returns the kind of the fact.
func factOf(img *kimage.Image, at x86.Addr, optimized bool) (f fact, kind string) {
	c := img.Profile()
	v := Check(img, at, c)
	f = fact{kernel: c.Name, optimized: optimized, left: min(int(v.Symbol.Size-v.Offset), 64)}
	f.region = make([]byte, v.DCR.End.Sub(at))
	img.CodeAt(at, f.region)
	seen := map[rule.ID]bool{}
	for i := range v.Reasons {
		if r := &v.Reasons[i]; !seen[r.ID] {
			seen[r.ID] = true
			f.tell(img, r, at)
		}
	}
	if optimized {
		f.near(img, &v)
	}
	return f, fmt.Sprint(optimized, v.Errno(), len(v.Copied), f.region[0]>>5, f.kinds())
}

// kinds returns the kinds of the surrounding code, without the places.
func (f *fact) kinds() (list []string) {
	for _, a := range f.around {
		word, _, _ := strings.Cut(a, ":")
		list = append(list, word)
	}
	return list
}

// tell notes a reason, where the region itself does not show it.
func (f *fact) tell(img *kimage.Image, r *Reason, at x86.Addr) {
	switch r.ID {
	case rule.ExceptionEntry:
		f.around = append(f.around, "exception")
	case rule.IndirectJump:
		f.around = append(f.around, fmt.Sprintf("indirect:%x", r.Insn.Bytes()))
	case rule.ThunkJump:
		f.around = append(f.around, fmt.Sprintf("thunk:%02x", opcode(&r.Insn)))
	case rule.ReservedFtrace:
		f.site("ftrace", img, r, at)
	case rule.ReservedJumpLabel:
		f.site("label", img, r, at)
	case rule.ReservedStaticCall:
		f.site("call", img, r, at)
	case rule.JTPRTarget:
		f.around = append(f.around, fmt.Sprintf("jump:%02x:%d", opcode(&r.Insn), r.Target.Sub(at)))
	}
}

// opcode is a jump's, the second byte of a two-byte one.
func opcode(i *Insn) byte {
	k, err := decoder.DecodeKernel(i.Bytes(), nil)
	if err == nil && k.OpcodeLen == 2 {
		return k.Opcode[1]
	}
	return k.Opcode[0]
}

func (f *fact) site(kind string, img *kimage.Image, r *Reason, at x86.Addr) {
	s, _ := img.SiteAt(siteKinds[kind], r.Addr)
	f.around = append(f.around, fmt.Sprintf("%s:%d:%d", kind, s.Addr.Sub(at), s.Len))
}

// near notes jumps that lead to where the JTPR just does not reach.
func (f *fact) near(img *kimage.Image, v *Verdict) {
	for step := range kimage.NewWalker(img, &img.Profile().Decoder).Function(v.Symbol) {
		target, ok := step.Jump()
		to := target.Sub(v.Addr)
		if !ok || to != 0 && to != 6 {
			continue
		}
		i := Insn{Addr: step.Addr, Len: step.Insn.Length}
		img.CodeAt(i.Addr, i.Bytes())
		if a := fmt.Sprintf("jump:%02x:%d", opcode(&i), to); !slices.Contains(f.around, a) && len(f.around) < 3 {
			f.around = append(f.around, a)
		}
	}
}
