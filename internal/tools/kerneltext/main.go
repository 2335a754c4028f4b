// Command kerneltext compares the text of all distinct instructions of an ELF file's .text
// with objdump's lines, and assembles it with as. It prints how many lines differ,
// by cause, with an example each; it ends with 1 where a line has no cause.
package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kprobelab/decoder"
	"kprobelab/x86"
)

// slot is the number of bytes that each instruction gets; nops fill the rest.
const slot = 32

func main() {
	log.SetFlags(0)
	objdump := flag.String("objdump", "objdump", "the objdump to compare with")
	as := flag.String("as", "as", "the assembler to ask")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: kerneltext [-objdump FILE] [-as FILE] ELF")
	}
	list, err := instructions(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "kerneltext")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	r := report{}
	if err := r.compareObjdump(list, *objdump, folder); err != nil {
		log.Fatal(err)
	}
	if err := r.assemble(list, *as, folder); err != nil {
		log.Fatal(err)
	}
	r.print()
	if r.unexplained > 0 {
		os.RemoveAll(folder)
		os.Exit(1)
	}
}

// instructions are the distinct ones of .text, without the int3 padding.
func instructions(file string) ([]decoder.Inst, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := f.Section(".text")
	if s == nil {
		return nil, fmt.Errorf("%s has no section .text", file)
	}
	code, err := s.Data()
	if err != nil {
		return nil, err
	}
	seen, list := map[string]bool{}, []decoder.Inst{}
	for at := 0; at < len(code); {
		i, err := decoder.Decode(code[at:])
		if err != nil {
			at++
			continue
		}
		if b := string(i.Bytes()); !seen[b] {
			seen[b] = true
			list = append(list, i)
		}
		at += i.Length
	}
	return list, nil
}

func address(n int) x86.Addr { return x86.Addr(n * slot) }

// report counts lines by what happened to them.
type report struct {
	equal, lines         int
	same, refused, total int
	unexplained          int
	causes               map[string]int
	examples             map[string]string
}

func (r *report) note(cause, example string) {
	if r.causes == nil {
		r.causes, r.examples = map[string]int{}, map[string]string{}
	}
	if r.causes[cause]++; r.causes[cause] == 1 {
		r.examples[cause] = example
	}
	if strings.Contains(cause, "without a cause") {
		r.unexplained++
	}
}

func (r *report) print() {
	fmt.Printf("%d distinct instructions; %d lines are objdump's; %d assemble to the same bytes, %d to others, %d are refused\n",
		r.lines, r.equal, r.same, r.total-r.same, r.refused)
	for _, cause := range slices.Sorted(maps.Keys(r.causes)) {
		fmt.Printf("%7d  %s: %s\n", r.causes[cause], cause, r.examples[cause])
	}
}

var (
	comment = regexp.MustCompile(`\s+#.*$`)
	blanks  = regexp.MustCompile(`\s+`)
)

// compareObjdump compares each text with objdump's line.
func (r *report) compareObjdump(list []decoder.Inst, tool, folder string) error {
	var code []byte
	for n := range list {
		code = append(code, list[n].Bytes()...)
		code = append(code, bytes.Repeat([]byte{0x90}, slot-list[n].Length)...)
	}
	file := filepath.Join(folder, "code")
	if err := os.WriteFile(file, code, 0o600); err != nil {
		return err
	}
	out, err := exec.Command(tool, "-D", "-w", "-z", "-b", "binary", "-m", "i386:x86-64", file).Output()
	if err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	r.lines = len(list)
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		f := strings.Split(lines.Text(), "\t")
		if len(f) < 3 {
			continue
		}
		at, err := strconv.ParseUint(strings.TrimRight(strings.TrimSpace(f[0]), ":"), 16, 64)
		if err != nil || at%slot != 0 || at/slot >= uint64(len(list)) {
			continue
		}
		i := &list[at/slot]
		ours := i.Text(x86.Addr(at))
		theirs := strings.TrimSpace(blanks.ReplaceAllString(comment.ReplaceAllString(f[2], ""), " "))
		if ours == theirs {
			r.equal++
			continue
		}
		r.note("objdump: "+lineCause(i, ours, theirs, len(strings.Fields(f[1]))), fmt.Sprintf("% x: %q, objdump %q", i.Bytes(), ours, theirs))
	}
	return nil
}

// lineCause says why objdump's line is another one.
func lineCause(i *decoder.Inst, ours, theirs string, length int) string {
	word, rest, _ := strings.Cut(ours, " ")
	plain := strings.NewReplacer("%es:(%", "(%", "%ds:(%", "(%", "$1,", "", "$0x1,", "", "{evex} ", "")
	switch {
	case length != i.Length:
		return "it ends the instruction elsewhere (docs/decoder.md, Known causes)"
	case strings.Contains(theirs, "(bad)"):
		return "it does not know the instruction, or the form"
	case plain.Replace(ours) == plain.Replace(theirs):
		return "releases differ: the segments of string instructions, a shift by 1, {evex}"
	case i.PrefixLen > 1:
		return "a prefix that counts for nothing"
	case decoder.PrefixWord(word) && rest == theirs:
		return "a prefix that counts for nothing, which objdump leaves out"
	case strings.HasPrefix(theirs, ours+"(8087 only)"), strings.HasPrefix(theirs, ours+"(287 only)"):
		return "objdump names the processor of an x87 instruction"
	}
	return "without a cause: " + word
}

// assemble puts all texts through the assembler and compares the bytes.
func (r *report) assemble(list []decoder.Inst, tool, folder string) error {
	refused := map[int]string{}
	source, object := filepath.Join(folder, "text.s"), filepath.Join(folder, "text.o")
	for pass := 0; ; pass++ {
		if err := writeSource(list, refused, source); err != nil {
			return err
		}
		out, err := exec.Command(tool, "-mrelax-relocations=no", "-mindex-reg", "-o", object, source).CombinedOutput()
		if err == nil {
			break
		}
		before := len(refused)
		for line := range strings.Lines(string(out)) {
			f := strings.SplitN(line, ":", 4)
			if len(f) == 4 && strings.Contains(f[2], "Error") {
				if n, err := strconv.Atoi(f[1]); err == nil {
					refused[(n-2)/2] = strings.TrimSpace(f[3])
				}
			}
		}
		if len(refused) == before || pass > 8 {
			return fmt.Errorf("%s: %w: %.300s", tool, err, out)
		}
	}
	for n, why := range refused {
		r.refused++
		r.note(refusal(&list[n], why), fmt.Sprintf("% x: %q: %s", list[n].Bytes(), list[n].Text(0), why))
	}
	f, err := elf.Open(object)
	if err != nil {
		return err
	}
	defer f.Close()
	code, err := f.Section(".text").Data()
	if err != nil {
		return err
	}
	for n := range list {
		if refused[n] != "" || (n+1)*slot > len(code) {
			continue
		}
		r.total++
		is, err := decoder.Decode(code[n*slot:][:slot])
		if bytes.Equal(is.Bytes(), list[n].Bytes()) {
			r.same++
			continue
		}
		r.note("as: "+codeCause(&list[n], &is, err), fmt.Sprintf("% x: %q, as % x", list[n].Bytes(), list[n].Text(0), is.Bytes()))
	}
	return nil
}

// writeSource writes a line for each text and one for its place. A branch's target
// is relative to the instruction.
func writeSource(list []decoder.Inst, refused map[int]string, file string) error {
	var b bytes.Buffer
	b.WriteString(".text\n")
	for n := range list {
		i := &list[n]
		text := i.Text(address(n))
		if target, ok := i.Target(address(n)); ok {
			text = strings.Replace(text, fmt.Sprintf("%#x", uint64(target)), fmt.Sprintf(".%+d", i.Rel+int64(i.Length)), 1)
		}
		if refused[n] != "" {
			text = "nop" // keeps the slot
		}
		fmt.Fprintf(&b, "%s\n.balign %d,0x90\n", text, slot)
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}

// refusals lists the assembler's errors about lines that are right, with the cause of each.
var refusals = []struct{ says, cause string }{
	{"same type of prefix used twice", "a spelled REX beside the one that the operands need, or a prefix twice"},
	{"is not supported in 64-bit mode", "a CS, DS, ES or SS prefix alone, which counts for nothing"},
	{"after `rep", "F3 or F2 that counts for nothing"},
	{"after `lock'", "LOCK where this release knows none"},
	{"no such instruction", "an instruction that this release does not know"},
}

// refusal says why the assembler refuses the text.
func refusal(i *decoder.Inst, why string) string {
	for _, r := range refusals {
		if strings.Contains(why, r.says) {
			return "as refuses: " + r.cause
		}
	}
	if i.Extension() == "APX_F" {
		return "as refuses: APX, which this release does not know"
	}
	return "without a cause: as refuses: " + i.Mnemonic()
}

// codeCause says why the assembler's bytes are others.
func codeCause(i, is *decoder.Inst, err error) string {
	switch {
	case err != nil:
		return "without a cause: no instruction"
	case i.HasTarget && is.HasTarget && i.Rel+int64(i.Length) == is.Rel+int64(is.Length):
		return "a long branch that fits in a short one"
	case is.Text(0) == i.Text(0) && is.Length == i.Length:
		return "another opcode or prefix order of the same length that says the same"
	case is.Text(0) == i.Text(0):
		return "a shorter displacement, immediate or opcode that says the same"
	case is.Text(0) == strings.Replace(i.Text(0), "0x0(", "(", 1):
		return "a displacement of 0"
	case i.Class != decoder.ClassNone && slices.Contains(i.Bytes()[:i.PrefixLen], 0x66):
		return "66 before a near branch, of which as makes 16 bits (near-branch-66)"
	case i.Encoding == decoder.EncPrimary && i.Opcode == 0xCD && is.Opcode == x86.Int3:
		return "int $3, of which as makes int3"
	case meaning(is.Text(0)) == meaning(i.Text(0)):
		return "another form that says the same: the other direction, a shift by 1, registers in the other order"
	case i.PrefixLen > 1:
		return "a prefix that counts for nothing"
	case spelledREX.MatchString(i.Text(0)) && i.Encoding == is.Encoding && i.Opcode^is.Opcode == 2:
		return "objdump's text, too: as takes the other direction, and gives the bits of a spelled REX to the other operand"
	}
	return "without a cause: " + i.Mnemonic()
}

var spelledREX = regexp.MustCompile(`^rex(\.[WRXB]+)? `)

// meaning is the text without a spelled REX, which counts for nothing; what xchg
// exchanges is sorted, and st(0) has one name.
func meaning(text string) string {
	text = strings.NewReplacer("%st(0)", "%st", "$0x1,", "", "$1,", "").Replace(spelledREX.ReplaceAllString(text, ""))
	if operands, ok := strings.CutPrefix(text, "xchg "); ok {
		list := strings.Split(operands, ",")
		slices.Sort(list)
		return "xchg " + strings.Join(list, ",")
	}
	return text
}
