package libcheck

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

const (
	einval = -22
	erange = -34
)

// numberFuncs are lib/kstrtox.c, the simple_strto* of lib/vsprintf.c and lib/hexdump.c.
var numberFuncs = []Func{
	kstrto("kstrtoull", 64, false), kstrto("kstrtoll", 64, true),
	kstrto("_kstrtoul", 64, false), kstrto("_kstrtol", 64, true),
	kstrto("kstrtouint", 32, false), kstrto("kstrtoint", 32, true),
	kstrto("kstrtou16", 16, false), kstrto("kstrtos16", 16, true),
	kstrto("kstrtou8", 8, false), kstrto("kstrtos8", 8, true),
	{"kstrtobool", func(g *Gen) Call {
		s := []string{"y", "Y1", "1", "n", "N", "0", "on", "OFF", "of", "x", "", "o", "oN"}[g.IntN(13)]
		ret, out := 0, byte(0)
		switch {
		case s == "":
			ret = einval
		case strings.ContainsRune("yY1", rune(s[0])):
			out = 1
		case strings.ContainsRune("nN0", rune(s[0])):
		case len(s) > 1 && strings.EqualFold(s[:2], "on"):
			out = 1
		case len(s) > 1 && strings.EqualFold(s[:2], "of"):
		default:
			ret = einval
		}
		buf := Buf{In: []byte{0xa5}, Out: []byte{out}}
		if ret != 0 {
			buf.Out = nil
		}
		return call(s, buf).gives(I32(ret))
	}},
	simpleStrto("simple_strtoul", false), simpleStrto("simple_strtoull", false),
	simpleStrto("simple_strtol", true), simpleStrto("simple_strtoll", true),
	{"num_to_str", func(g *Gen) Call {
		v, width := g.Number(), g.IntN(6)
		s := fmt.Sprintf("%*d", width, v)
		return call(out([]byte(s), 40), 40, v, width).gives(I32(len(s)))
	}},
	{"hex_to_bin", func(g *Gen) Call {
		c := byte(g.IntN(256))
		v, err := strconv.ParseUint(string(rune(c)), 16, 8)
		if err != nil || c > 127 {
			return call(c).gives(I32(-1))
		}
		return call(c).gives(I32(int(v)))
	}},
	{"hex2bin", func(g *Gen) Call {
		b := g.Bytes(1 + g.IntN(20))
		return call(out(b, 24), hex.EncodeToString(b), len(b)).gives(I32(0))
	}},
	{"bin2hex", func(g *Gen) Call {
		b := g.Bytes(1 + g.IntN(20))
		s := hex.EncodeToString(b)
		return call(out([]byte(s), 48), b, len(b)).gives(Pointer(0, len(s)))
	}},
	{"hex_dump_to_buffer", func(g *Gen) Call {
		b := g.Bytes(1 + g.IntN(16))
		ascii := g.IntN(2)
		line := hexLine(b, ascii == 1)
		return call(b, len(b), 16, 1, out(cstr(line), 128), 128, ascii).gives(I32(len(line)))
	}},
	{"memparse", func(g *Gen) Call {
		v, suffix := g.Uint64()>>40, g.Text("KMGkmg,", 1)
		s := strconv.FormatUint(v, 10) + suffix + "x"
		used := len(s) - 1
		switch strings.ToUpper(suffix) {
		case "K":
			v <<= 10
		case "M":
			v <<= 20
		case "G":
			v <<= 30
		default:
			used--
		}
		return call(s, Buf{In: make([]byte, 8), OutPtrs: []Ptr{{0, Ref{0, used}}}}).gives(U64(v))
	}},
	{"get_option", func(g *Gen) Call {
		v, rest := g.IntN(100000), []string{"", ",7", "-9", "x"}[g.IntN(4)]
		s := strconv.Itoa(v) + rest
		ret, used := 1, len(s)-len(rest)
		switch {
		case strings.HasPrefix(rest, ","):
			ret, used = 2, used+1
		case strings.HasPrefix(rest, "-"):
			ret = 3
		}
		return call(moved(at(2), Ref{2, used}), zeroed(le.AppendUint32(nil, uint32(v)))).with(in(cstr(s))).gives(I32(ret))
	}},
}

// numeral makes a string that may be a number in the base, with all the
// prefixes, signs and line ends that the kernel takes and some that it does not.
func (g *Gen) numeral() (string, uint64) {
	base := []uint64{0, 8, 10, 16}[g.IntN(4)]
	v := g.Number()
	var s string
	switch base {
	case 8:
		s = strconv.FormatUint(v, 8)
	case 16:
		s = strconv.FormatUint(v, 16)
	default:
		s = []string{strconv.FormatUint(v, 10), "0x" + strconv.FormatUint(v, 16), "0" + strconv.FormatUint(v, 8)}[g.IntN(3)]
		if base == 10 {
			s = strconv.FormatUint(v, 10)
		}
	}
	s = []string{"", "", "", "-", "+"}[g.IntN(5)] + s + []string{"", "", "\n", "x", "0000000"}[g.IntN(5)]
	return s, base
}

// kstrto is the family that refuses everything but one whole number.
func kstrto(name string, width int, signed bool) Func {
	return Func{name, func(g *Gen) Call {
		s, base := g.numeral()
		v, ret := parseWhole(s, base, width, signed)
		buf := Buf{In: padded(nil, 8)}
		if ret == 0 {
			buf.Out = padded(nil, 8)
			for i := range width / 8 {
				buf.Out[i] = byte(v >> (8 * i))
			}
		}
		return call(s, base, buf).gives(I32(ret))
	}}
}

func parseWhole(s string, base uint64, width int, signed bool) (uint64, int) {
	digits, negative := s, false
	switch {
	case strings.HasPrefix(s, "+"):
		digits = s[1:]
	case signed && strings.HasPrefix(s, "-"):
		digits, negative = s[1:], true
	}
	digits = strings.TrimSuffix(digits, "\n")
	digits, base = splitBase(digits, base)
	v, err := strconv.ParseUint(digits, int(base), 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, erange
	}
	if err != nil {
		return 0, einval
	}
	limit := new(big.Int).Lsh(big.NewInt(1), uint(width))
	if signed {
		limit.Rsh(limit, 1)
		if negative {
			limit.Add(limit, big.NewInt(1))
		}
	}
	if new(big.Int).SetUint64(v).Cmp(limit) >= 0 {
		return 0, erange
	}
	if negative {
		v = -v
	}
	return v, 0
}

func splitBase(s string, base uint64) (string, uint64) {
	hexed := len(s) > 2 && strings.HasPrefix(strings.ToLower(s), "0x") && isHex(s[2])
	if base == 0 {
		switch {
		case hexed:
			base = 16
		case strings.HasPrefix(s, "0"):
			base = 8
		default:
			base = 10
		}
	}
	if base == 16 && len(s) > 2 && strings.HasPrefix(strings.ToLower(s), "0x") {
		s = s[2:]
	}
	return s, base
}

func isHex(c byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }

// simpleStrto is the family that takes as much as it understands.
func simpleStrto(name string, signed bool) Func {
	return Func{name, func(g *Gen) Call {
		s, base := g.numeral()
		if strings.HasPrefix(s, "+") || !signed && strings.HasPrefix(s, "-") {
			s = s[1:]
		}
		v, used := parsePrefix(s, base, signed)
		return call(s, Buf{In: make([]byte, 8), OutPtrs: []Ptr{{0, Ref{0, used}}}}, base).gives(U64(v))
	}}
}

func parsePrefix(s string, base uint64, signed bool) (uint64, int) {
	if signed && strings.HasPrefix(s, "-") {
		v, used := parsePrefix(s[1:], base, false)
		return -v, used + 1
	}
	rest, base := splitBase(s, base)
	used := len(s) - len(rest)
	var v uint64
	for _, c := range strings.ToLower(rest) {
		d := uint64(strings.IndexRune("0123456789abcdef", c))
		if d >= base {
			break
		}
		v = v*base + d
		used++
	}
	return v, used
}

// hexLine is one line of a hex dump with 16 single bytes a row.
func hexLine(b []byte, ascii bool) string {
	var cells, text []string
	for _, c := range b {
		cells = append(cells, fmt.Sprintf("%02x", c))
		if c < 0x20 || c > 0x7e {
			c = '.'
		}
		text = append(text, string(rune(c)))
	}
	line := strings.Join(cells, " ")
	if ascii {
		line = fmt.Sprintf("%-49s%s", line, strings.Join(text, ""))
	}
	return line
}

// mathFuncs are lib/math.
var mathFuncs = []Func{
	{"gcd", func(g *Gen) Call {
		f := 1 + g.Number()>>40
		a, b := f*(g.Number()>>32), f*(g.Number()>>32)
		return call(a, b).gives(U64(gcd(a, b)))
	}},
	{"lcm", func(g *Gen) Call {
		a, b := g.Number()>>33, g.Number()>>33
		return call(a, b).gives(U64(lcm(a, b)))
	}},
	{"lcm_not_zero", func(g *Gen) Call {
		a, b := g.Number()>>33, g.Number()>>33
		want := lcm(a, b)
		if want == 0 {
			want = a | b
		}
		return call(a, b).gives(U64(want))
	}},
	{"int_sqrt", func(g *Gen) Call {
		v := g.Number()
		root := new(big.Int).Sqrt(new(big.Int).SetUint64(v))
		return call(v).gives(U64(root.Uint64()))
	}},
	{"int_pow", func(g *Gen) Call {
		base, exp := g.Number(), uint64(g.IntN(20))
		want := uint64(1)
		for range exp {
			want *= base
		}
		return call(base, exp).gives(U64(want))
	}},
	{"reciprocal_value", func(g *Gen) Call {
		d := uint32(g.Number()) | 1
		l := 32 - bits.LeadingZeros32(d-1)
		// m = floor(2^32 * (2^l - d) / d) + 1, in arbitrary precision
		num := new(big.Int).Lsh(big.NewInt(1), uint(l))
		num.Sub(num, new(big.Int).SetUint64(uint64(d)))
		num.Lsh(num, 32).Quo(num, new(big.Int).SetUint64(uint64(d))).Add(num, big.NewInt(1))
		// struct { u32 m; u8 sh1, sh2; } in rax: bytes 6 and 7 are padding
		value := uint64(uint32(num.Uint64())) | uint64(min(l, 1))<<32 | uint64(max(l-1, 0))<<40
		return call(d).gives(Want{Bits: 48, Value: value})
	}},
	{"__sw_hweight32", func(g *Gen) Call {
		v := g.Uint32()
		return call(v).gives(U32(uint32(bits.OnesCount32(v))))
	}},
	{"__sw_hweight64", func(g *Gen) Call {
		v := g.Uint64()
		return call(v).gives(U64(uint64(bits.OnesCount64(v))))
	}},
	{"iter_div_u64_rem", func(g *Gen) Call {
		d := 1000 + uint32(g.Number()>>40)
		q, r := uint64(g.IntN(20)), g.Uint64N(uint64(d))
		return call(q*uint64(d)+r, d, zeroed(words([]uint64{r}))).gives(U32(uint32(q)))
	}},
	limbFunc("mpihelp_add_n", func(a, b *big.Int) *big.Int { return a.Add(a, b) }),
	limbFunc("mpihelp_sub_n", func(a, b *big.Int) *big.Int { return a.Sub(a, b) }),
	{"mpihelp_mul_1", func(g *Gen) Call {
		a, limb := g.limbs(1+g.IntN(8)), g.Number()
		product := new(big.Int).Mul(bigOf(a), new(big.Int).SetUint64(limb))
		low, carry := limbsOf(product, len(a))
		return call(zeroed(words(low)), words(a), len(a), limb).gives(U64(carry))
	}},
	{"mpihelp_addmul_1", func(g *Gen) Call {
		a, limb := g.limbs(1+g.IntN(8)), g.Number()
		acc := g.limbs(len(a))
		sum := new(big.Int).Mul(bigOf(a), new(big.Int).SetUint64(limb))
		low, carry := limbsOf(sum.Add(sum, bigOf(acc)), len(a))
		return call(changed(words(acc), words(low)), words(a), len(a), limb).gives(U64(carry))
	}},
	{"mpihelp_cmp", func(g *Gen) Call {
		a := g.limbs(1 + g.IntN(4))
		b := append([]uint64(nil), a...)
		b[g.IntN(len(b))] += uint64(g.IntN(3)) - 1
		return call(words(a), words(b), len(a)).gives(I32(bigOf(a).Cmp(bigOf(b))))
	}},
	{"mpihelp_lshift", func(g *Gen) Call {
		a, shift := g.limbs(1+g.IntN(8)), 1+uint(g.IntN(63))
		low, carry := limbsOf(new(big.Int).Lsh(bigOf(a), shift), len(a))
		return call(zeroed(words(low)), words(a), len(a), shift).gives(U64(carry))
	}},
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func lcm(a, b uint64) uint64 {
	if a == 0 || b == 0 {
		return 0
	}
	return a / gcd(a, b) * b
}

func (g *Gen) limbs(count int) []uint64 {
	v := make([]uint64, count)
	for i := range v {
		v[i] = []uint64{g.Uint64(), 0, ^uint64(0)}[min(g.IntN(6), 2)]
	}
	return v
}

func bigOf(limbs []uint64) *big.Int {
	v := new(big.Int)
	for i := len(limbs) - 1; i >= 0; i-- {
		v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(limbs[i]))
	}
	return v
}

// limbsOf splits a number into count limbs and the word above them.
func limbsOf(v *big.Int, count int) (low []uint64, carry uint64) {
	modulus := new(big.Int).Lsh(big.NewInt(1), uint(64*(count+1)))
	v = new(big.Int).Mod(v, modulus)
	mask := new(big.Int).SetUint64(^uint64(0))
	for range count {
		low = append(low, new(big.Int).And(v, mask).Uint64())
		v.Rsh(v, 64)
	}
	return low, v.Uint64()
}

// limbFunc is an operation on two numbers of equally many limbs that returns
// the carry or borrow.
func limbFunc(name string, op func(a, b *big.Int) *big.Int) Func {
	return Func{name, func(g *Gen) Call {
		a := g.limbs(1 + g.IntN(8))
		b := g.limbs(len(a))
		low, carry := limbsOf(op(bigOf(a), bigOf(b)), len(a))
		return call(zeroed(words(low)), words(a), words(b), len(a)).gives(U64(carry & 1))
	}}
}
