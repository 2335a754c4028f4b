package libcheck

import (
	"bytes"
	"strings"
)

// stringFuncs are lib/string.c and lib/string_helpers.c.
var stringFuncs = []Func{
	{"strlen", func(g *Gen) Call {
		s := g.Word()
		return call(s).gives(U64(len(s)))
	}},
	{"strnlen", func(g *Gen) Call {
		s, max := g.Word(), g.IntN(30)
		return call(s, max).gives(U64(min(len(s), max)))
	}},
	{"strcpy", func(g *Gen) Call {
		s := g.Word()
		return call(out(cstr(s), 32), s).gives(Pointer(0, 0))
	}},
	{"strncpy", func(g *Gen) Call {
		s, max := g.Word(), g.IntN(32)
		out := padded(nil, 32)
		clear(out[:max])
		copy(out[:max], s)
		return call(changed(padded(nil, 32), out), s, max).gives(Pointer(0, 0))
	}},
	{"strlcpy", func(g *Gen) Call {
		s, size := g.Word(), g.IntN(32)
		return call(out(truncated(s, size), 32), s, size).gives(U64(len(s)))
	}},
	{"strcat", func(g *Gen) Call {
		a, b := g.Word(), g.Word()
		return call(changed(padded(cstr(a), 64), padded(cstr(a+b), 64)), b).gives(Pointer(0, 0))
	}},
	{"strncat", func(g *Gen) Call {
		a, b, max := g.Word(), g.Word(), g.IntN(24)
		if max == 0 {
			max = 1
		}
		return call(changed(padded(cstr(a), 64), padded(cstr(a+b[:min(len(b), max)]), 64)), b, max).gives(Pointer(0, 0))
	}},
	{"strlcat", func(g *Gen) Call {
		a, b := g.Word(), g.Word()
		size := len(a) + 1 + g.IntN(24) // the kernel forbids a size within the first string
		return call(changed(padded(cstr(a), 64), padded(truncated(a+b, size), 64)), b, size).gives(U64(len(a) + len(b)))
	}},
	{"strcmp", func(g *Gen) Call {
		a, b := g.Word(), g.Word()
		if g.IntN(3) == 0 {
			b = a
		}
		return call(a, b).gives(I32(strings.Compare(a, b)))
	}},
	{"strncmp", func(g *Gen) Call {
		a, b, max := g.Word(), g.Word(), g.IntN(24)
		return call(a, b, max).gives(I32(strings.Compare(a[:min(len(a), max)], b[:min(len(b), max)])))
	}},
	{"strcasecmp", func(g *Gen) Call {
		a, b := g.Word(), g.Word()
		if g.IntN(3) == 0 {
			b = strings.ToUpper(a)
		}
		return call(a, b).gives(I32(foldDiff(a, b)))
	}},
	{"strncasecmp", func(g *Gen) Call {
		a, b, max := g.Word(), g.Word(), g.IntN(24)
		want := foldDiff(a[:min(len(a), max)], b[:min(len(b), max)])
		if i := min(len(a), len(b)); want != 0 && i < max && foldDiff(a[:i], b[:i]) == 0 {
			want = int(cstr(a)[i]) - int(cstr(b)[i]) // the character against a NUL keeps its case
		}
		return call(a, b, max).gives(I32(want))
	}},
	{"strchr", func(g *Gen) Call {
		s, c := g.Word(), g.letter()
		return call(s, c).gives(PointerOrNull(0, strings.IndexByte(s+"\x00", c)))
	}},
	{"strrchr", func(g *Gen) Call {
		s, c := g.Word(), g.letter()
		return call(s, c).gives(PointerOrNull(0, strings.LastIndexByte(s+"\x00", c)))
	}},
	{"strchrnul", func(g *Gen) Call {
		s, c := g.Word(), g.letter()
		i := strings.IndexByte(s, c)
		if i < 0 {
			i = len(s)
		}
		return call(s, c).gives(Pointer(0, i))
	}},
	{"strnchr", func(g *Gen) Call {
		s, c, max := g.Word(), g.letter(), g.IntN(24)
		i := strings.IndexByte(s+"\x00", c)
		if i >= max {
			i = -1
		}
		return call(s, max, c).gives(PointerOrNull(0, i))
	}},
	{"strspn", func(g *Gen) Call {
		s, set := g.Word(), g.Text("abc.", 1+g.IntN(3))
		return call(s, set).gives(U64(len(s) - len(strings.TrimLeft(s, set))))
	}},
	{"strcspn", func(g *Gen) Call {
		s, set := g.Word(), g.Text("abc.", 1+g.IntN(3))
		i := strings.IndexAny(s, set)
		if i < 0 {
			i = len(s)
		}
		return call(s, set).gives(U64(i))
	}},
	{"strpbrk", func(g *Gen) Call {
		s, set := g.Word(), g.Text("abc.", 1+g.IntN(3))
		return call(s, set).gives(PointerOrNull(0, strings.IndexAny(s, set)))
	}},
	{"strsep", func(g *Gen) Call {
		s, set := g.Word(), g.Text(" .", 1+g.IntN(2))
		out, next := cstr(s), Null
		if i := strings.IndexAny(s, set); i >= 0 {
			out[i] = 0
			next = Ref{2, i + 1}
		}
		return call(moved(at(2), next), set).with(changed(cstr(s), out)).gives(Pointer(2, 0))
	}},
	{"strstr", func(g *Gen) Call {
		s, sub := g.Text("ab", g.IntN(24)), g.Text("ab", g.IntN(4))
		return call(s, sub).gives(PointerOrNull(0, strings.Index(s, sub)))
	}},
	{"strnstr", func(g *Gen) Call {
		s, sub := g.Text("ab", 8+g.IntN(24)), g.Text("ab", g.IntN(4))
		max := g.IntN(len(s) + 1)
		return call(s, sub, max).gives(PointerOrNull(0, strings.Index(s[:max], sub)))
	}},
	{"skip_spaces", func(g *Gen) Call {
		s := g.Text(" \t\nab", g.IntN(12))
		return call(s).gives(Pointer(0, len(s)-len(strings.TrimLeft(s, " \t\n"))))
	}},
	{"strim", func(g *Gen) Call {
		s := g.Text(" \tab", g.IntN(12))
		end := len(strings.TrimRight(s, " \t"))
		out := cstr(s)
		out[end] = 0
		left := len(s[:end]) - len(strings.TrimLeft(s[:end], " \t"))
		return call(changed(cstr(s), out)).gives(Pointer(0, left))
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
		return call(as, bs).gives(Bool(a == b))
	}},
	{"match_string", func(g *Gen) Call {
		list := Buf{In: make([]byte, 32)}
		var strs []Buf
		want, key := -22, g.Text("ab", 2)
		for i := range 4 {
			s := g.Text("ab", 2)
			if s == key && want < 0 {
				want = i
			}
			list.Ptrs = append(list.Ptrs, Ptr{8 * i, at(2 + i)})
			strs = append(strs, in(cstr(s)))
		}
		return call(list, 4, key).with(strs...).gives(I32(want))
	}},
	{"stpcpy", func(g *Gen) Call {
		s := g.Word()
		return call(out(cstr(s), 32), s).gives(Pointer(0, len(s)))
	}},
	{"glob_match", func(g *Gen) Call {
		pat, s := g.Text("ab?*", 1+g.IntN(6)), g.Text("ab", g.IntN(6))
		return call(pat, s).gives(Bool(globMatch(pat, s)))
	}},
	{"string_unescape", func(g *Gen) Call {
		plain := g.Text("ab\n\t\\", g.IntN(10))
		escaped := strings.NewReplacer("\n", `\n`, "\t", `\t`, `\`, `\\`).Replace(plain)
		const space, special = 1, 8
		return call(escaped, out(cstr(plain), 64), 0, space|special).gives(I32(len(plain)))
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
		return call(padded([]byte(a), 40), padded([]byte(b), 40), len(a)).gives(I32(want))
	}},
	{"bcmp", func(g *Gen) Call {
		a := g.Bytes(1 + g.IntN(30))
		return call(a, bytes.Clone(a), len(a)).gives(I32(0))
	}},
	{"memscan", func(g *Gen) Call {
		b, c := g.Bytes(1+g.IntN(40)), g.Bytes(1)[0]
		i := bytes.IndexByte(b, c)
		if i < 0 {
			i = len(b)
		}
		return call(b, c, len(b)).gives(Pointer(0, i))
	}},
	{"memchr", func(g *Gen) Call {
		s, c := g.Text("abcd", 1+g.IntN(40)), g.letter()
		return call([]byte(s), c, len(s)).gives(PointerOrNull(0, strings.IndexByte(s, c)))
	}},
	{"memchr_inv", func(g *Gen) Call {
		b := bytes.Repeat([]byte{'x'}, 1+g.IntN(60))
		want := -1
		if g.IntN(3) > 0 {
			want = g.IntN(len(b))
			b[want] = 'y'
		}
		return call(b, 'x', len(b)).gives(PointerOrNull(0, want))
	}},
	{"memcpy_and_pad", func(g *Gen) Call {
		src, size, pad := g.Bytes(g.IntN(20)), g.IntN(32), g.Bytes(1)[0]
		out := padded(nil, 32)
		for i := range size {
			out[i] = pad
		}
		copy(out[:size], src)
		return call(changed(padded(nil, 32), out), size, padded(src, 32), len(src), pad)
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
		return call(a, b, len(a)).gives(U64(want))
	}},
	{"__crypto_xor", func(g *Gen) Call {
		a := g.Bytes(1 + g.IntN(40))
		b := g.Bytes(len(a))
		out := make([]byte, len(a))
		for i := range a {
			out[i] = a[i] ^ b[i]
		}
		return call(zeroed(out), a, b, len(a))
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
		return call(changed(b, out), len(b))
	}},
}

func copyFunc(name string) Func {
	return Func{name, func(g *Gen) Call {
		b := g.Bytes(g.IntN(300))
		return call(out(b, 320), padded(b, 320), len(b)).gives(Pointer(0, 0))
	}}
}

func moveFunc(name string) Func {
	return Func{name, func(g *Gen) Call {
		b := g.Bytes(320)
		size := g.IntN(300)
		from, to := g.IntN(20), g.IntN(20)
		out := bytes.Clone(b)
		copy(out[to:to+size], b[from:from+size])
		return call(within{changed(b, out), to}, Ref{0, from}, size).gives(Pointer(0, to))
	}}
}

func setFunc(name string) Func {
	return Func{name, func(g *Gen) Call {
		size, c := g.IntN(300), g.Bytes(1)[0]
		out := padded(bytes.Repeat([]byte{c}, size), 320)
		return call(changed(padded(nil, 320), out), c, size).gives(Pointer(0, 0))
	}}
}
