package optimizer

import (
	"encoding/binary"
	"fmt"

	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/kprobes/slot"
	"kprobelab/profile"
	"kprobelab/x86"
)

// MaxDetour is the size of the largest detour buffer in bytes: with frame
// pointers and the longest DCR.
const MaxDetour = 105 + MaxRegion + x86.Rel32Size

// DetourParams are the parameters of a detour buffer, apart from the code that it detours.
type DetourParams struct {
	// OptimizedProbe is the callback's first argument (the address of struct
	// optimized_kprobe).
	OptimizedProbe uint64
	// Callback is the address that the buffer calls (optimized_callback).
	Callback x86.Addr
	// AC is the instruction at the place where the kernel closes user access, in profiles that do
	// (profile.Optimize.CLAC): ACClac, ACNop or another nop of 3 bytes. Zero means the instruction
	// in the View's own template (optprobe_template_clac, which boot has rewritten for the CPU), or
	// ACNop if the View has no template.
	AC [3]byte
}

// Detour is a detour buffer as it is to be written to memory.
//
//	+0                template: save all registers, as a pt_regs
//	                  movabs $OptimizedProbe,%rdi; call Callback
//	                  restore all registers
//	+TemplateSize     the copied instructions, Size bytes
//	+TemplateSize+Size  jmp At+Size
type Detour struct {
	// Addr is the buffer's address, At the probed address.
	Addr, At x86.Addr
	// Bytes[:Len] are to be written at Addr.
	Bytes [MaxDetour]byte
	Len   int
	// TemplateSize and Size are the lengths of the template and of the copied
	// instructions (optinsn.size).
	TemplateSize, Size int
	// Saved are the original bytes at At+1 to At+4 (optinsn.copied_insn), which
	// the jump's displacement replaces.
	Saved [4]byte
	// Jump are the bytes that are written over the 5 bytes at At.
	Jump [x86.Rel32Size]byte
}

// Code returns the bytes to write at Addr.
func (d *Detour) Code() []byte { return d.Bytes[:d.Len] }

// Copied returns the address of the copied instructions. A hit continues there after the int3 has
// run its handlers (docs/spec 4.8).
func (d *Detour) Copied() x86.Addr { return d.Addr.Add(int64(d.TemplateSize)) }

// BuildDetour makes the detour buffer, to be written at buf, of a probe at that address, as
// arch_prepare_optimized_kprobe does after its test of the whole function (Check makes that test).
// The error is a *Refusal: ERANGE for a buffer too far, EINVAL for an instruction that cannot be
// copied or is not boostable, EBUSY for reserved text.
func BuildDetour(v kimage.View, at, buf x86.Addr, c *profile.Config, p DetourParams) (Detour, error) {
	d := Detour{Addr: buf, At: at}
	if p.AC == [acSize]byte{} {
		p.AC, _ = acOf(v)
	}
	l := putTemplate(d.Bytes[:], c, p.AC)
	d.TemplateSize = l.End
	if err := d.copyRegion(v, c); err != nil {
		return d, err
	}
	call := buf.Add(int64(l.Call))
	if rel := p.Callback.Sub(call) - x86.Rel32Size; rel != int64(int32(rel)) {
		return d, refuse(v, Reason{ID: rule.Distance, Addr: p.Callback, Target: buf})
	}
	copy(d.Bytes[l.Arg:], []byte{0x48, 0xBF})
	binary.LittleEndian.PutUint64(d.Bytes[l.Arg+2:], p.OptimizedProbe)
	putRel32(d.Bytes[l.Call:], x86.Call32, call, p.Callback)
	end := d.Copied().Add(int64(d.Size))
	putRel32(d.Bytes[l.End+d.Size:], x86.Jmp32, end, at.Add(int64(d.Size)))
	putRel32(d.Jump[:], x86.Jmp32, at, buf)
	d.Len = l.End + d.Size + x86.Rel32Size
	return d, nil
}

// putRel32 writes a jmp or call at from to to.
func putRel32(b []byte, op byte, from, to x86.Addr) {
	b[0] = op
	binary.LittleEndian.PutUint32(b[1:], uint32(to.Sub(from)-x86.Rel32Size))
}

// copyRegion makes the checks of the region, copies the DCR to the end of the
// template and saves the bytes that the jump overwrites.
func (d *Detour) copyRegion(v kimage.View, c *profile.Config) error {
	var all Verdict
	q := question{Scanner: NewScannerAt(v, d.Addr, c), at: d.At, v: &all}
	q.buffer()
	if r := all.Stops(); r != nil {
		return refuse(v, *r)
	}
	for d.Size = 0; d.Size < q.d.Size; {
		k, err := slot.Copy(v, d.Bytes[d.TemplateSize+d.Size:], d.At.Add(int64(d.Size)), d.Copied().Add(int64(d.Size)), c)
		if err != nil {
			panic(fmt.Sprintf("BUG: the region at %v passed its checks: %v", d.At, err))
		}
		d.Size += k.Length
	}
	clear(d.Bytes[d.TemplateSize+d.Size:])
	v.CodeAt(d.At+1, d.Saved[:])
	return nil
}

func refuse(v kimage.View, r Reason) error {
	r.in, _ = v.SymbolAt(r.Addr)
	return &Refusal{Reason: r}
}
