package interp

import (
	"math/bits"

	"kprobelab/x86"
)

// The arithmetic flags are computed when they are read. The last instruction that sets them leaves
// its kind, result and second operand, moved to the top of a word: the sign is bit 63 for every
// size, and a carry out of the operand is a carry out of the word. Flags that the manual leaves
// undefined have QEMU's values.
type ccKind uint8

const (
	ccFlags ccKind = iota // dst has the flags themselves, as in EFLAGS
	ccAdd                 // src: the second operand
	ccAdc                 // the same, with a carry that came in
	ccSub
	ccSbb
	ccLogic
	ccInc // src: CF as it was, 0 or 1
	ccDec
	ccShl // src: the operand moved by one less
	ccSar
	ccMul // src: not 0 where the result does not fit
	ccBit // src: 0 where CF is set (BMI)
	ccPop // popcnt: dst: the operand
)

const arithmetic = x86.FlagCF | x86.FlagPF | x86.FlagAF | x86.FlagZF | x86.FlagSF | x86.FlagOF

// lazy holds the operands from which the flags are computed when they are read.
type lazy struct {
	dst, src uint64
	kind     ccKind
	sh       uint8 // 64 minus the operand's size in bits
	in       uint8 // the carry that came in
}

func (l *lazy) set(kind ccKind, dst, src uint64, sh uint8) {
	l.kind, l.sh, l.dst, l.src = kind, sh, dst<<sh, src<<sh
}

func (l *lazy) carryIn() uint64 { return uint64(l.in) << l.sh }

func (l *lazy) cf() bool {
	switch l.kind {
	case ccFlags:
		return l.dst&x86.FlagCF != 0
	case ccAdd:
		return l.dst < l.src
	case ccAdc:
		return l.dst < l.src || l.in != 0 && l.dst == l.src
	case ccSub:
		return l.dst+l.src < l.src
	case ccSbb:
		a := l.dst + l.src + l.carryIn()
		return a < l.src || l.in != 0 && a == l.src
	case ccInc, ccDec:
		return l.src != 0
	case ccShl:
		return l.src>>63 != 0
	case ccSar:
		return l.src>>l.sh&1 != 0
	case ccMul:
		return l.src != 0
	case ccBit:
		return l.src == 0
	}
	return false
}

func (l *lazy) zf() bool {
	if l.kind == ccFlags {
		return l.dst&x86.FlagZF != 0
	}
	return l.dst == 0
}

func (l *lazy) sf() bool {
	switch l.kind {
	case ccFlags:
		return l.dst&x86.FlagSF != 0
	case ccPop:
		return false
	}
	return l.dst>>63 != 0
}

func (l *lazy) pf() bool {
	switch l.kind {
	case ccFlags:
		return l.dst&x86.FlagPF != 0
	case ccBit, ccPop:
		return false
	}
	return bits.OnesCount8(uint8(l.dst>>l.sh))&1 == 0
}

func (l *lazy) of() bool {
	switch l.kind {
	case ccFlags:
		return l.dst&x86.FlagOF != 0
	case ccAdd:
		return ^(l.dst-l.src^l.src)&(l.dst^l.src)>>63 != 0
	case ccAdc:
		return ^(l.dst-l.src-l.carryIn()^l.src)&(l.dst^l.src)>>63 != 0
	case ccSub:
		a := l.dst + l.src
		return (a^l.src)&(a^l.dst)>>63 != 0
	case ccSbb:
		a := l.dst + l.src + l.carryIn()
		return (a^l.src)&(a^l.dst)>>63 != 0
	case ccInc:
		return l.dst == 1<<63
	case ccDec:
		return l.dst == 1<<63-1<<l.sh
	case ccShl, ccSar:
		return (l.src^l.dst)>>63 != 0
	case ccMul:
		return l.src != 0
	}
	return false
}

func (l *lazy) af() bool {
	switch l.kind {
	case ccFlags:
		return l.dst&x86.FlagAF != 0
	case ccAdd, ccAdc:
		return (l.dst^(l.dst-l.src-l.carryOfAdc())^l.src)>>l.sh&0x10 != 0
	case ccSub:
		return (l.dst^(l.dst+l.src)^l.src)>>l.sh&0x10 != 0
	case ccSbb:
		return (l.dst^(l.dst+l.src+l.carryIn())^l.src)>>l.sh&0x10 != 0
	case ccInc:
		return l.dst>>l.sh&0xf == 0
	case ccDec:
		return l.dst>>l.sh&0xf == 0xf
	}
	return false
}

func (l *lazy) carryOfAdc() uint64 {
	if l.kind == ccAdc {
		return l.carryIn()
	}
	return 0
}

// all are the six flags, as in EFLAGS.
func (l *lazy) all() uint64 {
	if l.kind == ccFlags {
		return l.dst & arithmetic
	}
	var f uint64
	for _, b := range [...]struct {
		is  bool
		bit uint64
	}{{l.cf(), x86.FlagCF}, {l.pf(), x86.FlagPF}, {l.af(), x86.FlagAF}, {l.zf(), x86.FlagZF}, {l.sf(), x86.FlagSF}, {l.of(), x86.FlagOF}} {
		if b.is {
			f |= b.bit
		}
	}
	return f
}

// setAll sets the arithmetic flags to their values in EFLAGS.
func (l *lazy) setAll(f uint64) { *l = lazy{kind: ccFlags, dst: f & arithmetic} }

// change sets the flags of mask to their values in f.
func (l *lazy) change(mask, f uint64) { l.setAll(l.all()&^mask | f&mask) }

// holds is a condition of the opcode map: o, b, z, be, s, p, l, le, and each
// one's opposite.
func (l *lazy) holds(cond uint8) bool {
	var is bool
	switch cond >> 1 {
	case 0:
		is = l.of()
	case 1:
		is = l.cf()
	case 2:
		is = l.zf()
	case 3:
		is = l.zf() || l.cf()
	case 4:
		is = l.sf()
	case 5:
		is = l.pf()
	case 6:
		is = l.less()
	case 7:
		is = l.zf() || l.less()
	}
	return is != (cond&1 != 0)
}

func (l *lazy) less() bool {
	switch l.kind {
	case ccSub:
		return int64(l.dst+l.src) < int64(l.src)
	case ccLogic:
		return l.dst>>63 != 0
	}
	return l.sf() != l.of()
}
