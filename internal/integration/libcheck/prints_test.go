package libcheck

import (
	"fmt"
	"net"
	"strings"
)

// printFuncs are the printf family of lib/vsprintf.c.
var printFuncs = []Func{
	{"snprintf", func(g *Gen) Call {
		format, args, text := g.format()
		size := 1 + g.IntN(80)
		return call(append([]any{out(truncated(text, size), 400), size, format}, args...)...).gives(I32(len(text)))
	}},
	{"scnprintf", func(g *Gen) Call {
		format, args, text := g.format()
		size := 1 + g.IntN(80)
		return call(append([]any{out(truncated(text, size), 400), size, format}, args...)...).gives(I32(min(len(text), size-1)))
	}},
	{"sprintf", func(g *Gen) Call {
		format, args, text := g.format()
		return call(append([]any{out(cstr(text), 400), format}, args...)...).gives(I32(len(text)))
	}},
	{"sscanf", func(g *Gen) Call {
		a, b := g.Uint32()>>1, g.Uint32()
		s := fmt.Sprintf("%d:%x", a, b)
		return call(s, "%d:%x", zeroed(le.AppendUint32(nil, a)), zeroed(le.AppendUint32(nil, b))).gives(I32(2))
	}},
	{"seq_buf_puts", func(g *Gen) Call {
		s := g.Word()
		return seqBuf(cstr(s), len(s), s)
	}},
	{"seq_buf_putc", func(g *Gen) Call {
		c := g.Bytes(1)
		return seqBuf(c, 1, c[0])
	}},
	{"seq_buf_putmem", func(g *Gen) Call {
		b := g.Bytes(1 + g.IntN(20))
		return seqBuf(b, len(b), b, len(b))
	}},
}

// format makes a format string with up to four conversions, their arguments
// and the text that comes of them.
func (g *Gen) format() (format string, args []any, text string) {
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
			arg = s
		}
		format += plain + verb
		text += strings.ReplaceAll(plain, "%%", "%") + shown
		args = append(args, arg)
	}
	return format, args, text
}

// seqBuf is a call on a struct seq_buf {buffer, size, len} of 32 bytes that
// begins empty and ends with so many bytes of content. The buffer it points to
// is the last one.
func seqBuf(content []byte, length int, args ...any) Call {
	c := call(append([]any{changed(words([]uint64{0, 64, 0, 0}), words([]uint64{0, 64, n(length), 0}))}, args...)...)
	c.Bufs[0].Ptrs = []Ptr{{0, at(len(c.Bufs))}}
	return c.with(out(content, 64)).gives(I32(0))
}

// networkFuncs are net/core/utils.c and lib/net_utils.c.
var networkFuncs = []Func{
	{"in4_pton", func(g *Gen) Call {
		ip := net.IP(g.Bytes(4))
		s := ip.String()
		return call(s, len(s), zeroed(ip), ^uint64(0), Null).gives(I32(1))
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
		return call(s, len(s), zeroed(ip), ^uint64(0), Null).gives(I32(1))
	}},
	{"mac_pton", func(g *Gen) Call {
		mac := net.HardwareAddr(g.Bytes(6))
		return call(mac.String(), zeroed(mac)).gives(Bool(true))
	}},
}

// parseFuncs are lib/cmdline.c, lib/uuid.c and lib/parser.c.
var parseFuncs = []Func{
	{"uuid_parse", func(g *Gen) Call {
		b := g.Bytes(16)
		return call(uuidText(b), zeroed(b)).gives(I32(0))
	}},
	{"guid_parse", func(g *Gen) Call {
		b := g.Bytes(16)
		text := uuidText([]byte{
			b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15],
		})
		return call(text, zeroed(b)).gives(I32(0))
	}},
	{"uuid_is_valid", func(g *Gen) Call {
		s := []byte(uuidText(g.Bytes(16)))
		valid := g.IntN(2) == 0
		if !valid {
			s[g.IntN(len(s))] = 'x'
		}
		return call(string(s)).gives(Bool(valid))
	}},
	{"parse_option_str", func(g *Gen) Call {
		option := g.Text("ab", 2)
		var list []string
		found := false
		for range g.IntN(4) {
			list = append(list, g.Text("ab", 1+g.IntN(3)))
			found = found || list[len(list)-1] == option
		}
		return call(strings.Join(list, ","), option).gives(Bool(found))
	}},
}

func uuidText(b []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
