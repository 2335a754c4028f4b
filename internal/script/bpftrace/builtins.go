package bpftrace

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strconv"

	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
)

func system(t *script.Thread) host.System {
	s, _ := t.Context.(host.System)
	if s == nil {
		t.Fail("", "there is no kernel here")
	}
	return s
}

func call(b *script.Builtin, args ...script.Expr) script.Expr {
	return script.CallBuiltin{Builtin: b, Args: args}
}

// number and textual make functions of the host.
func number(name string, params []script.Type, fn func(t *script.Thread, a *script.Args) int64) *script.Builtin {
	return &script.Builtin{Name: name, Params: params, Result: script.Int, Int: fn}
}

func textual(name string, params []script.Type, fn func(t *script.Thread, a *script.Args, dst []byte) []byte) *script.Builtin {
	return &script.Builtin{Name: name, Params: params, Result: script.String, Text: fn}
}

var (
	ints  = []script.Type{script.Int, script.Int, script.Int}
	texts = []script.Type{script.String, script.String, script.Int}
)

func simple(name string, fn func(s host.System) int64) *script.Builtin {
	return number(name, nil, func(t *script.Thread, _ *script.Args) int64 { return fn(system(t)) })
}

func task(what host.TaskWord) func(host.System) int64 {
	return func(s host.System) int64 { return s.Task(what) }
}

// words that are values.
var builtinWords = map[string]*script.Builtin{
	"pid":     simple("pid", task(host.PID)),
	"tid":     simple("tid", task(host.TID)),
	"uid":     simple("uid", task(host.UID)),
	"gid":     simple("gid", task(host.GID)),
	"curtask": simple("curtask", task(host.TaskStruct)),
	"cpu":     simple("cpu", func(s host.System) int64 { return int64(s.CPU()) }),
	"nsecs":   simple("nsecs", func(s host.System) int64 { return int64(s.Now()) }),
	"jiffies": simple("jiffies", func(s host.System) int64 { return int64(s.Now() / (1e9 / uint64(max(s.HZ(), 1)))) }),
	"cpid":    simple("cpid", host.System.Target),
	"cgroup":  simple("cgroup", func(host.System) int64 { return 1 }),
	"numaid":  simple("numaid", func(host.System) int64 { return 0 }),
	"func":    simple("func", function),
}

var (
	wallCode = simple("nsecs", func(s host.System) int64 { return int64(s.Wall()) })
	commCode = textual("comm", nil, func(t *script.Thread, _ *script.Args, dst []byte) []byte { return system(t).Comm(dst) })
	nameCode = textual("probe", nil, func(t *script.Thread, _ *script.Args, dst []byte) []byte {
		if p := system(t).Probe(); p != nil {
			dst = append(dst, p.Point...)
		}
		return dst
	})
	exitCode = number("exit", ints[:1], func(t *script.Thread, a *script.Args) int64 { system(t).Exit(a.Int[0]); return 0 })

	strCode = textual("str", ints[:3], func(t *script.Thread, a *script.Args, dst []byte) []byte {
		return readString(system(t), script.Space(a.Int[2]), uint64(a.Int[0]), clampSize(t, a.Int[1]), dst)
	})
	bytesCode = textual("bytes", ints[:3], func(t *script.Thread, a *script.Args, dst []byte) []byte {
		n := clampSize(t, a.Int[1])
		from := len(dst)
		dst = dst[:from+n]
		if !script.Space(a.Int[2]).Read(system(t), uint64(a.Int[0]), dst[from:]) {
			clear(dst[from:])
		}
		return dst
	})
	cutCode = textual("cut", []script.Type{script.String, script.Int}, func(_ *script.Thread, a *script.Args, dst []byte) []byte {
		s := a.Text[0]
		s = s[:min(int64(len(s)), max(a.Int[1], 0))]
		if i := bytes.IndexByte(s, 0); i >= 0 {
			s = s[:i]
		}
		return append(dst, s...)
	})
	// padCode makes a buffer of a string's bytes.
	padCode = textual("buf", []script.Type{script.String, script.Int}, func(t *script.Thread, a *script.Args, dst []byte) []byte {
		n := clampSize(t, a.Int[1])
		s := a.Text[0]
		dst = append(dst, s[:min(len(s), n)]...)
		for range n - len(s) {
			dst = append(dst, 0)
		}
		return dst
	})
	packCode = textual("pack", ints[:2], func(_ *script.Thread, a *script.Args, dst []byte) []byte {
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:], uint64(a.Int[0]))
		return append(dst, b[:min(max(a.Int[1], 0), 16)]...)
	})
	stackCode = textual("kstack", ints[:1], func(t *script.Thread, a *script.Args, dst []byte) []byte {
		return appendWords(dst, system(t).Callchain(false, min(int(a.Int[0]), (t.StringSize()-1)/8))...)
	})
	// userStackCode has the process first: its symbols are its own.
	userStackCode = textual("ustack", ints[:1], func(t *script.Thread, a *script.Args, dst []byte) []byte {
		s := system(t)
		dst = appendWords(dst, processOf(s))
		return appendWords(dst, s.Callchain(true, min(int(a.Int[0]), (t.StringSize()-1)/8-1))...)
	})
	// userSymbolCode has the process after the address: its symbols are its own.
	userSymbolCode = textual("usym", ints[:1], func(t *script.Thread, a *script.Args, dst []byte) []byte {
		return appendWords(dst, uint64(a.Int[0]), processOf(system(t)))
	})
	leastCode  = number("least", ints[:2], func(_ *script.Thread, a *script.Args) int64 { return int64(min(uint64(a.Int[0]), uint64(a.Int[1]))) })
	framesCode = number("len", texts[:1], func(_ *script.Thread, a *script.Args) int64 { return int64(len(a.Text[0]) / 8) })

	compareCode = number("strncmp", texts, func(_ *script.Thread, a *script.Args) int64 {
		cut := func(s []byte) []byte { return s[:min(int64(len(s)), max(a.Int[2], 0))] }
		return truth(!bytes.Equal(cut(a.Text[0]), cut(a.Text[1])))
	})
	containsCode = number("strcontains", texts[:2], func(_ *script.Thread, a *script.Args) int64 { return truth(bytes.Contains(a.Text[0], a.Text[1])) })
	swapCode     = number("bswap", ints[:2], func(_ *script.Thread, a *script.Args) int64 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(a.Int[0]))
		return int64(binary.BigEndian.Uint64(b[:]) >> (64 - 8*a.Int[1]))
	})
	inetCode = textual("ntop", []script.Type{script.String, script.Int}, func(_ *script.Thread, a *script.Args, dst []byte) []byte {
		b := a.Text[0]
		v6 := a.Int[1] == 10 || a.Int[1] == 0 && len(b) == 16
		if v6 && len(b) < 16 {
			b = append(make([]byte, 0, 16), b...)[:16] // the rest is zeros
		}
		switch {
		case v6:
			return netip.AddrFrom16([16]byte(b[:16])).AppendTo(dst)
		case !v6 && (a.Int[1] == 2 || a.Int[1] == 0) && len(b) >= 4:
			return netip.AddrFrom4([4]byte(b[:4])).AppendTo(dst)
		}
		return dst
	})
	macCode = textual("macaddr", texts[:1], func(_ *script.Thread, a *script.Args, dst []byte) []byte {
		const hex = "0123456789ABCDEF"
		for i := range 6 {
			c := byte(0)
			if i < len(a.Text[0]) {
				c = a.Text[0][i]
			}
			if i > 0 {
				dst = append(dst, ':')
			}
			dst = append(dst, hex[c>>4], hex[c&15])
		}
		return dst
	})
)

func appendWords(dst []byte, list ...uint64) []byte {
	for _, w := range list {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	return dst
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func clampSize(t *script.Thread, n int64) int { return int(min(max(n, 0), int64(t.StringSize()-1))) }

// readString reads up to a NUL, of at most n bytes with it. Where there is a fault before the NUL,
// nothing is read, as by BPF's helpers.
func readString(s host.System, space script.Space, addr uint64, n int, dst []byte) []byte {
	start := len(dst)
	n = max(n-1, 0)
	for n > 0 {
		part := min(n, int(4096-addr%4096), 64)
		from := len(dst)
		dst = dst[:from+part]
		if !space.Read(s, addr, dst[from:]) {
			return dst[:start]
		}
		if i := bytes.IndexByte(dst[from:], 0); i >= 0 {
			return dst[:from+i]
		}
		addr, n = addr+uint64(part), n-part
	}
	return dst
}

// symbolOf prints an address as its symbol, with the offset if that is asked for.
func symbolOf(t *script.Thread, addr uint64, offset bool, dst []byte) []byte {
	if s, ok := t.Context.(host.System); ok {
		if name, off, ok := s.Nearest(addr); ok {
			dst = append(dst, name...)
			if offset {
				dst = strconv.AppendUint(append(dst, '+'), off, 10)
			}
			return dst
		}
	}
	return hexText(addr, dst)
}

// hexText prints an address without a symbol, as C++ does.
func hexText(addr uint64, dst []byte) []byte {
	if addr == 0 {
		return append(dst, '0')
	}
	return strconv.AppendUint(append(dst, "0x"...), addr, 16)
}

// function returns the address of the probe, as bpf_get_func_ip does: the function's for a probe at its beginning.
// It returns 0 if the kernel hides the address (InProgram.Hidden).
func function(s host.System) int64 {
	if p := s.Probe(); p != nil && p.InProgram != nil && p.InProgram.Hidden {
		return 0
	}
	return int64(s.Address())
}
