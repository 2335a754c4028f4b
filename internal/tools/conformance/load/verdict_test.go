package load

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/bpf/answer"
)

const veristat = `PROCESSING /objects/a.bpf.o/good, DURATION US: 134, VERDICT: success, VERIFIER LOG:
verification time 134 usec
stack depth 0
processed 24 insns (limit 1000000) max_states_per_insn 0 total_states 2 peak_states 2 mark_read 1

PROCESSING /objects/a.bpf.o/bad, DURATION US: 99, VERDICT: failure, VERIFIER LOG:
0: (18) r1 = 0xffff8880054d7310
2: (95) exit
R0 !read_ok
verification time 99 usec
processed 2 insns (limit 1000000) max_states_per_insn 0 total_states 1 peak_states 1 mark_read 1

file_name,prog_name,verdict,total_insns,total_states
a.bpf.o,good,success,24,2
`

// TestAnswersBesideThoseOfVeristat: what may differ is an address, a time and a table; all else is a difference.
func TestAnswersBesideThoseOfVeristat(t *testing.T) {
	const processed = "\nprocessed %s insns (limit 1000000) max_states_per_insn 0 total_states %s peak_states 2 mark_read 1"
	const refusal = "0: (18) r1 = 0xffffc90000552000\n2: (95) exit\nR0 !read_ok\nverification time 7 usec"
	log := func(text, insns, states string) string {
		return text + strings.Replace(strings.Replace(processed, "%s", insns, 1), "%s", states, 1)
	}
	for name, c := range map[string]struct {
		program *answer.Program
		differs string
	}{
		"the same":              {&answer.Program{Name: "good", Loads: true, Log: log("stack depth 0", "24", "2")}, ""},
		"refused here":          {&answer.Program{Name: "good", Error: "R0 !read_ok", Log: log(refusal, "24", "2")}, "loads: true there, false here"},
		"more instructions":     {&answer.Program{Name: "good", Loads: true, Log: log("", "25", "2")}, "24 instructions and 2 states there, 25 and 2 here"},
		"fewer states":          {&answer.Program{Name: "good", Loads: true, Log: log("", "24", "1")}, "24 instructions and 2 states there, 24 and 1 here"},
		"the same refusal":      {&answer.Program{Name: "bad", Error: "R0 !read_ok", Log: log(refusal, "2", "1")}, ""},
		"loads here":            {&answer.Program{Name: "bad", Loads: true, Log: log("", "2", "1")}, "loads: false there, true here"},
		"another reason":        {&answer.Program{Name: "bad", Error: "x", Log: log(strings.Replace(refusal, "R0", "R1", 1), "2", "1")}, "the log there"},
		"an instruction before": {&answer.Program{Name: "bad", Error: "x", Log: log(strings.Replace(refusal, "r1", "r2", 1), "2", "1")}, "the log there"},
	} {
		t.Run(name, func(t *testing.T) {
			theirs := parse(veristat)["a.bpf.o"][c.program.Name]
			require.NotNil(t, theirs)
			says := theirs.differs(verdictOf(c.program))
			assert.Equal(t, c.differs == "", says == "", says)
			assert.Contains(t, says, c.differs)
		})
	}
	assert.Len(t, parse(veristat)["a.bpf.o"], 2)
}

// TestProgramsThatNoVerifierSaw: both sides gave up before, each with words of its own.
func TestProgramsThatNoVerifierSaw(t *testing.T) {
	theirs := &verdict{log: "libbpf: prog 'x': failed to load: -3"}
	assert.NotEmpty(t, theirs.cause(&verdict{said: "not supported"}))
	assert.Empty(t, theirs.cause(&verdict{loads: true}))
	assert.Empty(t, theirs.cause(&verdict{insns: 3}))
	assert.Contains(t, theirs.cause(&verdict{insns: 3, judged: true}), "not compared")
	assert.Empty(t, (&verdict{loads: true}).cause(&verdict{judged: true}))
	assert.Empty(t, (&verdict{loads: true}).cause(&verdict{}))
	assert.NotEmpty(t, (&verdict{loads: true}).cause(&verdict{unasked: true}))
	assert.NotEmpty(t, (&verdict{insns: 7, states: 1}).cause(&verdict{loads: true, insns: 7, states: 1}))
	assert.NotEmpty(t, (&verdict{insns: 7, states: 1, log: "Func#1 ('f') is safe for any args that match its prototype"}).cause(&verdict{loads: true, insns: 7, states: 1}))
	named := &verdict{insns: 7, log: "1: (18) r3 = ADDRESS  ; R3=map_value(map=tool.data,ks=4)"}
	assert.NotEmpty(t, named.cause(&verdict{insns: 7, log: strings.Replace(named.log, "tool.data", ".data", 1)}))
	assert.Empty(t, named.cause(&verdict{insns: 7, log: strings.Replace(named.log, "tool.data", ".bss", 1)}))
	assert.Empty(t, (&verdict{insns: 7, states: 1, log: "R0 !read_ok"}).cause(&verdict{loads: true, insns: 7, states: 1}))
	lines := &verdict{insns: 2, log: "0: x\n; if (a) @ a.c:3\n1: y\nR0 !read_ok"}
	assert.NotEmpty(t, (&verdict{insns: 2, log: "0: x\n1: y\nR0 !read_ok"}).cause(lines))
	assert.Empty(t, (&verdict{insns: 2, log: "0: x\n1: y\nR1 !read_ok"}).cause(lines))
	core := &verdict{insns: 3, log: "0: x\nfailed to resolve CO-RE relocation <byte_off> [5] struct a.b"}
	assert.NotEmpty(t, core.cause(&verdict{insns: 3, said: "bad CO-RE relocation: this kernel has no a.b"}))
	assert.Empty(t, core.cause(&verdict{insns: 3, said: "invalid func unknown#195896080"}))
}

// TestExplanationsWithoutLinesOfC: libbpf's log has places by instruction, where this one has them by line, with the same events below.
func TestExplanationsWithoutLinesOfC(t *testing.T) {
	const head, tail = "13: (71) r0 = *(u8 *)(r0 +0)\nR0 unbounded memory access\n\nReason:\n  It is 8.\n\nAt:\n", "  Instruction context:\n      12 | (0f) r0 += r1\n  >>> 13 | (71) r0 = *(u8 *)(r0 +0)"
	const theirs = head + "  insn 13\n       | ^-- update: R0 changed from map_hash at\n       |     offset 0\n" + tail
	const ours = "; asm (\" @ a.c:6\n" + head + "  f @ a.c:6:2\n  Source context:\n      5 | a | b\n  >>> 6 |   asm (\"   \\\n        |   ^-- update: R0 changed from\n        |       map_hash at offset 0\n      7 | ...\n" + tail
	cause := func(our string) string { return (&verdict{insns: 7, log: theirs}).cause(&verdict{insns: 7, log: our}) }
	assert.NotEmpty(t, cause(ours))
	assert.Empty(t, cause(strings.Replace(ours, "at offset 0", "at offset 8", 1)))
	assert.Empty(t, cause(strings.Replace(ours, "It is 8", "It is 9", 1)))
	assert.Empty(t, cause(strings.Replace(ours, "r0 += r1", "r0 += r2", 1)))
}
