package own

import (
	"fmt"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// scratchSize is the least size in bytes of a function that is written over.
const scratchSize = 96

// scratch is a function of the image that the questions do not run. Code for a question
// is written over it: kallsyms knows its name and its size.
type scratch struct {
	k *Kernel
	kimage.Symbol
}

// newScratch takes the first that is there of some functions that register things.
func (k *Kernel) newScratch() (*scratch, error) {
	for _, name := range []string{"register_jprobe", "register_kretprobes", "enable_kprobe", "unregister_kprobes", "register_kretprobe"} {
		at := k.function(name)
		if at == 0 {
			continue
		}
		s, ok := k.img.SymbolAt(at)
		if ok && s.Addr == at && s.Size >= scratchSize {
			return &scratch{k, s}, nil
		}
	}
	return nil, fmt.Errorf("a function to write over: %w", ErrNotThere)
}

var longNop = []byte{0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}

// write makes the function begin with code and end with tail, and nops between.
func (s *scratch) write(code, tail []byte) error {
	b := append(make([]byte, 0, s.Size), code...)
	room := int(s.Size) - len(tail)
	for len(b)+len(longNop) <= room {
		b = append(b, longNop...)
	}
	for len(b) < room {
		b = append(b, 0x90)
	}
	return s.k.m.WriteText(s.Addr, append(b, tail...))
}

// canProbe calls can_probe for an offset of the function, which begins with code.
func (s *scratch) canProbe(code []byte, offset int64) (bool, error) {
	if err := s.write(code, nil); err != nil {
		return false, err
	}
	return s.k.CanProbe(s.Addr.Add(offset))
}

// canOptimize calls can_optimize for the first instruction of the function, which
// begins with a nop and then code, and ends with tail.
func (s *scratch) canOptimize(code, tail []byte) (bool, error) {
	// The bytes that the jump would replace are left alone.
	if err := s.write(append(append(append([]byte(nil), longNop...), longNop...), code...), tail); err != nil {
		return false, err
	}
	return s.k.CanOptimize(s.Addr)
}

// jump is a jmp rel32 that would stand n bytes into the function.
func (s *scratch) jump(n int64, to x86.Addr) []byte {
	d := uint32(to.Sub(s.Addr) - n - 5)
	return []byte{0xe9, byte(d), byte(d >> 8), byte(d >> 16), byte(d >> 24)}
}
