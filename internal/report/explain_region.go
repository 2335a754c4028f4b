package report

import (
	"cmp"
	"fmt"
	"slices"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/kprobes/slot"
	"kprobelab/optimizer"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Region holds the code around a probe, at offsets in bytes from it: the picture of the
// kernel's documentation shows the same.
type Region struct {
	// From is the offset of the first byte shown, at most 0; Bytes are all bytes from there on.
	From  int   `json:"from"`
	Bytes Bytes `json:"bytes"`
	// FunctionEnd is the offset at which the next function begins.
	FunctionEnd int `json:"function_end"`
	// Instructions are the function's instructions that begin in it or reach into it.
	Instructions []RegionInsn `json:"instructions"`
	// Jumps are the function's jumps that lead to bytes from the probe on to
	// right after its region.
	Jumps []RegionJump `json:"jumps"`
}

// RegionInsn is an instruction of a Region.
type RegionInsn struct {
	// Start and End are offsets from the probe.
	Start int    `json:"start"`
	End   int    `json:"end"`
	Text  string `json:"text"`
	// Boostable: it may be in a detour buffer.
	Boostable bool `json:"boostable"`
}

// RegionJump is a jump into a Region.
type RegionJump struct {
	// From is the jump's address and Offset that in the function.
	From   Addr   `json:"from"`
	Offset uint64 `json:"offset"`
	Text   string `json:"text"`
	// To is the offset from the probe to which it leads.
	To int `json:"to"`
	// Prohibited: that is in the JTPR. Documented: also by the documentation.
	Prohibited bool `json:"prohibited"`
	Documented bool `json:"documented"`
}

// before and after are how many bytes around the region are shown at most.
const (
	regionBefore = 4
	regionAfter  = 3
)

// region gathers the picture's facts.
func (x *explainer) region() {
	end := max(x.v.DCR.End.Sub(x.at), 6) + regionAfter
	r := &Region{Instructions: []RegionInsn{}, Jumps: []RegionJump{}, FunctionEnd: int(x.sym.Addr.Add(int64(x.sym.Size)).Sub(x.at))}
	for s := range x.walk(x.sym) {
		if s.Err == nil {
			x.regionStep(r, s, int(end))
		}
	}
	if len(r.Instructions) > 0 {
		r.From = min(0, r.Instructions[0].Start)
	}
	b := make([]byte, int(end)-r.From)
	r.Bytes = Bytes(b[:x.View.CodeAt(x.at.Add(int64(r.From)), b)])
	x.e.Region = r
}

func (x *explainer) regionStep(r *Region, s *kimage.Step, end int) {
	start := int(s.Addr.Sub(x.at))
	if start+s.Insn.Length > -regionBefore && start < end && start > -decoder.MaxInsnSize {
		r.Instructions = append(r.Instructions, RegionInsn{
			Start: start, End: start + s.Insn.Length, Text: x.instruction(s.Addr).Text,
			Boostable: slot.Boostable(x.View, &s.Insn, s.Addr, x.Profile),
		})
	}
	to, ok := s.Jump()
	if !ok || to < x.at || to > max(x.v.DCR.End, x.v.JTPR.End) {
		return
	}
	r.Jumps = append(r.Jumps, RegionJump{
		From: known(s.Addr), Offset: uint64(s.Addr.Sub(x.sym.Addr)), Text: x.instruction(s.Addr).Text, To: int(to.Sub(x.at)),
		Prohibited: x.v.JTPR.Contains(to), Documented: to > x.at && to < x.v.JTPR.End-1,
	})
}

// sortBy sorts by a key, keeping the order of equal ones.
func sortBy[T any, K cmp.Ordered](list []T, key func(T) K) {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}

// ExampleProbe stands in detour buffers for the address of struct
// optimized_kprobe, which is each machine's own.
const ExampleProbe = 0xffff888000001000

// buffers are the slot and the detour buffer as they would be written, the
// buffer a page after the slot.
func (x *explainer) buffers() {
	if x.slot.Len > 0 {
		x.e.Slot = x.block(x.slot.Addr, x.slot.Bytes[:x.slot.Len], nil)
	}
	if !x.e.Optimized {
		return
	}
	p := optimizer.DetourParams{OptimizedProbe: ExampleProbe, Callback: x.SlotAddr.Add(2 * 4096)}
	called := "optimized_callback runs the handlers (of no address here: it stands in)"
	if found := x.View.Lookup("optimized_callback"); len(found) > 0 {
		p.Callback, called = found[0].Addr, "runs the handlers"
	}
	d, err := optimizer.BuildDetour(x.View, x.at, x.SlotAddr.Add(4096), x.Profile, p)
	if err != nil {
		return
	}
	x.e.Detour = x.block(d.Addr, d.Code(), detourNotes(&d, called, x.Profile))
}

// detourNotes returns notes for offsets in a detour buffer at which a part begins.
func detourNotes(d *optimizer.Detour, called string, c *profile.Config) map[int]string {
	l := optimizer.LayoutOf(c)
	notes := map[int]string{
		0:                      "the registers, as a struct pt_regs",
		l.Arg:                  "the optimized probe (each machine's own address)",
		l.Call:                 called,
		l.Call + x86.Rel32Size: "the registers again, flags last",
		l.End:                  "the copied instructions",
		l.End + d.Size:         "back to what follows them",
	}
	if l.AC >= 0 {
		notes[l.AC] = "clac on a processor with SMAP"
	}
	return notes
}

// block disassembles code that is to be at an address.
func (x *explainer) block(start x86.Addr, code []byte, notes map[int]string) *CodeBlock {
	b := &CodeBlock{Addr: known(start), Bytes: Bytes(code), Code: []Instruction{}}
	for off := 0; off < len(code); {
		k, err := decoder.DecodeKernel(code[off:], &x.Profile.Decoder)
		n := k.Length
		if err != nil || n == 0 {
			n = len(code) - off
		}
		n = min(n, len(code)-off)
		i := x.newInstruction(start.Add(int64(off)), code[off:off+n])
		i.Note = notes[off]
		b.Code = append(b.Code, *i)
		off += n
	}
	return b
}

// notes notes the differences between the documentation's limits and the code's here.
func (x *explainer) notes() {
	e := x.e
	for _, r := range x.v.Reasons {
		switch r.ID {
		case rule.JTPRTarget:
			if r.BeyondDoc {
				e.Notes = append(e.Notes, "the documentation ends the JTPR with the jump's last byte, at +4; the code goes one byte further, to +5, and refuses a jump there too")
			}
		case rule.NotBoostable:
			x.groupNote(r.Insn)
		}
	}
}

// groupNote: kprobes.rst requires instructions that can be executed out of line. These
// groups can; but the code to 6.1 never boosts them.
func (x *explainer) groupNote(i optimizer.Insn) {
	k, err := decoder.DecodeKernel(i.Bytes(), &x.Profile.Decoder)
	if err != nil || k.VexLen != 0 {
		return
	}
	later := *x.Profile
	later.Slot.BoostRule, later.Slot.BoostTable = profile.Boost612, profile.BoostTable{}
	if !slot.Boostable(x.View, &k, i.Addr, &later) {
		return
	}
	x.e.Notes = append(x.e.Notes, fmt.Sprintf(
		"%s could be executed out of line, as the documentation asks; this kernel's code never boosts its opcode (%02x), and so copies it into no detour buffer; 6.12 does",
		i.Text(), k.Opcode[0]))
}
