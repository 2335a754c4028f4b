package stap

import "kprobelab/internal/script"

// writes enters the functions that change memory, which need -g.
func writes() {
	for _, side := range []struct {
		name string
		user bool
	}{{"kernel", false}, {"user", true}} {
		set := "set_" + side.name + "_"
		for _, w := range []struct {
			name string
			size int
		}{{"char", 1}, {"short", 2}, {"int", 4}, {"long", 8}, {"pointer", 8}} {
			changes(side.name, set+w.name+"(long, long)", "with -g, writes a number to the "+side.name+"'s memory", func(s System, a *script.Args) (string, bool) {
				var b [8]byte
				for i := range b {
					b[i] = byte(a.Int[1] >> (8 * i))
				}
				return w.name, s.Write(uint64(a.Int[0]), b[:w.size], side.user)
			})
		}
		changes(side.name, set+"string(long, string)", "with -g, writes a string with its NUL to the "+side.name+"'s memory", func(s System, a *script.Args) (string, bool) {
			return "string", writeText(s, uint64(a.Int[0]), a.Text[1], side.user)
		})
		changes(side.name, set+"string_n(long, long, string)", "with -g, writes so many characters of a string, and a NUL", func(s System, a *script.Args) (string, bool) {
			text := a.Text[2]
			return "string", writeText(s, uint64(a.Int[0]), text[:min(max(a.Int[1], 0), int64(len(text)))], side.user)
		})
	}
}

// changes defines a function that writes memory. write returns a word for the written data, and false at a fault.
func changes(side, signature, doc string, write func(s System, a *script.Args) (what string, ok bool)) {
	define(long, signature, doc, builtin{guru: true, number: func(s System, t *script.Thread, a *script.Args) int64 {
		if what, ok := write(s, a); !ok {
			t.Failf(a.Near, "%s %s copy fault at %#x", side, what, uint64(a.Int[0]))
		}
		return 0
	}})
}

var nul = []byte{0}

func writeText(s System, at uint64, text []byte, user bool) bool {
	return (len(text) == 0 || s.Write(at, text, user)) && s.Write(at+uint64(len(text)), nul, user)
}
