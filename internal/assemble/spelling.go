package assemble

import (
	"regexp"
	"slices"
	"strings"
)

// conditions has the other names of conditions. A disassembler prints one name of each.
var conditions = map[string]string{
	"z": "e", "nz": "ne", "c": "b", "nae": "b", "nc": "ae", "nb": "ae", "na": "be", "nbe": "a", "nge": "l", "nl": "ge", "ng": "le", "nle": "g", "pe": "p", "po": "np",
}

// usual returns the mnemonic that the decoder prints for another name of an instruction, the name itself if
// there is none.
func usual(name string) string {
	for _, prefix := range []string{"j", "set", "cmov"} {
		if c, ok := strings.CutPrefix(name, prefix); ok {
			for _, suffix := range []string{"", "l", "q", "w", "b"} {
				if is, ok := conditions[strings.TrimSuffix(c, suffix)]; ok && strings.HasSuffix(c, suffix) && forms()[name] == nil {
					return prefix + is
				}
			}
		}
	}
	switch {
	case strings.HasPrefix(name, "sal") && len(name) <= 4:
		return "shl" + name[3:]
	case name == "movabsq":
		return "movabs"
	}
	return name
}

// shifts without a number shift by one.
var shifts = map[string]bool{"sa": true, "sar": true, "sh": true, "shl": true, "shr": true, "ro": true, "rol": true, "ror": true, "rc": true, "rcl": true, "rcr": true}

// bare returns a mnemonic without the letter of its size, if a register has that size: the decoder prints the
// letter only where no register tells the size.
func bare(name string, registers []string) (string, bool) {
	if len(name) < 3 {
		return "", false
	}
	size, short := name[len(name)-1], name[:len(name)-1]
	if !strings.ContainsRune("bwlq", rune(size)) || !known(short) {
		return "", false
	}
	return short, slices.ContainsFunc(registers, func(r string) bool { return sizeOf(r) == size })
}

// sizeOf is the letter of a general register's size.
func sizeOf(register string) byte {
	n, ok := numbers[register]
	switch {
	case !ok:
		return 0
	case register[0] == 'e', n >= 8 && strings.HasSuffix(register, "d"):
		return 'l'
	case register[0] == 'r' && (n < 8 || !strings.ContainsAny(register[len(register)-1:], "wb")):
		return 'q'
	case strings.HasSuffix(register, "l"), strings.HasSuffix(register, "h"), n >= 8 && strings.HasSuffix(register, "b"):
		return 'b'
	}
	return 'w'
}

// prefixes are the bytes of prefixes that are written as a word.
var prefixes = map[string]byte{
	"lock": 0xf0, "rep": 0xf3, "repe": 0xf3, "repz": 0xf3, "repne": 0xf2, "repnz": 0xf2, "notrack": 0x3e, "data16": 0x66, "bnd": 0xf2, "cs": 0x2e, "ds": 0x3e, "es": 0x26, "ss": 0x36, "fs": 0x64, "gs": 0x65,
}

// segment is a segment register before a memory operand.
var segment = regexp.MustCompile(`%([c-g]s|ss):\s*`)

// plainMemory is an address with nothing after it, after a segment.
var plainMemory = regexp.MustCompile(`^(-?\w+)(,|$)`)

// strings has the string instructions. Compilers leave their operands out.
var stringCodes = map[string][]byte{
	"movsb": {0xa4}, "movsw": {0x66, 0xa5}, "movsl": {0xa5}, "movsd": {0xa5}, "movsq": {0x48, 0xa5}, "stosb": {0xaa}, "stosw": {0x66, 0xab}, "stosl": {0xab}, "stosd": {0xab}, "stosq": {0x48, 0xab},
	"lodsb": {0xac}, "lodsw": {0x66, 0xad}, "lodsl": {0xad}, "lodsd": {0xad}, "lodsq": {0x48, 0xad}, "scasb": {0xae}, "scasw": {0x66, 0xaf}, "scasl": {0xaf}, "scasd": {0xaf}, "scasq": {0x48, 0xaf},
	"cmpsb": {0xa6}, "cmpsw": {0x66, 0xa7}, "cmpsl": {0xa7}, "cmpsd": {0xa7}, "cmpsq": {0x48, 0xa7},
}

// cutPrefixes cuts the words for prefixes, and a segment register, from an instruction.
func cutPrefixes(text string) (code []byte, rest string) {
	for {
		word, after, ok := strings.Cut(text, " ")
		b, is := prefixes[word]
		if !ok || !is {
			break
		}
		code, text = append(code, b), after
	}
	if m := segment.FindStringSubmatchIndex(text); m != nil {
		name := text[m[2]:m[3]]
		after := text[m[1]:]
		if plain := plainMemory.FindStringSubmatch(after); plain != nil { // %gs:40 has no register
			after = plain[1] + "(,%riz)" + after[len(plain[1]):]
		}
		if name != "es" || !strings.HasPrefix(after, "(%rdi)") {
			code = append(code, prefixes[name])
		}
		text = text[:m[0]] + after
	}
	return code, text
}
