package uprobes

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"

	"kprobelab/errno"
	"kprobelab/profile"
	"kprobelab/uprobes"
	"kprobelab/x86"
)

// answer is the kernel's answer for one place (struct answer of testdata/init/uprobes.c).
type answer struct {
	state, signal, stepped byte
	// first is the first byte while the probe was there, and left after it.
	first, left byte
	err         errno.Errno
	moved       int32
	copied      [uprobes.InsnSize]byte
}

// The states of an answer: died is one at which the program was killed.
const (
	asked = 1
	died  = 2
)

const headSize = 12

func parseAnswer(line string) (a answer, err error) {
	b, err := hex.DecodeString(line)
	if err != nil || len(b) != headSize && len(b) != headSize+uprobes.InsnSize {
		return a, fmt.Errorf("%q is no answer", line)
	}
	a = answer{
		state: b[0], signal: b[1], stepped: b[2], first: b[3], left: b[4],
		err: errno.Errno(binary.LittleEndian.Uint16(b[6:])), moved: int32(binary.LittleEndian.Uint32(b[8:])),
	}
	copy(a.copied[:], b[headSize:])
	return a, nil
}

func readAnswers(r io.Reader) (list []answer, err error) {
	s := bufio.NewScanner(r)
	for s.Scan() {
		a, err := parseAnswer(s.Text())
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, s.Err()
}

// sigtrap comes after each instruction that was probed, for the trap flag is set.
const sigtrap = 5

// different says in what an answer differs from what the rules say, "" for in nothing.
func different(a *answer, rules *uprobes.Analysis, code []byte) string {
	if a.err != rules.Errno {
		return fmt.Sprintf("errno %d, not %d", int(a.err), int(rules.Errno))
	}
	if a.state == died || a.err != 0 {
		return ""
	}
	if stepped := a.stepped != 0; stepped != (rules.Way == uprobes.Stepped) {
		return fmt.Sprintf("copies stepped: %d, not %s", a.stepped, rules.Way)
	}
	if a.stepped != 0 && a.copied != rules.Copy {
		return fmt.Sprintf("copy %x, not %x", a.copied, rules.Copy)
	}
	if rules.Way != uprobes.Stepped && a.signal == sigtrap {
		next := int32(rules.Length)
		if a.moved != next && (rules.Way != uprobes.Branch || a.moved != next+int32(rules.Target)) {
			return fmt.Sprintf("ip moved by %d, not %d", a.moved, next)
		}
	}
	if left := rules.Copy[0]; a.left != left {
		return fmt.Sprintf("first byte %02x afterwards, not %02x", a.left, left)
	}
	return ""
}

// compare writes the differences, and counts each kind.
func compare(w io.Writer, code []byte, list, stands []uint32, answers []answer, c *profile.Config) (differ int, err error) {
	if len(answers) != len(list) || len(stands) != len(list) {
		return 0, fmt.Errorf("%d answers to %d questions, which stand for %d", len(answers), len(list), len(stands))
	}
	count := map[string]counted{}
	for i, at := range list {
		a := &answers[i]
		is := func(what string) {
			n := count[what]
			count[what] = counted{n.places + 1, n.boundaries + int(stands[i])}
		}
		insn := code[at:min(len(code), int(at)+uprobes.InsnSize)]
		rules := uprobes.Analyze(insn, x86.Addr(at), c)
		switch {
		case a.state == died:
			is("the program was killed by the hit")
		case a.state != asked:
			return 0, fmt.Errorf("no answer to the offset %#x", at)
		case a.err != 0:
			is(fmt.Sprintf("refused with errno %d", int(a.err)))
		case a.stepped != 0:
			is("stepped")
		default:
			is("emulated")
		}
		if a.err == 0 && a.first != 0xcc && a.state == asked {
			is("optimized at once")
		}
		if a.left != insn[0] && a.err == 0 && a.state == asked {
			is("left with another first byte")
		}
		if s := different(a, &rules, insn); s != "" {
			if differ++; differ <= 20 {
				fmt.Fprintf(w, "%x at %#x: %s (signal %d)\n", insn, at, s, a.signal)
			}
		}
	}
	printCounts(w, count)
	fmt.Fprintf(w, "%d of %d differ\n", differ, len(list))
	return differ, nil
}
