package optimizer

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/slot"
	"kprobelab/profile"
	"kprobelab/x86"
)

// TestTemplateSizes by release, without and with frame pointers (docs/spec 4.4).
func TestTemplateSizes(t *testing.T) {
	for name, want := range map[string]int{"4.4": 95, "5.8": 98, "5.10": 98, "6.1": 100, "6.12": 100} {
		c := named(name)
		require.Equal(t, want, TemplateSize(c), name)
		require.Equal(t, want+24, SlotSize(c), name)
		c.FramePointer = true
		require.Equal(t, want+5, TemplateSize(c), name)
	}
}

func TestLayout(t *testing.T) {
	require.Equal(t, Layout{AC: 4, Arg: 37, Call: 47, End: 100}, LayoutOf(named("6.1")))
	c := named("6.1")
	c.FramePointer = true
	require.Equal(t, Layout{AC: 4, Arg: 42, Call: 52, End: 105}, LayoutOf(c))
	require.Equal(t, -1, LayoutOf(named("4.4")).AC)
}

// stack follows a template's pushes and pops: the depth in bytes at each, and the content there, by
// the letters of the disassembly.
type stack struct{ words []string }

func (s *stack) run(t *testing.T, line string) {
	op, arg, _ := strings.Cut(line, " ")
	switch {
	case strings.HasPrefix(op, "push"):
		s.words = append(s.words, op+" "+strings.TrimSpace(arg))
	case strings.HasPrefix(op, "pop"):
		s.words = s.words[:len(s.words)-1]
	case op == "sub" || op == "add":
		var n int
		_, err := fmt.Sscanf(strings.TrimSpace(arg), "$0x%x,%%rsp", &n)
		require.NoError(t, err, line)
		for ; n > 0; n -= 8 {
			if op == "sub" {
				s.words = append(s.words, "")
			} else {
				s.words = s.words[:len(s.words)-1]
			}
		}
	}
}

// TestTemplateIsAFrame: at the call the stack holds a pt_regs (with its ss word
// from 5.13 on), and after the template it is where it was.
func TestTemplateIsAFrame(t *testing.T) {
	for _, name := range profile.Names()[1:] {
		for _, framed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, framed), func(t *testing.T) {
				c := named(name)
				c.FramePointer = framed
				d, err := BuildDetour(nops(0, nil, 40), base+16, x86.Addr(c.ModuleBase), c, DetourParams{Callback: x86.Addr(c.ModuleBase)})
				require.NoError(t, err)
				var s stack
				l := LayoutOf(c)
				atCall := 0
				for off := 0; off < l.End; {
					if off == l.Call {
						atCall = len(s.words)
					}
					i, err := decoder.Decode(d.Bytes[off:])
					require.NoError(t, err)
					s.run(t, decoder.Text(d.Bytes[off:off+i.Length], d.Addr.Add(int64(off))))
					off += i.Length
				}
				want := 168 / 8
				if !c.Optimize.SSWord {
					want--
				}
				require.Equal(t, want, atCall)
				require.Empty(t, s.words)
			})
		}
	}
}

// TestDetour of a region with a RIP-relative operand, byte for byte.
func TestDetour(t *testing.T) {
	c := named("6.1")
	v := nops(16, []byte{0x53, 0x48, 0x8b, 0x05, 0x10, 0, 0, 0, 0x5b}, 20)
	d, err := BuildDetour(v, base+16, 0xffffffffc0000000, c, DetourParams{
		OptimizedProbe: 0xffff888000123400, Callback: 0xffffffff81234560, AC: ACClac,
	})
	require.NoError(t, err)
	require.Equal(t, 8, d.Size)
	require.Equal(t, 113, d.Len)
	require.Equal(t, x86.Addr(0xffffffffc0000064), d.Copied())
	require.Equal(t, [4]byte{0x48, 0x8b, 0x05, 0x10}, d.Saved)
	require.Equal(t, "e9ebffff3e", hex.EncodeToString(d.Jump[:]))
	require.Equal(t, "6a18549c0f01ca4883ec1857565251504150415141524153535541544155415641574889e6",
		hex.EncodeToString(d.Bytes[:37]))
	require.Equal(t, "48bf003412008088ffff", hex.EncodeToString(d.Bytes[37:47]))
	require.Equal(t, "e82c4523c1", hex.EncodeToString(d.Bytes[47:52]))
	require.Equal(t, "53488b05bcffffc0", hex.EncodeToString(d.Bytes[100:108]), "the operand is where it was")
	require.Equal(t, "e9a7ffffc0", hex.EncodeToString(d.Bytes[108:113]))
}

// TestNoDetour: if Check refuses for the region, BuildDetour refuses as the kernel does, with the
// same number.
func TestNoDetour(t *testing.T) {
	for name, c := range map[string]struct {
		code *code
		want error
		says string
	}{
		"not_boostable": {nops(16, []byte{0xe8, 0, 0, 0, 0}, 9), errno.EINVAL, "no detour buffer: f+0x10: "},
		"reserved":      {nops(40, nil, 0).site(kimage.SiteJumpLabel, 17, 2), errno.EBUSY, "no detour buffer: the jump label at f+0x11 "},
		"unreadable":    {nops(18, nil, 0), errno.EINVAL, "no detour buffer: 0xffffffff81000012 cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := BuildDetour(c.code, base+16, 0xffffffffc0000000, named("6.1"), DetourParams{Callback: base})
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.says)
			var r *Refusal
			require.ErrorAs(t, err, &r)
		})
	}
	_, err := BuildDetour(nops(40, nil, 0), base+16, 0xffffffffc0000000, named("6.1"), DetourParams{Callback: 0xffff888000000000})
	require.ErrorIs(t, err, errno.ERANGE, "the callback is out of a call's reach")
}

// TestCopiesReachWhatTheyReached: wherever the buffer is, a RIP-relative operand of a copy has the
// address of the original's.
func TestCopiesReachWhatTheyReached(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		disp := rapid.Int32().Draw(rt, "disp")
		buf := base.Add(rapid.Int64Range(-1<<30, 1<<30).Draw(rt, "buffer"))
		insn := []byte{0x48, 0x8b, 0x05, byte(disp), byte(disp >> 8), byte(disp >> 16), byte(disp >> 24)}
		c := named("6.1")
		d, err := BuildDetour(nops(16, insn, 20), base+16, buf, c, DetourParams{Callback: base})
		want := base.Add(16 + 7 + int64(disp))
		if err != nil {
			require.False(rt, slot.Reaches(base+16, buf.Add(100), disp))
			return
		}
		k, err := decoder.DecodeKernel(d.Bytes[d.TemplateSize:], &c.Decoder)
		require.NoError(rt, err)
		require.Equal(rt, want, d.Copied().Add(7+int64(k.Disp)))
	})
}

// Check tells every reason; the kernel stops at the first.
func ExampleCheck() {
	c := named("6.1")
	v := Check(nops(0, []byte{0xeb, 0x10, 0xff, 0xe0}, 40), base+0xe, c)
	fmt.Println(v.OK)
	for i := range v.Reasons {
		fmt.Println(v.Reasons[i].ID, "-", v.Reasons[i].Sentence())
	}
	// Output:
	// false
	// JTPR_TARGET - f+0x0: jmp 0xffffffff81000012 leads to f+0x12, past the first of the 5 bytes that the jump replaces
	// INDIRECT_JUMP - f+0x2: jmp *%rax may jump anywhere into the function
}
