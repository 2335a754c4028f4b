package compare

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"kprobelab/decoder"
)

// Objdump runs GNU objdump on a listing of all questions at a time: objdump cannot decode one
// instruction alone. Questions follow one another, each cut to our decoder's length. If objdump
// takes another length, the listing has no line for the next question. That question is then
// repeated with nops around it.
type Objdump struct {
	Program string
	// Text: answers have the instruction's text.
	Text bool
	dir  string
}

// NewObjdump makes a folder for the files that objdump reads.
func NewObjdump(program string) (*Objdump, error) {
	dir, err := os.MkdirTemp("", "kprobelab-objdump")
	return &Objdump{Program: program, dir: dir}, err
}

// Name is "objdump".
func (o *Objdump) Name() string { return "objdump" }

// Close removes the folder.
func (o *Objdump) Close() error { return os.RemoveAll(o.dir) }

// room are nops, in which a listing finds its way again.
var room = bytes.Repeat([]byte{0x90}, decoder.MaxInsnSize)

// Ask lists all questions, and lists the questions again that the first listing misses.
func (o *Objdump) Ask(questions [][]byte, answers []Answer) error {
	all := make([]int, len(questions))
	for n := range all {
		all[n] = n
	}
	missed, err := o.list(questions, answers, all, false)
	if err != nil || len(missed) == 0 {
		return err
	}
	_, err = o.list(questions, answers, missed, true)
	return err
}

func (o *Objdump) list(questions [][]byte, answers []Answer, which []int, apart bool) (missed []int, err error) {
	var code []byte
	starts := make(map[uint64]int, len(which))
	for _, n := range which {
		answers[n] = Answer{Length: -1}
		starts[uint64(len(code))] = n
		q := questions[n]
		i, err := decoder.Decode(q)
		switch {
		case apart || err != nil:
			code = append(append(code, q...), room...)
		case q[0] == 0x9B: // objdump takes fwait for a prefix of x87's
			code = append(code, q[0], 0x90)
		default:
			code = append(code, q[:i.Length]...)
		}
	}
	code = append(code, room...)
	err = o.run(code, func(at uint64, length int, text string) {
		if n, ok := starts[at]; ok {
			answers[n] = objdumpAnswer(at, length, text)
			if o.Text && answers[n].Length > 0 {
				answers[n].Text = strings.TrimSpace(text)
			}
		}
	})
	for _, n := range which {
		if answers[n].Length < 0 {
			answers[n] = Answer{}
			missed = append(missed, n)
		}
	}
	return missed, err
}

// run lists code as an ELF file's text at address 0.
func (o *Objdump) run(code []byte, line func(at uint64, length int, text string)) error {
	file := o.dir + "/code.elf"
	if err := os.WriteFile(file, elfOf(code), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(o.Program, "-d", "-w", "-z", file)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at, length, text, ok := listingLine(lines.Text()); ok {
			line(at, length, text)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return cmd.Wait()
}

// listingLine takes "address: TAB bytes TAB instruction" apart.
func listingLine(s string) (at uint64, length int, text string, ok bool) {
	head, rest, ok := strings.Cut(s, ":\t")
	raw, text, ok2 := strings.Cut(rest, "\t")
	if !ok || !ok2 {
		return 0, 0, "", false
	}
	at, err := strconv.ParseUint(strings.TrimSpace(head), 16, 64)
	b, err2 := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(raw), " ", ""))
	return at, len(b), text, err == nil && err2 == nil
}

// objdumpPrefixes stand before a mnemonic, or alone where no instruction follows.
var objdumpPrefixes = map[string]bool{
	"lock": true, "rep": true, "repz": true, "repnz": true, "bnd": true, "notrack": true, "data16": true,
	"addr32": true, "cs": true, "ds": true, "es": true, "fs": true, "gs": true, "ss": true,
	"xacquire": true, "xrelease": true,
}

func objdumpAnswer(at uint64, length int, text string) Answer {
	f := strings.Fields(text)
	for len(f) > 0 && (objdumpPrefixes[f[0]] || strings.HasPrefix(f[0], "rex")) {
		f = f[1:]
	}
	switch {
	case len(f) == 0: // a prefix alone
		return Answer{Length: length}
	case strings.Contains(text, "(bad)") || strings.Contains(text, "bad}") || f[0] == ".byte":
		return Answer{}
	}
	operand := ""
	if len(f) > 1 {
		operand = f[1]
	}
	a := Answer{Length: length}
	name, _, _ := strings.Cut(f[0], ",") // a hint: jne,pn
	class := classOfGNU(name, strings.HasPrefix(operand, "*"))
	a.Class = &classes[class]
	switch class {
	case decoder.ClassCall, decoder.ClassJmp, decoder.ClassJcc, decoder.ClassLoop:
		target, err := strconv.ParseUint(strings.TrimPrefix(operand, "0x"), 16, 64)
		a.HasTarget, a.Target = err == nil, int64(target-at)
	}
	return a
}

// gnuClasses are the mnemonics of control flow. All other mnemonics that begin with j are
// conditional jumps.
var gnuClasses = map[string]decoder.Class{
	"call": decoder.ClassCall, "callw": decoder.ClassCall, "callq": decoder.ClassCall,
	"jmp": decoder.ClassJmp, "jmpw": decoder.ClassJmp, "jmpq": decoder.ClassJmp,
	"ret": decoder.ClassRet, "retw": decoder.ClassRet, "retq": decoder.ClassRet,
	"loop": decoder.ClassLoop, "loope": decoder.ClassLoop, "loopne": decoder.ClassLoop,
	"loopl": decoder.ClassLoop, "loopel": decoder.ClassLoop, "loopnel": decoder.ClassLoop,
	"jrcxz": decoder.ClassLoop, "jecxz": decoder.ClassLoop,
	"int": decoder.ClassInt, "int3": decoder.ClassInt, "int1": decoder.ClassInt, "icebp": decoder.ClassInt,
	"syscall": decoder.ClassSyscall, "sysenter": decoder.ClassSyscall, "sysexit": decoder.ClassSyscall,
	"sysexitl": decoder.ClassSyscall, "sysexitq": decoder.ClassSyscall,
	"sysret": decoder.ClassSyscall, "sysretl": decoder.ClassSyscall, "sysretq": decoder.ClassSyscall,
	"uiret": decoder.ClassFar,
	"ud0":   decoder.ClassUndefined, "ud1": decoder.ClassUndefined, "ud2": decoder.ClassUndefined,
}

func classOfGNU(name string, indirect bool) decoder.Class {
	c, ok := gnuClasses[name]
	switch {
	case c == decoder.ClassCall && indirect:
		return decoder.ClassIndirectCall
	case c == decoder.ClassJmp && indirect:
		return decoder.ClassIndirectJmp
	case ok:
		return c
	case strings.HasPrefix(name, "lcall"), strings.HasPrefix(name, "ljmp"), strings.HasPrefix(name, "lret"), strings.HasPrefix(name, "iret"):
		return decoder.ClassFar
	case strings.HasPrefix(name, "j"):
		return decoder.ClassJcc
	}
	return decoder.ClassNone
}

// elfOf is a relocatable ELF file whose .text is code.
func elfOf(code []byte) []byte {
	const header, section = 64, 64
	names := "\x00.text\x00.shstrtab\x00"
	var b bytes.Buffer
	put := func(v ...any) {
		for _, x := range v {
			_ = binary.Write(&b, binary.LittleEndian, x) // a Buffer takes everything
		}
	}
	offset := header + 3*section
	b.WriteString("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	put(uint16(1), uint16(62), uint32(1), uint64(0), uint64(0), uint64(header), uint32(0),
		uint16(header), uint16(0), uint16(0), uint16(section), uint16(3), uint16(2))
	b.Write(make([]byte, section))
	put(uint32(1), uint32(1), uint64(6), uint64(0), uint64(offset), uint64(len(code)), uint64(0), uint64(1), uint64(0))
	put(uint32(7), uint32(3), uint64(0), uint64(0), uint64(offset+len(code)), uint64(len(names)), uint64(0), uint64(1), uint64(0))
	b.Write(code)
	b.WriteString(names)
	return b.Bytes()
}
