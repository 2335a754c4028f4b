package assemble

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"kprobelab/x86"
)

var (
	// listed is a line of objdump -d, of gdb's disassemble or of Compiler Explorer: an address, with a colon
	// or before bytes, and a place between angle brackets.
	listed = regexp.MustCompile(`^(?:=>)?\s*(?:0x)?([0-9a-f]{1,16})(?:\s+<[^<>]*>)?:(\s*)(.*)$`)
	column = regexp.MustCompile(`^([0-9a-f]{4,16})(\s+)((?:[0-9a-f]{2}(?:\s|$)).*)$`)
	// header is the line before a function's first one.
	header = regexp.MustCompile(`^[0-9a-f]{4,16}\s+<([^<>]+)>:$`)
	// pairs are bytes in hexadecimal before an instruction. No mnemonic is two hexadecimal digits.
	pairs = regexp.MustCompile(`^((?:[0-9a-f]{2}\s+)*[0-9a-f]{2})(?:\s+|$)`)
	// names are places that a listing has after an address.
	names = regexp.MustCompile(`\s*<[^<>]*>`)
	// title matches the lines of objdump and gdb around the code.
	title = regexp.MustCompile(`^(Disassembly of section |Dump of assembler code|End of assembler dump|.*:\s+file format )`)
)

// listing takes a line that a disassembler has printed. taken is false if it is another line; rest is the
// instruction to assemble. Bytes count more than the text beside them.
func (p *program) listing(number int, s string) (taken bool, rest string, err error) {
	s = strings.TrimSpace(s)
	if s == "..." || title.MatchString(s) {
		return true, "", nil
	}
	if m := header.FindStringSubmatch(s); m != nil {
		if p.function != "" && p.function != m[1] {
			return true, "", fmt.Errorf("these are several functions, %s and %s: take one", p.function, m[1])
		}
		p.function = m[1]
		return true, "", nil
	}
	m := listed.FindStringSubmatch(s)
	if m == nil {
		m = column.FindStringSubmatch(s)
	}
	if m == nil {
		bytes := pairs.FindStringSubmatch(s)
		if bytes == nil {
			return false, s, nil
		}
		return true, "", p.bytes(number, bytes[1])
	}
	at, err := strconv.ParseUint(m[1], 16, 64)
	bytes := pairs.FindStringSubmatch(m[3])
	if err != nil || bytes == nil && (m[3] == "" || !strings.Contains(m[2], "\t")) { // a label
		return false, s, nil
	}
	p.address(x86.Addr(at))
	if bytes != nil {
		if n := len(p.list); n > 0 && p.list[n-1].next != 0 && p.list[n-1].next != x86.Addr(at) {
			return true, "", fmt.Errorf("the code has a gap: %#x follows, not %#x", at, uint64(p.list[n-1].next))
		}
		if err := p.bytes(number, bytes[1]); err != nil {
			return true, "", err
		}
		last := p.list[len(p.list)-1]
		last.next = x86.Addr(at).Add(int64(len(last.code)))
		return true, "", nil
	}
	if _, twice := p.labels[m[1]]; !twice {
		p.labels[m[1]] = len(p.list)
	}
	return true, m[3], nil
}

// address notes the address that a listing has for the next instruction.
func (p *program) address(a x86.Addr) {
	if p.addresses == nil {
		p.addresses, p.first = map[x86.Addr]int{}, a
	}
	if _, twice := p.addresses[a]; !twice {
		p.addresses[a] = len(p.list)
	}
}

// bytes takes bytes as an instruction. It stays as it is, wherever it stands.
func (p *program) bytes(number int, text string) error {
	code, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err == nil {
		p.list = append(p.list, &line{number: number, code: code, fixed: true})
	}
	return err
}

// directive takes a line that begins with a point. Directives of debugging, alignment and symbols make no code
// here.
func (p *program) directive(number int, s string) error {
	name, rest, _ := strings.Cut(s, " ")
	p.compiled = true
	switch name {
	case ".text":
		p.data = false
	case ".section", ".pushsection":
		p.sections = append(p.sections, p.data)
		p.data = !strings.HasPrefix(strings.Trim(strings.TrimSpace(rest), `"`), ".text")
	case ".data", ".bss", ".rodata":
		p.data = true
	case ".previous", ".popsection":
		if n := len(p.sections); n > 0 {
			p.data, p.sections = p.sections[n-1], p.sections[:n-1]
		}
	}
	switch {
	case p.data:
	case name == ".byte":
		return p.data8(number, rest)
	case name == ".macro", name == ".rept", name == ".irp", name == ".if", name == ".ifdef", name == ".ifndef", name == ".include", name == ".incbin":
		return fmt.Errorf("%s is not understood: write what it makes", name)
	case name == ".intel_syntax":
		return &IntelError{s}
	case isData[name]:
		return fmt.Errorf("%s puts data into the code; write its bytes as .byte", name)
	}
	return nil
}

// isData are the directives that make data.
var isData = map[string]bool{
	".long": true, ".quad": true, ".int": true, ".short": true, ".word": true, ".value": true, ".hword": true, ".octa": true, ".zero": true, ".skip": true, ".space": true,
	".fill": true, ".ascii": true, ".asciz": true, ".string": true, ".2byte": true, ".4byte": true, ".8byte": true, ".float": true, ".double": true,
}

// data8 takes the numbers of .byte.
func (p *program) data8(number int, text string) error {
	l := &line{number: number, fixed: true}
	for _, one := range strings.Split(text, ",") {
		v, err := strconv.ParseInt(strings.TrimSpace(one), 0, 16)
		if err != nil || v < -128 || v > 255 {
			return fmt.Errorf("%q is no byte", strings.TrimSpace(one))
		}
		l.code = append(l.code, byte(v))
	}
	p.list = append(p.list, l)
	return nil
}

// elsewhere is the distance from the code of the first symbol that is not in the text. The next one is 16 bytes further.
const elsewhere = 0x100000

// outside returns an address for a symbol that is not in the text, away from the code.
func (p *program) outside(name string, at x86.Addr) x86.Addr {
	name, _, _ = strings.Cut(name, "@") // @PLT, @GOTPCREL
	if p.others == nil {
		p.others = map[string]int64{}
	}
	n, ok := p.others[name]
	if !ok {
		n = int64(len(p.others))
		p.others[name] = n
	}
	return at.Add(elsewhere + 16*n)
}

// listedTarget returns where an address of a listing is here.
func (p *program) listedTarget(text string, at x86.Addr, starts []x86.Addr) (x86.Addr, bool) {
	if p.addresses == nil {
		return 0, false
	}
	v, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	if err != nil {
		return 0, false
	}
	if n, ok := p.addresses[x86.Addr(v)]; ok {
		return starts[n], true
	}
	return at.Add(x86.Addr(v).Sub(p.first)), true
}
