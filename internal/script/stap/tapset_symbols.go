package stap

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"kprobelab/internal/script"
)

// symbolForm selects the parts of a symbol that symbolText prints.
type symbolForm uint8

const (
	nameOnly symbolForm = iota
	// simple prints the offset and the module, too.
	simple
	// data prints the offset, the module and the size, too.
	data
)

// symbolText prints an address as its symbol, or as a number if it has none.
func symbolText(s System, dst []byte, addr uint64, form symbolForm) []byte {
	name, module, off, size, ok := s.Symbol(addr)
	if !ok {
		return hexText(dst, addr)
	}
	if module == "" {
		module = "kernel"
	}
	dst = append(dst, name...)
	switch form {
	case simple:
		dst = fmt.Appendf(dst, "+%#x [%s]", off, module)
	case data:
		dst = fmt.Appendf(dst, "+%#x/%#x [%s]", off, size, module)
	}
	return dst
}

func hexText(dst []byte, v uint64) []byte { return strconv.AppendUint(append(dst, "0x"...), v, 16) }

// maxStack is the number of functions that each part of a backtrace may have (MAXBACKTRACE).
const maxStack = 20

// backtraceText writes the stack; one writes the text of an address. The addresses of the kernel's walk, which
// follow the exact ones, have the note " (inexact)".
func backtraceText(s System, dst []byte, one func(dst []byte, addr uint64, note string) []byte) []byte {
	frames, exact := s.Stack()
	for i, addr := range frames {
		switch {
		case i < min(exact, maxStack):
			dst = one(dst, addr, "")
		case i >= exact && i-exact < maxStack:
			dst = one(dst, addr, " (inexact)")
		}
	}
	return dst
}

// fullLine is a function of a stack on a line of its own.
func fullLine(s System) func(dst []byte, addr uint64, note string) []byte {
	return func(dst []byte, addr uint64, note string) []byte {
		dst = hexText(append(dst, ' '), addr)
		if _, _, _, _, ok := s.Symbol(addr); ok {
			dst = symbolText(s, append(dst, " : "...), addr, data)
		}
		return append(append(dst, note...), '\n')
	}
}

// hexStack is the stack's addresses, each with a space after it.
func hexStack(s System, dst []byte) []byte {
	return backtraceText(s, dst, func(dst []byte, addr uint64, _ string) []byte { return append(hexText(dst, addr), ' ') })
}

// nth is the nth function of the stack, or an error that names the level which was wanted.
func nth(s System, t *script.Thread, near string, n, wanted int64) uint64 {
	frames, exact := s.Stack()
	if n >= 0 && n < int64(min(exact, maxStack)) {
		return frames[n]
	}
	// stap has it from the text of the stack then, which is as long as a string.
	text := hexStack(s, nil)
	words := strings.Fields(string(text[:min(len(text), t.StringSize()-1)]))
	if n < 0 || n >= int64(len(words)) {
		t.Failf(near, "reached end of stack before unwinding to level %d", wanted)
	}
	return uint64(strtol(words[n], 16))
}

func symbols() {
	textual("symname(long)", "the symbol that has an address", func(s System, _ *script.Thread, a *script.Args, dst []byte) []byte {
		return symbolText(s, dst, uint64(a.Int[0]), nameOnly)
	})
	textual("symdata(long)", "the same with offset, size and module", func(s System, _ *script.Thread, a *script.Args, dst []byte) []byte {
		return symbolText(s, dst, uint64(a.Int[0]), data)
	})
	textual("probefunc()", "the function that is probed", func(s System, _ *script.Thread, _ *script.Args, dst []byte) []byte {
		if s.User() {
			return userSymbolText(s, dst, s.Address())
		}
		return symbolText(s, dst, hitAt(s), nameOnly)
	})
	textual("usymname(long)", "the function of the program that has an address", func(s System, _ *script.Thread, a *script.Args, dst []byte) []byte {
		return userSymbolText(s, dst, uint64(a.Int[0]))
	})
	num("uaddr()", "where the program is", func(s System, _ *script.Thread, _ *script.Args) int64 {
		if frames := s.Callchain(true, 1); len(frames) > 0 {
			return int64(frames[0])
		}
		return 0
	})
	num("stack(long)", "the nth address of the stack", func(s System, t *script.Thread, a *script.Args) int64 {
		return int64(nth(s, t, a.Near, a.Int[0], a.Int[0]))
	})
	num("print_backtrace()", "prints the functions that are being called", func(s System, t *script.Thread, _ *script.Args) int64 {
		var b []byte
		line := fullLine(s)
		if p := s.Probe(); p != nil && p.Kind == Return {
			b = append(line([]byte("Returning from: "), s.Address(), ""), "Returning to  : "...)
		}
		t.Print(backtraceText(s, b, line))
		return 0
	})
	textual("sprint_backtrace()", "the symbols of the functions that are being called", func(s System, _ *script.Thread, _ *script.Args, dst []byte) []byte {
		return backtraceText(s, dst, func(dst []byte, addr uint64, note string) []byte {
			if _, _, _, _, ok := s.Symbol(addr); !ok {
				note = ""
			}
			return append(append(symbolText(s, dst, addr, simple), note...), '\n')
		})
	})
	textual("backtrace()", "the addresses of the functions that are being called", func(s System, _ *script.Thread, _ *script.Args, dst []byte) []byte {
		return hexStack(s, dst)
	})
	textual("callers(long)", "who has called the function, so many levels; of -1 all", func(s System, t *script.Thread, a *script.Args, dst []byte) []byte {
		from, n := len(dst), a.Int[0]
		for i := int64(0); i <= n || n == -1; i++ {
			if frames, exact := s.Stack(); n == -1 && i >= int64(max(len(frames), exact)) {
				break
			}
			one := hexText(nil, nth(s, t, a.Near, i, n))
			if i > 0 {
				one = append([]byte{' '}, one...)
			}
			if len(dst)-from+len(one) > t.StringSize() {
				break
			}
			dst = append(dst, one...)
		}
		return dst
	})
	textual("caller()", "who has called the function", func(s System, t *script.Thread, a *script.Args, dst []byte) []byte {
		addr := nth(s, t, a.Near, 1, 1)
		return hexText(append(symbolText(s, dst, addr, nameOnly), ' '), addr)
	})
	num("caller_addr()", "the address that the function returns to", func(s System, t *script.Thread, a *script.Args) int64 {
		return int64(nth(s, t, a.Near, 1, 1))
	})
	for _, name := range []string{"print_stack", "print_syms"} {
		num(name+"(string)", "prints the symbols of addresses in text", func(s System, t *script.Thread, a *script.Args) int64 {
			for _, w := range bytes.Fields(a.Text[0]) {
				t.Print(append(symbolText(s, fmt.Appendf(nil, " %s : ", w), uint64(strtol(string(w), 16)), data), '\n'))
			}
			return 0
		})
	}
	for _, name := range []string{"sprint_syms", "sprint_stack"} {
		textual(name+"(string)", "the symbols of addresses in text", func(s System, t *script.Thread, a *script.Args, dst []byte) []byte {
			size := 0
			for _, w := range bytes.Fields(a.Text[0]) {
				line := append(symbolText(s, fmt.Appendf(nil, " %s : ", w), uint64(strtol(string(w), 16)), data), '\n')
				if size += min(len(line), t.StringSize()-1); size > t.StringSize() {
					break
				}
				dst = append(dst, line...)
			}
			return dst
		})
	}
	num("print_regs()", "prints the registers of the hit", func(s System, t *script.Thread, _ *script.Args) int64 {
		for i, r := range [...]string{"RAX", "RDX", "RCX", "RBX", "RSI", "RDI", "RBP", "RSP", "R08", "R09", "R10", "R11", "R12", "R13", "R14", "R15", "RIP"} {
			end := " "
			if i%3 == 2 || i == 16 {
				end = "\n"
			}
			t.Print(fmt.Appendf(nil, "%s: %016x%s", r, s.Register(i), end))
		}
		return 0
	})
}
