package slot

import (
	"encoding/binary"
	"math"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Copy copies the instruction at src for execution at final into dst, which
// has room for 15 bytes, and moves a RIP-relative displacement accordingly
// (__copy_instruction; docs/spec 3.2). Relative branches are not moved: they are
// emulated, or their effect is fixed up afterwards.
//
// dst gets all bytes that were read, also those after the instruction. The
// error is an *Error with EINVAL.
func Copy(v kimage.View, dst []byte, src, final x86.Addr, c *profile.Config) (decoder.Kernel, error) {
	dst = dst[:decoder.MaxInsnSize]
	// The kernel wants all 15 bytes; a View may end with its last
	// instruction, where the kernel's page goes on with zeros.
	n := v.CodeAt(src, dst)
	clear(dst[n:])
	if n == 0 {
		return decoder.Kernel{}, refuse(rule.SlotUnreadable, src)
	}
	k, err := decoder.DecodeKernel(dst[:n], &c.Decoder)
	if err != nil {
		return k, &Error{Rule: rule.SlotUndecodable, Addr: src, Cause: err}
	}
	if k.Length == 0 { // a decoder without errors found nothing
		return k, refuse(rule.SlotUndecodable, src)
	}
	if r := CopyRule(&k, c); r != rule.None {
		return k, refuse(r, src)
	}
	if !moveDisplacement(&k, dst, src, final) {
		return k, &Error{Rule: rule.SlotDisplacement, Addr: src, Displacement: src.Sub(final) + int64(k.Disp)}
	}
	return k, nil
}

// CopyRule is the rule that forbids a copy of the instruction, None where it can
// be copied. Copy applies it, too.
func CopyRule(k *decoder.Kernel, c *profile.Config) rule.ID {
	switch {
	case c.Slot.RefuseMasking && k.EmulateLen != 0:
		return rule.SlotEmulatePrefix
	case c.Slot.RefuseInt3 && k.Opcode[0] == x86.Int3:
		return rule.SlotInt3
	case c.Slot.RefuseMasking && k.MasksExceptions():
		return rule.SlotMasksExceptions
	}
	return rule.None
}

// moveDisplacement makes a RIP-relative operand at final reach the target that it had at src. The
// instruction's length is in both distances and cancels out.
func moveDisplacement(k *decoder.Kernel, dst []byte, src, final x86.Addr) bool {
	if !k.RIPRelative() || k.DispLen != 4 {
		return true
	}
	if !Reaches(src, final, k.Disp) {
		return false
	}
	k.Disp = int32(src.Sub(final) + int64(k.Disp))
	binary.LittleEndian.PutUint32(dst[k.DispOff:], uint32(k.Disp))
	return true
}

// Reaches reports whether a copy at final can reach the target of a RIP-relative operand with that
// displacement at src.
func Reaches(src, final x86.Addr, disp int32) bool {
	d := src.Sub(final) + int64(disp)
	return d >= math.MinInt32 && d <= math.MaxInt32
}
