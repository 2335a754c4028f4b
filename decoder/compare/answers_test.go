package compare

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
)

// answers is a decoder that repeats another one's recorded answers: a file of testdata/answers, in
// the line protocol, with the question before each answer. go test ./decoder/compare -run
// TestAnswers -update records the decoders' answers anew.
type answers struct {
	name      string
	questions [][]byte
	said      map[string]Answer
}

func (a *answers) Name() string { return a.name }
func (a *answers) Close() error { return nil }

func (a *answers) Ask(questions [][]byte, list []Answer) error {
	for n, q := range questions {
		said, ok := a.said[string(q)]
		if !ok {
			return fmt.Errorf("%s: no answer for % x is recorded", a.name, q)
		}
		list[n] = said
	}
	return nil
}

func answersFile(file string) string { return "testdata/answers/" + file + ".txt.gz" }

// readAnswers reads the file of a decoder.
func readAnswers(t *testing.T, name, file string) *answers {
	t.Helper()
	f, err := os.Open(answersFile(file))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	a := &answers{name: name, said: map[string]Answer{}}
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		question, answer, ok := strings.Cut(lines.Text(), " ")
		q, err := hex.DecodeString(question)
		require.True(t, ok && err == nil, lines.Text())
		a.questions = append(a.questions, q)
		a.said[string(q)], err = parseAnswer([]byte(answer + "\n"))
		require.NoError(t, err, lines.Text())
	}
	require.NoError(t, lines.Err())
	return a
}

// writeAnswers records a decoder's answers in the file.
func writeAnswers(t *testing.T, file string, d Decoder, questions [][]byte) {
	t.Helper()
	list := make([]Answer, len(questions))
	for at := 0; at < len(questions); at += batch {
		end := min(at+batch, len(questions))
		require.NoError(t, d.Ask(questions[at:end], list[at:end]))
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(answersFile(file)), 0o755))
	f, err := os.Create(answersFile(file))
	require.NoError(t, err)
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	require.NoError(t, err)
	for n, q := range questions {
		line := list[n].protocol()
		_, err := parseAnswer([]byte(line + "\n"))
		require.NoError(t, err, line)
		fmt.Fprintf(z, "%x %s\n", q, line)
	}
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
}

// protocol is the answer as a line of the protocol.
func (a Answer) protocol() string {
	if a.Length == 0 {
		return "0 -"
	}
	line := fmt.Sprintf("%d ?", a.Length)
	if a.Class != nil {
		line = fmt.Sprintf("%d indirect", a.Length)
		if *a.Class != indirect {
			line = fmt.Sprintf("%d %v", a.Length, *a.Class)
		}
	}
	if a.HasTarget {
		line += fmt.Sprintf(" %d", a.Target)
	}
	if a.Text != "" {
		line += " ; " + a.Text
	}
	return line
}

// withText are the decoders that say mnemonic and operands.
var withText = []string{"llvm", "iced", "zydis"}

// answersCount is the number of recorded questions besides the ones by which a version is known.
// Every other one is a form of a row.
const answersCount = 8000

// recordedQuestions are the questions of the files.
func recordedQuestions() [][]byte {
	list := append([][]byte{}, knownQuestions()...)
	q := NewQuestions(71)
	for range answersCount {
		w := make([]byte, decoder.MaxInsnSize)
		q.Next(w)
		list = append(list, w)
	}
	return list
}

// TestAnswers: where LLVM, iced and Zydis differ from us in length, class, target, mnemonic or
// operands, the difference has a cause. Their answers are recorded, so that none of them has to be
// installed; make decoder-opponents compares the decoders themselves.
func TestAnswers(t *testing.T) {
	for _, name := range withText {
		t.Run(name, func(t *testing.T) {
			if *update {
				file := name + "-" + versionOf(t, name)
				d, err := Open(name, true)
				require.NoError(t, err)
				writeAnswers(t, file, d, recordedQuestions())
				require.NoError(t, d.Close())
			}
			compareAnswers(t, name)
		})
	}
}

// compareAnswers compares the recorded answers of a decoder with ours.
func compareAnswers(t *testing.T, name string) {
	t.Helper()
	a := readAnswers(t, name, name+"-"+versionOf(t, name))
	require.Greater(t, len(a.questions), answersCount)
	k, err := Recognize(a)
	require.NoError(t, err)
	require.Equal(t, name+" "+versionOf(t, name), k.String())
	c := &Comparison{known: map[string]*Known{name: k}}
	ours := make([]Answer, len(a.questions))
	Ours(a.questions, ours)
	texts, causes := 0, map[string]int{}
	for n, q := range a.questions {
		theirs := a.said[string(q)]
		if theirs.Text != "" {
			texts++
		}
		c.Add(name, q, 0, ours[n], theirs)
	}
	require.Greater(t, texts, answersCount/3)
	for _, d := range c.Differences() {
		causes[d.Cause] += d.Count
		if d.Cause == "" {
			t.Errorf("%s: %s: % x: ours %v, theirs %v", d.Opcode, d.What, d.Bytes(), d.Ours, d.Theirs)
		}
	}
	t.Logf("%d questions, %d texts; differences by cause: %v", len(a.questions), texts, causes)
}

// TestAnswersFindFaults: the recorded answers find a wrong operand and a wrong name of ours.
func TestAnswersFindFaults(t *testing.T) {
	for _, tt := range []struct{ hazard, ours, theirs, what string }{
		{"destination_and_source", "vaddps %xmm1,%xmm2,%xmm3", "vaddps xmm3, xmm1, xmm2", "operands"},
		{"another_predicate", "vcmpltps %xmm1,%xmm2,%k1", "vcmpps k1, xmm2, xmm1, 0x02", "operands"},
		{"no_rounding", "vaddps %zmm1,%zmm2,%zmm3", "vaddps zmm3, zmm2, zmm1 {rn-sae}", "mnemonic"},
		{"another_rounding", "vaddps {rz-sae},%zmm1,%zmm2,%zmm3", "vaddps {rn-sae}, %zmm1, %zmm2, %zmm3", "mnemonic"},
		{"subtraction_the_other_way_round", "fsub %st,%st(1)", "fsub st1, st0", "mnemonic"},
		{"exchange_is_no_nop", "xchg %eax,%eax", "nop", "mnemonic"},
		{"three_registers_of_imul", "imul $0x5,%eax,%ecx", "imul ecx, ecx, 0x05", "operands"},
		{"halves_of_a_multiplication", "pclmulhqlqdq %xmm1,%xmm0", "pclmulqdq xmm0, xmm1, 0x10", "operands"},
		{"mask_left_out", "vaddps %xmm1,%xmm2,%xmm3{%k1}", "vaddps xmm3, xmm2, xmm1", "operands"},
		{"high_byte", "mov $0x0,%ah", "mov spl, 0x00", "operands"},
	} {
		t.Run(tt.hazard, func(t *testing.T) {
			require.Equal(t, tt.what, whatTextDiffers(tt.ours, tt.theirs))
			for _, name := range withText {
				require.Empty(t, Cause(&Known{Name: name}, []byte{0x0F, 0x58, 0xC0}, Answer{Length: 3, Text: tt.ours}, Answer{Length: 3, Text: tt.theirs}))
			}
		})
	}
}

// openIcedAMD returns iced that reads as AMD's processors do, without MPX; nil if it is not
// installed.
func openIcedAMD(t *testing.T) Decoder {
	t.Helper()
	for _, dir := range Dirs() {
		if path, err := exec.LookPath(filepath.Join(dir, "iced")); err == nil {
			d, err := StartChild("iced amd", path, "amd")
			require.NoError(t, err)
			t.Cleanup(func() { _ = d.Close() })
			return d
		}
	}
	return nil
}
