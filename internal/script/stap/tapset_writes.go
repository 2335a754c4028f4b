package stap

import "kprobelab/internal/script"

// writes enters the functions that change memory, which need -g.
func writes() {
	for _, w := range []struct {
		name string
		size int
	}{{"char", 1}, {"short", 2}, {"int", 4}, {"long", 8}, {"pointer", 8}} {
		changes("set_kernel_"+w.name+"(long, long)", "with -g, writes a number to memory", func(s System, a *script.Args) (string, bool) {
			var b [8]byte
			for i := range b {
				b[i] = byte(a.Int[1] >> (8 * i))
			}
			return w.name, s.Write(uint64(a.Int[0]), b[:w.size], false)
		})
	}
	changes("set_kernel_string(long, string)", "with -g, writes a string with its NUL to memory", func(s System, a *script.Args) (string, bool) {
		return "string", writeText(s, uint64(a.Int[0]), a.Text[1])
	})
	changes("set_kernel_string_n(long, long, string)", "with -g, writes so many characters of a string, and a NUL", func(s System, a *script.Args) (string, bool) {
		text := a.Text[2]
		return "string", writeText(s, uint64(a.Int[0]), text[:min(max(a.Int[1], 0), int64(len(text)))])
	})
}

// changes defines a function that writes memory. write returns a word for the written data, and false at a fault.
func changes(signature, doc string, write func(s System, a *script.Args) (what string, ok bool)) {
	define(long, signature, doc, builtin{guru: true, number: func(s System, t *script.Thread, a *script.Args) int64 {
		if what, ok := write(s, a); !ok {
			t.Failf(a.Near, "kernel %s copy fault at %#x", what, uint64(a.Int[0]))
		}
		return 0
	}})
}

var nul = []byte{0}

func writeText(s System, at uint64, text []byte) bool {
	return (len(text) == 0 || s.Write(at, text, false)) && s.Write(at+uint64(len(text)), nul, false)
}
