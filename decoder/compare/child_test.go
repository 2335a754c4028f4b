package compare

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/internal/integration/pages"
)

// TestMain: the test program itself is a decoder that speaks the protocol,
// ours with the faults that its argument names.
func TestMain(m *testing.M) {
	if fault := os.Getenv("COMPARE_CHILD"); fault != "" {
		speak(fault)
		return
	}
	os.Exit(m.Run())
}

func speak(fault string) {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	var a [1]Answer
	asked := 0
	for in := bufio.NewReader(os.Stdin); ; asked++ {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		q, _ := hex.DecodeString(strings.TrimSpace(line))
		Ours([][]byte{q}, a[:])
		switch {
		case fault == "length" && q[0] == 0xE9:
			a[0].Length = 3
		case fault == "class" && q[0] == 0xC3:
			a[0].Class = &classes[decoder.ClassFar]
		case fault == "target" && q[0] == 0xE9:
			a[0].Target++
		case fault == "garbage":
			fmt.Fprintln(out, "what?")
			out.Flush()
			continue
		case fault == "twice":
			fmt.Fprintln(out, a[0])
		case fault == "twice-after-the-trial" && asked > trialQuestions && asked <= trialQuestions+100:
			fmt.Fprintln(out, a[0])
		case fault == "dies":
			fmt.Fprintln(os.Stderr, "out of ideas")
			return
		}
		fmt.Fprintln(out, a[0])
		if in.Buffered() == 0 && fault != "silent" {
			out.Flush()
		}
	}
}

func child(t *testing.T, fault string) *Child {
	t.Helper()
	t.Setenv("COMPARE_CHILD", fault)
	exe, err := os.Executable()
	require.NoError(t, err)
	c, err := StartChild("child", exe)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func none(int64, int64) {}

func fuzzed(others []Decoder, seed uint64, count int, c *Comparison, progress func(done, total int64)) error {
	_, err := Fuzz(others, seed, count, c, progress)
	return err
}

func TestChildThatAgrees(t *testing.T) {
	c := &Comparison{}
	require.NoError(t, fuzzed([]Decoder{child(t, "none")}, 1, 50_000, c, none))
	require.Empty(t, c.Differences())
	require.Equal(t, 50_000, c.Instructions)
	require.Greater(t, c.Accepted, 15_000)
}

// The faults of a child are found, grouped by opcode, and shrunk.
func TestChildThatErrs(t *testing.T) {
	for _, tt := range []struct{ fault, opcode, shrunk string }{
		{"length", "primary e9 jmp", "e900000000"},
		{"class", "primary c3 ret", "c3"},
		{"target", "primary e9 jmp", "e900000000"},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			d := child(t, tt.fault)
			c := &Comparison{}
			require.NoError(t, fuzzed([]Decoder{d}, 1, 100_000, c, none))
			list := c.Differences()
			require.Len(t, list, 1)
			require.Equal(t, tt.fault, list[0].What)
			require.Equal(t, tt.opcode, list[0].Opcode)
			require.Positive(t, list[0].Count)
			require.Equal(t, tt.shrunk, hex.EncodeToString(c.Shrink(d, list[0])))
		})
	}
}

// refuser is a decoder that refuses all.
type refuser struct{}

func (refuser) Name() string { return "refuser" }
func (refuser) Close() error { return nil }
func (refuser) Ask(questions [][]byte, answers []Answer) error {
	clear(answers[:len(questions)])
	return nil
}

// The example of a group is one of that group after shrinking, too.
func TestShrinkKeepsTheGroup(t *testing.T) {
	c := &Comparison{}
	require.NoError(t, fuzzed([]Decoder{refuser{}}, 1, 20_000, c, none))
	list := c.Differences()
	require.Greater(t, len(list), 500)
	shorter := 0
	for _, d := range list {
		before := len(d.Bytes())
		d.Example = c.Shrink(refuser{}, d)
		require.Equal(t, d.Opcode, OpcodeName(d.Bytes()), "% x", d.Example)
		if len(d.Bytes()) < before {
			shorter++
		}
	}
	require.Greater(t, shorter, len(list)/4)
}

// More lines than questions are an error, not answers to other questions.
func TestChildThatWritesTooMuch(t *testing.T) {
	for _, count := range []int{1, 10, 10_000} {
		err := fuzzed([]Decoder{child(t, "twice")}, 1, count, &Comparison{}, none)
		require.ErrorContains(t, err, "child wrote more lines than it was asked questions", count)
	}
	late := child(t, "twice-after-the-trial")
	err := errors.Join(fuzzed([]Decoder{late}, 1, 20_000, &Comparison{}, none), late.Close())
	require.ErrorContains(t, err, "one line is an answer")
}

func TestChildThatFails(t *testing.T) {
	for fault, want := range map[string]string{"garbage": `answered "what?"`, "dies": "out of ideas"} {
		err := fuzzed([]Decoder{child(t, fault)}, 1, 10, &Comparison{}, none)
		require.ErrorContains(t, err, want)
	}
	defer func(d time.Duration) { patience = d }(patience)
	patience = 50 * time.Millisecond
	require.ErrorContains(t, fuzzed([]Decoder{child(t, "silent")}, 1, 10, &Comparison{}, none), "does it flush")
	_, err := StartChild("x", "/nosuch/program")
	require.Error(t, err)
}

func TestParseAnswer(t *testing.T) {
	for line, want := range map[string]string{
		"5 call -12\n": "5 call -12", "3 none\n": "3 none", "0 -\n": "0 -", "0\n": "0 -", "7\n": "7 ?", "7 ?\n": "7 ?",
		"2  jcc  4 \n": "2 jcc 4", "15 indirect-jmp\n": "15 indirect-jmp",
	} {
		a, err := parseAnswer([]byte(line))
		require.NoError(t, err, line)
		require.Equal(t, want, a.String(), line)
	}
	for _, line := range []string{"\n", "x\n", "16 none\n", "-1 none\n", "5 walk\n", "5 call x\n", "5 call 1 2\n", "1000000000000000000000 none\n"} {
		_, err := parseAnswer([]byte(line))
		require.Error(t, err, line)
	}
}

// A decoder may say indirect for both calls and jumps.
func TestIndirectIsEither(t *testing.T) {
	theirs, err := parseAnswer([]byte("2 indirect\n"))
	require.NoError(t, err)
	for class, want := range map[decoder.Class]string{
		decoder.ClassIndirectCall: "", decoder.ClassIndirectJmp: "", decoder.ClassCall: "class", decoder.ClassNone: "class",
	} {
		require.Equal(t, want, whatDiffers(Answer{Length: 2, Class: &classes[class]}, theirs), class.String())
	}
}

func FuzzParseAnswer(f *testing.F) {
	for _, s := range []string{"5 call -12\n", "0 -\n", "7 ?\n", "", "15 jcc 99999999999999999999\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := parseAnswer(line)
		if err == nil {
			require.LessOrEqual(t, a.Length, decoder.MaxInsnSize)
		}
	})
}

// Walk follows our lengths, and steps by one byte over bytes that are no instruction.
func TestWalk(t *testing.T) {
	code := []byte{0x90, 0x06, 0xE9, 0, 0, 0, 0, 0xC3, 0xC3}
	c := &Comparison{}
	d := child(t, "length")
	require.NoError(t, Walk([]Decoder{d}, code, 0x1000, c, map[string]bool{}, none))
	require.Equal(t, 5, c.Instructions)
	require.Equal(t, 4, c.Accepted)
	list := c.Differences()
	require.Len(t, list, 1)
	require.Equal(t, uint64(0x1002), list[0].At)
}

// objdump answers as if each question stood alone, whatever it listed before.
func TestObjdump(t *testing.T) {
	path, err := exec.LookPath("objdump")
	if err != nil {
		t.Skip("no objdump on this system")
	}
	o, err := NewObjdump(path)
	require.NoError(t, err)
	defer o.Close()
	var questions [][]byte
	want := []string{"5 call 67305990", "0 -", "2 jcc 0", "1 none", "2 none", "2 indirect-call", "1 ret", "3 far", "2 loop 7", "15 none", "2 undefined", "3 indirect-jmp"}
	for _, s := range []string{"e801020304", "06", "74fe", "9b", "d9c0", "ffd0", "c3", "48ff28", "e205",
		"6666666666662e0f1f840000000000", "0f0b", "3effe0"} {
		q, err := hex.DecodeString(s)
		require.NoError(t, err)
		questions = append(questions, q[:min(len(q), 15)])
	}
	answers := make([]Answer, len(questions))
	require.NoError(t, o.Ask(questions, answers))
	for i := range questions {
		require.Equal(t, want[i], answers[i].String(), "% x", questions[i])
	}
}

// docs/decoder.md has a row for each cause, and no other.
func TestCausesAreDocumented(t *testing.T) {
	for n, list := range [][]cause{causes, textCauses} {
		table := pages.Of(t, "decoder.md", "Known causes", n)
		var program, page []string
		for _, c := range list {
			program = append(program, "`"+c.name+"` | "+c.why)
		}
		for _, row := range table.Rows {
			page = append(page, strings.Join(row, " | "))
		}
		pages.Same(t, table.Where, program, page)
	}
}
