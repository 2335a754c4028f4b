package compare

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// normalOperand is a register, a number or memory.
func normalOperand(o string) string {
	o = strings.TrimPrefix(strings.TrimSpace(o), "*")
	o, decorators := cutDecorators(o)
	switch {
	case strings.ContainsAny(o, "("):
		return gnuMemory(o) + decorators
	case strings.Contains(o, "["):
		return intelMemory(o) + decorators
	}
	if n, ok := number(strings.TrimPrefix(o, "$")); ok {
		return n + decorators
	}
	o = strings.ReplaceAll(o, "%", "")
	if n, ok := strings.CutPrefix(o, "db"); ok { // debug registers
		o = "dr" + n
	}
	if o == "st" {
		o = "st(0)"
	}
	if n, ok := strings.CutPrefix(o, "st"); ok && len(n) == 1 {
		o = "st(" + n + ")"
	}
	if seg, at, ok := strings.Cut(o, ":"); ok && len(seg) == 2 { // an absolute address
		if n, ok := number(at); ok {
			return segment(seg) + n + decorators
		}
	}
	return o + decorators
}

// cutDecorators splits off {%k1}{z} and {1to8}.
func cutDecorators(o string) (operand, decorators string) {
	if i := strings.IndexByte(o, '{'); i > 0 {
		return strings.TrimSpace(o[:i]), strings.NewReplacer(" ", "", "%", "").Replace(o[i:])
	}
	return o, ""
}

// number is a number of any base and sign in the normal form; false for another text.
func number(s string) (string, bool) {
	s = strings.TrimPrefix(s, "+")
	t, negative := strings.CutPrefix(s, "-")
	v, ok := unsigned(t)
	if !ok {
		return "", false
	}
	if negative {
		v = -v
	}
	for _, bits := range []int{8, 16, 32} {
		if v>>bits == 0 && v>>(bits-1) == 1 {
			return strconv.FormatInt(int64(v<<(64-bits))>>(64-bits), 10), true
		}
	}
	return strconv.FormatInt(int64(v), 10), true
}

func unsigned(s string) (uint64, bool) {
	v, err := strconv.ParseUint(s, 0, 64)
	if h, ok := strings.CutSuffix(s, "h"); err != nil && ok && h != "" && h[0] <= '9' { // not ah
		v, err = strconv.ParseUint(h, 16, 64)
	}
	return v, err == nil
}

// displacement is a number of 64 bits: its sign decides the address.
func displacement(s string) (string, bool) {
	t, negative := strings.CutPrefix(strings.TrimPrefix(s, "+"), "-")
	v, ok := unsigned(t)
	if negative {
		v = -v
	}
	return strconv.FormatInt(int64(v), 10), ok
}

// segment keeps the two that have an address of their own.
func segment(name string) string {
	if name == "fs" || name == "gs" {
		return name + ":"
	}
	return ""
}

// memoryText is seg:disp(base,index,scale).
func memoryText(seg, disp, base, index, scale string) string {
	if narrow(base) || narrow(index) { // addresses of 32 bits wrap round
		if v, err := strconv.ParseInt(disp, 10, 64); err == nil {
			disp = strconv.FormatInt(int64(int32(v)), 10)
		}
	}
	if disp == "0" {
		disp = ""
	}
	if index == "riz" || index == "eiz" {
		index, scale = "", ""
	}
	if scale == "1" {
		scale = ""
	}
	text := base
	if index != "" {
		text += "," + index
		if scale != "" {
			text += "," + scale
		}
	}
	if text == "" { // an address, in the same form as a number
		n, _ := number(cmp.Or(disp, "0"))
		return segment(seg) + n
	}
	return fmt.Sprintf("%s%s(%s)", segment(seg), disp, text)
}

// narrow: a register of 32 bits that an address has.
func narrow(name string) bool {
	return strings.HasPrefix(name, "e") || strings.HasPrefix(name, "r") && strings.HasSuffix(name, "d")
}

func gnuMemory(o string) string {
	o = strings.ReplaceAll(o, "%", "")
	if strings.HasPrefix(o, "st(") {
		return o
	}
	seg, rest, ok := strings.Cut(o, ":")
	if !ok {
		seg, rest = "", o
	}
	head, inside, _ := strings.Cut(rest, "(")
	disp := head
	if n, ok := displacement(head); ok {
		disp = n
	}
	parts := append(strings.Split(strings.TrimSuffix(strings.TrimSpace(inside), ")"), ","), "", "")
	return memoryText(seg, disp, strings.TrimSpace(parts[0]), strings.TrimSpace(parts[1]), strings.TrimSpace(parts[2]))
}

func intelMemory(o string) string {
	head, rest, _ := strings.Cut(o, "[")
	inside, _, _ := strings.Cut(rest, "]")
	seg := ""
	for _, f := range strings.Fields(head) {
		if s, ok := strings.CutSuffix(f, ":"); ok {
			seg = s
		}
	}
	if s, more, ok := strings.Cut(inside, ":"); ok {
		seg, inside = s, more
	}
	var disp, base, index, scale string
	inside = strings.ReplaceAll(strings.ReplaceAll(inside, " ", ""), "-", "+-")
	for _, part := range strings.Split(inside, "+") {
		name, times, scaled := strings.Cut(part, "*")
		if n, ok := displacement(part); ok {
			disp = n
		} else if scaled {
			if _, err := strconv.Atoi(name); err == nil {
				name, times = times, name
			}
			index, scale = name, times
		} else if base == "" {
			base = part
		} else {
			index = part
		}
	}
	return memoryText(seg, disp, base, index, scale)
}
