package libcheck

import (
	"bytes"
	"strings"
)

// stringFuncs are lib/string.c and lib/string_helpers.c.
var stringFuncs = []Func{
	{"strlen", func(g *Gen) Call {
		s := g.Word()
		return Call{Args: []any{at(0)}, Bufs: []Buf{in(cstr(s))}, Want: U64(n(len(s)))}
	}},
	{"strnlen", func(g *Gen) Call {
		s, max := g.Word(), g.IntN(30)
		return Call{Args: []any{at(0), n(max)}, Bufs: []Buf{in(cstr(s))}, Want: U64(n(min(len(s), max)))}
	}},
	{"strcpy", func(g *Gen) Call {
		s := g.Word()
		return Call{
			Args: []any{at(0), at(1)},
			Bufs: []Buf{{In: padded(nil, 32), Out: padded(cstr(s), 32)}, in(cstr(s))},
			Want: Pointer(0, 0),
		}
	}},
	{"strncpy", func(g *Gen) Call {
		s, max := g.Word(), g.IntN(32)
		out := padded(nil, 32)
		clear(out[:max])
		copy(out[:max], s)
		return Call{
			Args: []any{at(0), at(1), n(max)},
			Bufs: []Buf{{In: padded(nil, 32), Out: out}, in(cstr(s))}, Want: Pointer(0, 0),
		}
	}},
	{"strlcpy", func(g *Gen) Call {
		s, size := g.Word(), g.IntN(32)
		return Call{
			Args: []any{at(0), at(1), n(size)},
			Bufs: []Buf{{In: padded(nil, 32), Out: padded(truncated(s, size), 32)}, in(cstr(s))},
			Want: U64(n(len(s))),
		}
	}},
	{"strcat", func(g *Gen) Call {
		a, b := g.Word(), g.Word()
		return Call{
			Args: []any{at(0), at(1)},
			Bufs: []Buf{{In: padded(cstr(a), 64), Out: padded(cstr(a+b), 64)}, in(cstr(b))},
			Want: Pointer(0, 0),
		}
	}},
	{"strncat", func(g *Gen) Call {
		a, b, max := g.Word(), g.Word(), g.IntN(24)
		if max == 0 {
			max = 1
		}
		return Call{
			Args: []any{at(0), at(1), n(max)},
			Bufs: []Buf{{In: padded(cstr(a), 64), Out: padded(cstr(a+b[:min(len(b), max)]), 64)}, in(cstr(b))},
			Want: Pointer(0, 0),
		}
	}},
	{"strlcat", func(g *Gen) Call {
		a, b := g.Word(), g.Word()
		size := len(a) + 1 + g.IntN(24) // the kernel forbids a size within the first string
		return Call{
			Args: []any{at(0), at(1), n(size)},
			Bufs: []Buf{{In: padded(cstr(a), 64), Out: padded(truncated(a+b, size), 64)}, in(cstr(b))},
			Want: U64(n(len(a) + len(b))),
		}
	}},
	{"strcmp", func(g *Gen) Call {
		a, b := g.Word(), g.Word()
		if g.IntN(3) == 0 {
			b = a
		}
		return Call{Args: []any{at(0), at(1)}, Bufs: []Buf{in(cstr(a)), in(cstr(b))}, Want: I32(strings.Compare(a, b))}
	}},
	{"strncmp", func(g *Gen) Call {
		a, b, max := g.Word(), g.Word(), g.IntN(24)
		return Call{
			Args: []any{at(0), at(1), n(max)}, Bufs: []Buf{in(cstr(a)), in(cstr(b))},
			Want: I32(strings.Compare(a[:min(len(a), max)], b[:min(len(b), max)])),
		}
	}},
	{"strcasecmp", func(g *Gen) Call {
		a, b := g.Word(), g.Word()
		if g.IntN(3) == 0 {
			b = strings.ToUpper(a)
		}
		return Call{Args: []any{at(0), at(1)}, Bufs: []Buf{in(cstr(a)), in(cstr(b))}, Want: I32(foldDiff(a, b))}
	}},
	{"strncasecmp", func(g *Gen) Call {
		a, b, max := g.Word(), g.Word(), g.IntN(24)
		want := foldDiff(a[:min(len(a), max)], b[:min(len(b), max)])
		if i := min(len(a), len(b)); want != 0 && i < max && foldDiff(a[:i], b[:i]) == 0 {
			want = int(cstr(a)[i]) - int(cstr(b)[i]) // the character against a NUL keeps its case
		}
		return Call{
			Args: []any{at(0), at(1), n(max)}, Bufs: []Buf{in(cstr(a)), in(cstr(b))}, Want: I32(want),
		}
	}},
	{"strchr", func(g *Gen) Call {
		s, c := g.Word(), g.letter()
		return Call{Args: []any{at(0), uint64(c)}, Bufs: []Buf{in(cstr(s))}, Want: PointerOrNull(0, strings.IndexByte(s+"\x00", c))}
	}},
	{"strrchr", func(g *Gen) Call {
		s, c := g.Word(), g.letter()
		return Call{Args: []any{at(0), uint64(c)}, Bufs: []Buf{in(cstr(s))}, Want: PointerOrNull(0, strings.LastIndexByte(s+"\x00", c))}
	}},
	{"strchrnul", func(g *Gen) Call {
		s, c := g.Word(), g.letter()
		i := strings.IndexByte(s, c)
		if i < 0 {
			i = len(s)
		}
		return Call{Args: []any{at(0), uint64(c)}, Bufs: []Buf{in(cstr(s))}, Want: Pointer(0, i)}
	}},
	{"strnchr", func(g *Gen) Call {
		s, c, max := g.Word(), g.letter(), g.IntN(24)
		i := strings.IndexByte(s+"\x00", c)
		if i >= max {
			i = -1
		}
		return Call{Args: []any{at(0), n(max), uint64(c)}, Bufs: []Buf{in(cstr(s))}, Want: PointerOrNull(0, i)}
	}},
	{"strspn", func(g *Gen) Call {
		s, set := g.Word(), g.Text("abc.", 1+g.IntN(3))
		return Call{
			Args: []any{at(0), at(1)}, Bufs: []Buf{in(cstr(s)), in(cstr(set))},
			Want: U64(n(len(s) - len(strings.TrimLeft(s, set)))),
		}
	}},
	{"strcspn", func(g *Gen) Call {
		s, set := g.Word(), g.Text("abc.", 1+g.IntN(3))
		i := strings.IndexAny(s, set)
		if i < 0 {
			i = len(s)
		}
		return Call{Args: []any{at(0), at(1)}, Bufs: []Buf{in(cstr(s)), in(cstr(set))}, Want: U64(n(i))}
	}},
	{"strpbrk", func(g *Gen) Call {
		s, set := g.Word(), g.Text("abc.", 1+g.IntN(3))
		return Call{Args: []any{at(0), at(1)}, Bufs: []Buf{in(cstr(s)), in(cstr(set))}, Want: PointerOrNull(0, strings.IndexAny(s, set))}
	}},
	{"strsep", func(g *Gen) Call {
		s, set := g.Word(), g.Text(" .", 1+g.IntN(2))
		out, next := cstr(s), Null
		if i := strings.IndexAny(s, set); i >= 0 {
			out[i] = 0
			next = Ref{0, i + 1}
		}
		return Call{
			Args: []any{at(1), at(2)},
			Bufs: []Buf{
				{In: cstr(s), Out: out},
				{In: make([]byte, 8), Ptrs: []Ptr{{0, at(0)}}, OutPtrs: []Ptr{{0, next}}},
				in(cstr(set)),
			},
			Want: Pointer(0, 0),
		}
	}},
	{"strstr", func(g *Gen) Call {
		s, sub := g.Text("ab", g.IntN(24)), g.Text("ab", g.IntN(4))
		return Call{Args: []any{at(0), at(1)}, Bufs: []Buf{in(cstr(s)), in(cstr(sub))}, Want: PointerOrNull(0, strings.Index(s, sub))}
	}},
	{"strnstr", func(g *Gen) Call {
		s, sub := g.Text("ab", 8+g.IntN(24)), g.Text("ab", g.IntN(4))
		max := g.IntN(len(s) + 1)
		return Call{
			Args: []any{at(0), at(1), n(max)}, Bufs: []Buf{in(cstr(s)), in(cstr(sub))},
			Want: PointerOrNull(0, strings.Index(s[:max], sub)),
		}
	}},
	{"skip_spaces", func(g *Gen) Call {
		s := g.Text(" \t\nab", g.IntN(12))
		return Call{Args: []any{at(0)}, Bufs: []Buf{in(cstr(s))}, Want: Pointer(0, len(s)-len(strings.TrimLeft(s, " \t\n")))}
	}},
	{"strim", func(g *Gen) Call {
		s := g.Text(" \tab", g.IntN(12))
		end := len(strings.TrimRight(s, " \t"))
		out := cstr(s)
		out[end] = 0
		left := len(s[:end]) - len(strings.TrimLeft(s[:end], " \t"))
		return Call{Args: []any{at(0)}, Bufs: []Buf{{In: cstr(s), Out: out}}, Want: Pointer(0, left)}
	}},
	{"sysfs_streq", func(g *Gen) Call {
		a := g.Text("ab", g.IntN(4))
		b := g.Text("ab", g.IntN(4))
		if g.IntN(2) == 0 {
			b = a
		}
		as, bs := a, b
		if g.IntN(2) == 0 {
			as += "\n"
		}
		if g.IntN(2) == 0 {
			bs += "\n"
		}
		return Call{Args: []any{at(0), at(1)}, Bufs: []Buf{in(cstr(as)), in(cstr(bs))}, Want: Bool(a == b)}
	}},
	{"match_string", func(g *Gen) Call {
		list := Buf{In: make([]byte, 32)}
		bufs := []Buf{{}, {}}
		want, key := -22, g.Text("ab", 2)
		for i := range 4 {
			s := g.Text("ab", 2)
			if s == key && want < 0 {
				want = i
			}
			list.Ptrs = append(list.Ptrs, Ptr{8 * i, at(len(bufs))})
			bufs = append(bufs, in(cstr(s)))
		}
		bufs[0], bufs[1] = list, in(cstr(key))
		return Call{Args: []any{at(0), uint64(4), at(1)}, Bufs: bufs, Want: I32(want)}
	}},
	{"stpcpy", func(g *Gen) Call {
		s := g.Word()
		return Call{
			Args: []any{at(0), at(1)},
			Bufs: []Buf{{In: padded(nil, 32), Out: padded(cstr(s), 32)}, in(cstr(s))}, Want: Pointer(0, len(s)),
		}
	}},
	{"glob_match", func(g *Gen) Call {
		pat, s := g.Text("ab?*", 1+g.IntN(6)), g.Text("ab", g.IntN(6))
		return Call{Args: []any{at(0), at(1)}, Bufs: []Buf{in(cstr(pat)), in(cstr(s))}, Want: Bool(globMatch(pat, s))}
	}},
	{"string_unescape", func(g *Gen) Call {
		plain := g.Text("ab\n\t\\", g.IntN(10))
		escaped := strings.NewReplacer("\n", `\n`, "\t", `\t`, `\`, `\\`).Replace(plain)
		const space, special = 1, 8
		return Call{
			Args: []any{at(0), at(1), uint64(0), uint64(space | special)},
			Bufs: []Buf{in(cstr(escaped)), {In: padded(nil, 64), Out: padded(cstr(plain), 64)}},
			Want: I32(len(plain)),
		}
	}},
}

func truncated(s string, size int) []byte {
	if size == 0 {
		return nil
	}
	return cstr(s[:min(len(s), size-1)])
}

// letter is a character that words have, or sometimes the NUL.
func (g *Gen) letter() byte { return "abcAB .x\x00"[g.IntN(9)] }

// foldDiff is the difference of the first two lower-cased bytes that differ.
func foldDiff(a, b string) int {
	x, y := cstr(strings.ToLower(a)), cstr(strings.ToLower(b))
	for i := 0; i < len(x) && i < len(y); i++ {
		if x[i] != y[i] {
			return int(x[i]) - int(y[i])
		}
	}
	return 0
}

func globMatch(pat, s string) bool {
	switch {
	case pat == "":
		return s == ""
	case pat[0] == '*':
		return globMatch(pat[1:], s) || s != "" && globMatch(pat, s[1:])
	case s == "":
		return false
	case pat[0] == '?' || pat[0] == s[0]:
		return globMatch(pat[1:], s[1:])
	}
	return false
}

// memoryFuncs are the memory functions, in C and in assembly.
var memoryFuncs = []Func{
	copyFunc("memcpy"), copyFunc("__memcpy"), moveFunc("memmove"), moveFunc("__memmove"),
	setFunc("memset"), setFunc("__memset"),
	{"memcmp", func(g *Gen) Call {
		a := g.Text("ab", g.IntN(40))
		b := g.Text("ab", len(a))
		if g.IntN(2) == 0 {
			b = a
		}
		want := 0
		for i := range a {
			if a[i] != b[i] {
				want = int(a[i]) - int(b[i])
				break
			}
		}
		return Call{Args: []any{at(0), at(1), n(len(a))}, Bufs: []Buf{in(padded([]byte(a), 40)), in(padded([]byte(b), 40))}, Want: I32(want)}
	}},
	{"bcmp", func(g *Gen) Call {
		a := g.Bytes(1 + g.IntN(30))
		return Call{Args: []any{at(0), at(1), n(len(a))}, Bufs: []Buf{in(a), in(bytes.Clone(a))}, Want: I32(0)}
	}},
	{"memscan", func(g *Gen) Call {
		b, c := g.Bytes(1+g.IntN(40)), g.Bytes(1)[0]
		i := bytes.IndexByte(b, c)
		if i < 0 {
			i = len(b)
		}
		return Call{Args: []any{at(0), uint64(c), n(len(b))}, Bufs: []Buf{in(b)}, Want: Pointer(0, i)}
	}},
	{"memchr", func(g *Gen) Call {
		s, c := g.Text("abcd", 1+g.IntN(40)), g.letter()
		return Call{Args: []any{at(0), uint64(c), n(len(s))}, Bufs: []Buf{in([]byte(s))}, Want: PointerOrNull(0, strings.IndexByte(s, c))}
	}},
	{"memchr_inv", func(g *Gen) Call {
		b := bytes.Repeat([]byte{'x'}, 1+g.IntN(60))
		want := -1
		if g.IntN(3) > 0 {
			want = g.IntN(len(b))
			b[want] = 'y'
		}
		return Call{Args: []any{at(0), uint64('x'), n(len(b))}, Bufs: []Buf{in(b)}, Want: PointerOrNull(0, want)}
	}},
	{"memcpy_and_pad", func(g *Gen) Call {
		src, size, pad := g.Bytes(g.IntN(20)), g.IntN(32), g.Bytes(1)[0]
		out := padded(nil, 32)
		for i := range size {
			out[i] = pad
		}
		copy(out[:size], src)
		return Call{
			Args: []any{at(0), n(size), at(1), n(len(src)), uint64(pad)},
			Bufs: []Buf{{In: padded(nil, 32), Out: out}, in(padded(src, 32))}, Want: Void(),
		}
	}},
	{"__crypto_memneq", func(g *Gen) Call {
		a := g.Bytes(1 + g.IntN(40))
		b := bytes.Clone(a)
		var want uint64 // the differing bits: words first, then the bytes of the tail
		if g.IntN(2) == 0 {
			i := g.IntN(len(b))
			b[i] ^= 1
			want = 1
			if i < len(b)&^7 {
				want = 1 << (8 * (i % 8))
			}
		}
		return Call{Args: []any{at(0), at(1), n(len(a))}, Bufs: []Buf{in(a), in(b)}, Want: U64(want)}
	}},
	{"__crypto_xor", func(g *Gen) Call {
		a := g.Bytes(1 + g.IntN(40))
		b := g.Bytes(len(a))
		out := make([]byte, len(a))
		for i := range a {
			out[i] = a[i] ^ b[i]
		}
		return Call{
			Args: []any{at(0), at(1), at(2), n(len(a))},
			Bufs: []Buf{{In: make([]byte, len(a)), Out: out}, in(a), in(b)}, Want: Void(),
		}
	}},
	{"crypto_inc", func(g *Gen) Call {
		b := g.Bytes(1 + g.IntN(20))
		if g.IntN(2) == 0 {
			b[len(b)-1] = 0xff
		}
		out := bytes.Clone(b)
		for i := len(out) - 1; i >= 0; i-- {
			out[i]++
			if out[i] != 0 {
				break
			}
		}
		return Call{Args: []any{at(0), n(len(b))}, Bufs: []Buf{{In: b, Out: out}}, Want: Void()}
	}},
}

func copyFunc(name string) Func {
	return Func{name, func(g *Gen) Call {
		b := g.Bytes(g.IntN(300))
		return Call{
			Args: []any{at(0), at(1), n(len(b))},
			Bufs: []Buf{{In: padded(nil, 320), Out: padded(b, 320)}, in(padded(b, 320))}, Want: Pointer(0, 0),
		}
	}}
}

func moveFunc(name string) Func {
	return Func{name, func(g *Gen) Call {
		b := g.Bytes(320)
		size := g.IntN(300)
		from, to := g.IntN(20), g.IntN(20)
		out := bytes.Clone(b)
		copy(out[to:to+size], b[from:from+size])
		return Call{
			Args: []any{Ref{0, to}, Ref{0, from}, n(size)}, Bufs: []Buf{{In: b, Out: out}}, Want: Pointer(0, to),
		}
	}}
}

func setFunc(name string) Func {
	return Func{name, func(g *Gen) Call {
		size, c := g.IntN(300), g.Bytes(1)[0]
		out := padded(bytes.Repeat([]byte{c}, size), 320)
		return Call{
			Args: []any{at(0), uint64(c), n(size)}, Bufs: []Buf{{In: padded(nil, 320), Out: out}}, Want: Pointer(0, 0),
		}
	}}
}
