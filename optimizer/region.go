package optimizer

import (
	"errors"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/kprobes/slot"
	"kprobelab/profile"
	"kprobelab/x86"
)

// jmp32Size is the size of jmp rel32 (JMP32_INSN_SIZE), which the DCR has to
// cover with whole instructions.
const jmp32Size = 5

// MaxRegion is the longest DCR in bytes (MAX_OPTIMIZED_LENGTH): 4 bytes and
// one instruction of 15.
const MaxRegion = jmp32Size - 1 + decoder.MaxInsnSize

// tooFar is the kernel's test of the buffer's distance, which has the 5 with
// the wrong sign (docs/spec 4.2, step 3).
func tooFar(at, buf x86.Addr) bool {
	rel := buf.Sub(at) + jmp32Size
	return rel > 0x7fffffff || rel < -0x7fffffff
}

// copier copies the DCR, one instruction after the other.
type copier struct {
	view kimage.View
	c    *profile.Config
	// at is the probed address, final where the first copy is to run.
	at, final x86.Addr
	// size is how many bytes were copied so far.
	size int
	// k is the last instruction, with the moved displacement.
	k decoder.Kernel
}

// done: whole instructions cover the jump.
func (p *copier) done() bool { return p.size >= jmp32Size }

// next copies one more instruction into dst[size:], which needs MaxRegion
// bytes in all, and returns the rule that refuses it, or None. Behind a refused
// one it can go on where k.Length is not 0.
func (p *copier) next(dst []byte) ReasonID {
	src := p.at.Add(int64(p.size))
	var err error
	p.k, err = slot.Copy(p.view, dst[p.size:], src, p.final.Add(int64(p.size)), p.c)
	id := copyReason(err)
	if id == CopyUnreadable || id == CopyUndecodable {
		p.k.Length = 0
		return id
	}
	p.size += p.k.Length
	if id == None && !slot.Boostable(p.view, &p.k, src, p.c) {
		return NotBoostable
	}
	return id
}

// copyReason is the rule behind an error of slot.Copy.
func copyReason(err error) ReasonID {
	if err == nil {
		return None
	}
	var e *slot.Error
	if !errors.As(err, &e) {
		return CopyUnreadable
	}
	return ruleReason(e.Rule)
}

// ruleReason is the slot package's rule as one of ours, None for "".
func ruleReason(r slot.Rule) ReasonID {
	switch r {
	case "":
		return None
	case slot.RuleUndecodable:
		return CopyUndecodable
	case slot.RuleEmulatePrefix:
		return CopyEmulatePrefix
	case slot.RuleInt3:
		return CopyInt3
	case slot.RuleMasksExceptions:
		return CopyMasksExceptions
	case slot.RuleDisplacement:
		return CopyDisplacement
	}
	return CopyUnreadable
}
