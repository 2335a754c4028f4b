package libcheck

import (
	"fmt"
	"net"
	"strings"
)

// printFuncs are the printf family of lib/vsprintf.c.
var printFuncs = []Func{
	{"snprintf", func(g *Gen) Call {
		format, args, bufs, text := g.format()
		size := 1 + g.IntN(80)
		return Call{
			Args: append([]any{at(0), n(size), at(1)}, args...),
			Bufs: append([]Buf{{In: padded(nil, 400), Out: padded(truncated(text, size), 400)}, in(cstr(format))}, bufs...),
			Want: I32(len(text)),
		}
	}},
	{"scnprintf", func(g *Gen) Call {
		format, args, bufs, text := g.format()
		size := 1 + g.IntN(80)
		return Call{
			Args: append([]any{at(0), n(size), at(1)}, args...),
			Bufs: append([]Buf{{In: padded(nil, 400), Out: padded(truncated(text, size), 400)}, in(cstr(format))}, bufs...),
			Want: I32(min(len(text), size-1)),
		}
	}},
	{"sprintf", func(g *Gen) Call {
		format, args, bufs, text := g.format()
		return Call{
			Args: append([]any{at(0), at(1)}, args...),
			Bufs: append([]Buf{{In: padded(nil, 400), Out: padded(cstr(text), 400)}, in(cstr(format))}, bufs...),
			Want: I32(len(text)),
		}
	}},
	{"sscanf", func(g *Gen) Call {
		a, b := g.Uint32()>>1, g.Uint32()
		s := fmt.Sprintf("%d:%x", a, b)
		return Call{
			Args: []any{at(0), at(1), at(2), at(3)},
			Bufs: []Buf{
				in(cstr(s)), in(cstr("%d:%x")),
				{In: make([]byte, 4), Out: le.AppendUint32(nil, a)}, {In: make([]byte, 4), Out: le.AppendUint32(nil, b)},
			},
			Want: I32(2),
		}
	}},
	{"seq_buf_puts", func(g *Gen) Call {
		s := g.Word()
		return seqBuf(g, []any{at(2)}, cstr(s), len(s), in(cstr(s)))
	}},
	{"seq_buf_putc", func(g *Gen) Call {
		c := g.Bytes(1)
		return seqBuf(g, []any{uint64(c[0])}, c, 1)
	}},
	{"seq_buf_putmem", func(g *Gen) Call {
		b := g.Bytes(1 + g.IntN(20))
		return seqBuf(g, []any{at(2), n(len(b))}, b, len(b), in(b))
	}},
}

// format makes a format string with up to four conversions, their arguments
// (strings in buffers from 2 on) and the text that comes of them.
func (g *Gen) format() (format string, args []any, bufs []Buf, text string) {
	for range 1 + g.IntN(4) {
		plain := g.Text("ab %", 1)
		if plain == "%" {
			plain = "%%"
		}
		v := g.Number()
		var verb, shown string
		var arg any = v
		switch g.IntN(8) {
		case 0:
			verb, shown = "%d", fmt.Sprintf("%d", int32(v))
		case 1:
			verb, shown = "%llu", fmt.Sprintf("%d", v)
		case 2:
			verb, shown = "%#lx", fmt.Sprintf("%#x", v)
		case 3:
			verb, shown = "%-12ld|", fmt.Sprintf("%-12d|", int64(v))
		case 4:
			verb, shown = "%08x", fmt.Sprintf("%08x", uint32(v))
		case 5:
			verb, shown = "%c", string(rune('a'+v%26))
			arg = 'a' + v%26
		case 6:
			verb, shown = "%+hd", fmt.Sprintf("%+d", int16(v))
		default:
			s := g.Text("xyz", g.IntN(12))
			verb, shown = "%.7s;", s[:min(7, len(s))]+";"
			arg = at(2 + len(bufs))
			bufs = append(bufs, in(cstr(s)))
		}
		format += plain + verb
		text += strings.ReplaceAll(plain, "%%", "%") + shown
		args = append(args, arg)
	}
	return format, args, bufs, text
}

// seqBuf is a call on a struct seq_buf {buffer, size, len} of 32 bytes that
// begins empty: buffer 0 is the struct, buffer 1 its memory.
func seqBuf(_ *Gen, args []any, content []byte, length int, more ...Buf) Call {
	header := []Ptr{{0, at(1)}}
	return Call{
		Args: append([]any{at(0)}, args...),
		Bufs: append([]Buf{
			{In: words([]uint64{0, 64, 0, 0}), Out: words([]uint64{0, 64, n(length), 0}), Ptrs: header},
			{In: padded(nil, 64), Out: padded(content, 64)},
		}, more...),
		Want: I32(0),
	}
}

// networkFuncs are net/core/utils.c and lib/net_utils.c.
var networkFuncs = []Func{
	{"in4_pton", func(g *Gen) Call {
		ip := net.IP(g.Bytes(4))
		s := ip.String()
		return Call{
			Args: []any{at(0), n(len(s)), at(1), ^uint64(0), Null},
			Bufs: []Buf{in(cstr(s)), {In: make([]byte, 4), Out: ip}}, Want: I32(1),
		}
	}},
	{"in6_pton", func(g *Gen) Call {
		ip := net.IP(g.Bytes(16))
		for i := range ip {
			if g.IntN(2) == 0 {
				ip[i] = 0
			}
		}
		ip[0] = 0x20 // no IPv4-mapped address, which prints otherwise
		s := ip.String()
		return Call{
			Args: []any{at(0), n(len(s)), at(1), ^uint64(0), Null},
			Bufs: []Buf{in(cstr(s)), {In: make([]byte, 16), Out: ip}}, Want: I32(1),
		}
	}},
	{"mac_pton", func(g *Gen) Call {
		mac := net.HardwareAddr(g.Bytes(6))
		return Call{
			Args: []any{at(0), at(1)}, Bufs: []Buf{in(cstr(mac.String())), {In: make([]byte, 6), Out: mac}}, Want: Bool(true),
		}
	}},
}

// parseFuncs are lib/cmdline.c, lib/uuid.c and lib/parser.c.
var parseFuncs = []Func{
	{"uuid_parse", func(g *Gen) Call {
		b := g.Bytes(16)
		return Call{
			Args: []any{at(0), at(1)}, Bufs: []Buf{in(cstr(uuidText(b))), {In: make([]byte, 16), Out: b}}, Want: I32(0),
		}
	}},
	{"guid_parse", func(g *Gen) Call {
		b := g.Bytes(16)
		text := uuidText([]byte{
			b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15],
		})
		return Call{
			Args: []any{at(0), at(1)}, Bufs: []Buf{in(cstr(text)), {In: make([]byte, 16), Out: b}}, Want: I32(0),
		}
	}},
	{"uuid_is_valid", func(g *Gen) Call {
		s := []byte(uuidText(g.Bytes(16)))
		valid := g.IntN(2) == 0
		if !valid {
			s[g.IntN(len(s))] = 'x'
		}
		return Call{Args: []any{at(0)}, Bufs: []Buf{in(cstr(string(s)))}, Want: Bool(valid)}
	}},
	{"parse_option_str", func(g *Gen) Call {
		option := g.Text("ab", 2)
		var list []string
		found := false
		for range g.IntN(4) {
			list = append(list, g.Text("ab", 1+g.IntN(3)))
			found = found || list[len(list)-1] == option
		}
		return Call{
			Args: []any{at(0), at(1)}, Bufs: []Buf{in(cstr(strings.Join(list, ","))), in(cstr(option))}, Want: Bool(found),
		}
	}},
}

func uuidText(b []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
