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

// missing names the field, the type or the enumerator of an instruction's relocation; "" if it has none.
func (l *loader) missing(list asm.Instructions, n int) string {
	at := 0
	for i := range list {
		if at == n {
			if r := l.read(&list[i]); r != nil {
				name, _, _ := r.name()
				return name
			}
			return ""
		}
		at += int(list[i].Size()) / asm.InstructionSize
	}
	return ""
}
