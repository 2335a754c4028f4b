//go:build linux

package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"kprobelab/bpf/answer"
)

// instructionLine is a line of the verifier's log about an instruction: "7: (79) r1 = *(u64 *)(r1 +0)", in newer kernels with
// the registers after it. A jump's line begins "from 3 to 7: ".
var instructionLine = regexp.MustCompile(`^(?:from \d+ to )?(\d+): `)

// blame is the place of the last instruction in a log.
func (l *loader) blame(list asm.Instructions, log []string) *answer.Place {
	_, n := last(log)
	if n < 0 {
		return nil
	}
	return place(list, n)
}

// last finds the last line of a log that has an instruction, and the instruction's number; -1 if there is none.
func last(log []string) (line, instruction int) {
	for i, text := range slices.Backward(log) {
		if m := instructionLine.FindStringSubmatch(text); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				return i, -1
			}
			return i, n
		}
	}
	return -1, -1
}

// place finds the line of source of an instruction: its own, or the nearest before it.
func place(list asm.Instructions, n int) *answer.Place {
	p := &answer.Place{Instruction: n}
	at := 0
	for i := range list {
		if at > n {
			break
		}
		if line, ok := list[i].Source().(*btf.Line); ok {
			p.File, p.Line, p.Text = line.FileName(), int(line.LineNumber()), strings.TrimSpace(line.Line())
		}
		at += int(list[i].Size()) / asm.InstructionSize
	}
	return p
}

// relocationText is the text of a relocation: the kind, a type's kind and name, and the accessor.
var relocationText = regexp.MustCompile(`^CORERelocation\((\w+), \w+:"([^"]*)"\[([\d:]*)\]`)

// relocation names the field, the type or the enumerator of an instruction's relocation; "" if it has none.
func (l *loader) relocation(list asm.Instructions, n int) string {
	at := 0
	for i := range list {
		if at == n {
			r := btf.CORERelocationMetadata(&list[i])
			if r == nil {
				return ""
			}
			m := relocationText.FindStringSubmatch(r.String())
			if m == nil {
				return ""
			}
			return l.accessed(m[2], strings.Split(m[3], ":"))
		}
		at += int(list[i].Size()) / asm.InstructionSize
	}
	return ""
}

// accessed follows an accessor to a field of a type. Its first index counts whole types, the others number members and elements.
func (l *loader) accessed(name string, accessor []string) string {
	types, err := l.spec.Types.AnyTypesByName(name)
	if err != nil || len(types) == 0 {
		return name
	}
	path, at := name, types[0]
	for _, word := range accessor[1:] {
		n, err := strconv.Atoi(word)
		if err != nil {
			return path
		}
		switch t := btf.UnderlyingType(at).(type) {
		case *btf.Struct:
			at, path = member(t.Members, n, path)
		case *btf.Union:
			at, path = member(t.Members, n, path)
		case *btf.Array:
			at, path = t.Type, path+"["+word+"]"
		default:
			return path
		}
		if at == nil {
			return path
		}
	}
	return path
}

// member is the type of a structure's member, and its path.
func member(list []btf.Member, n int, path string) (btf.Type, string) {
	if n < 0 || n >= len(list) {
		return nil, path
	}
	if list[n].Name != "" { // a structure without a name is no step of a path
		path += "." + list[n].Name
	}
	return list[n].Type, path
}
