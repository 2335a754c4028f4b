package interp

import (
	"math"
)

// Arithmetic of floats is rounded to nearest, whatever MXCSR says, and leaves no
// exception flags there.

const (
	quiet32, default32 = 1 << 22, 0xffc00000
	quiet64, default64 = 1 << 51, 0xfff8000000000000
)

func isNaN32(b uint64) bool { return uint32(b)&0x7fffffff > 0x7f800000 }
func isNaN64(b uint64) bool { return b&(1<<63-1) > 0x7ff<<52 }

// float64Op computes with numbers of 64 bits; a NaN among the operands is the
// result, the first one before the second.
func float64Op(fn func(x, y float64) float64) func(a, b uint64) uint64 {
	return func(a, b uint64) uint64 {
		switch {
		case isNaN64(a):
			return a | quiet64
		case isNaN64(b):
			return b | quiet64
		}
		v := math.Float64bits(fn(math.Float64frombits(a), math.Float64frombits(b)))
		if isNaN64(v) {
			return default64
		}
		return v
	}
}

func float32Op(fn func(x, y float32) float32) func(a, b uint64) uint64 {
	return func(a, b uint64) uint64 {
		switch {
		case isNaN32(a):
			return uint64(uint32(a)) | quiet32
		case isNaN32(b):
			return uint64(uint32(b)) | quiet32
		}
		v := uint64(math.Float32bits(fn(math.Float32frombits(uint32(a)), math.Float32frombits(uint32(b)))))
		if isNaN32(v) {
			return default32
		}
		return v
	}
}

// min and max take the second operand where they cannot say, a NaN included.
func choose(less func(a, b uint64) bool) func(a, b uint64) uint64 {
	return func(a, b uint64) uint64 {
		if less(a, b) {
			return a
		}
		return b
	}
}

func less64(a, b uint64) bool { return math.Float64frombits(a) < math.Float64frombits(b) }
func less32(a, b uint64) bool {
	return math.Float32frombits(uint32(a)) < math.Float32frombits(uint32(b))
}

// floatOps are the operations by opcode, for 32 and 64 bits.
var floatOps = map[byte][2]func(a, b uint64) uint64{
	0x51: {
		float32Op(func(_, y float32) float32 { return float32(math.Sqrt(float64(y))) }),
		float64Op(func(_, y float64) float64 { return math.Sqrt(y) }),
	},
	// Processors approximate these two, each in its way; here they are exact, as on Unicorn.
	0x52: {float32Op(func(_, y float32) float32 { return 1 / float32(math.Sqrt(float64(y))) })},
	0x53: {float32Op(func(_, y float32) float32 { return 1 / y })},
	0x58: {float32Op(func(x, y float32) float32 { return x + y }), float64Op(func(x, y float64) float64 { return x + y })},
	0x59: {float32Op(func(x, y float32) float32 { return x * y }), float64Op(func(x, y float64) float64 { return x * y })},
	0x5c: {float32Op(func(x, y float32) float32 { return x - y }), float64Op(func(x, y float64) float64 { return x - y })},
	0x5e: {float32Op(func(x, y float32) float32 { return x / y }), float64Op(func(x, y float64) float64 { return x / y })},
	0x5d: {choose(less32), choose(less64)},
	0x5f: {choose(func(a, b uint64) bool { return less32(b, a) }), choose(func(a, b uint64) bool { return less64(b, a) })},
}

// compares are cmpps and its kin by their immediate: eq, lt, le, unord and each
// one's opposite.
func floatCompare(imm uint64, wide bool) func(a, b uint64) uint64 {
	return func(a, b uint64) uint64 {
		x, y := toFloat(a, wide), toFloat(b, wide)
		is := false
		switch imm & 3 {
		case 0:
			is = x == y
		case 1:
			is = x < y
		case 2:
			is = x <= y
		case 3:
			is = x != x || y != y
		}
		return all1(is != (imm&4 != 0))
	}
}

func toFloat(v uint64, wide bool) float64 {
	if wide {
		return math.Float64frombits(v)
	}
	return float64(math.Float32frombits(uint32(v)))
}

// sseFloatMaker: arithmetic on one number (F2, F3) or on all.
func sseFloatMaker(d *dec) func(c *cpu, o *op) bool {
	o := d.op
	wide := d.f2 || d.size16 && !d.f3
	var fn func(a, b uint64) uint64
	if d.i.Opcode == 0xc2 {
		fn = floatCompare(o.imm, wide)
	} else {
		n := 0
		if wide {
			n = 1
		}
		fn = floatOps[d.i.Opcode][n]
	}
	if fn == nil {
		return nil
	}
	if d.i.Opcode <= 0x53 { // of one operand
		one := fn
		fn = func(_, b uint64) uint64 { return one(b, b) }
	}
	if d.f2 || d.f3 {
		o.size = 4
		if wide {
			o.size = 8
		}
		o.vec = func(a, b xmm) xmm {
			a.setLow(o.size, fn(zeroExtend(a[0], o.size), b[0]))
			return a
		}
		return opScalar
	}
	o.vec = words(fn)
	if !wide {
		o.vec = lanes(32, fn)
	}
	return opPacked
}

func opScalar(c *cpu, o *op) bool {
	v, ok := c.low(o, o.size)
	if ok {
		c.x[o.reg] = o.vec(c.x[o.reg], xmm{v})
	}
	return ok
}

// sseCompareMaker: ucomiss, comiss and their kin of 64 bits.
func sseCompareMaker(d *dec) func(c *cpu, o *op) bool {
	d.op.size = 4
	if d.size16 {
		d.op.size = 8
	}
	return opFloatCompare
}

func opFloatCompare(c *cpu, o *op) bool {
	v, ok := c.low(o, o.size)
	if !ok {
		return false
	}
	x, y := toFloat(c.x[o.reg][0], o.size == 8), toFloat(v, o.size == 8)
	switch {
	case x != x || y != y:
		c.cc.setAll(0x45)
	case x > y:
		c.cc.setAll(0)
	case x < y:
		c.cc.setAll(1)
	default:
		c.cc.setAll(0x40)
	}
	return true
}
