package skeletons

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/bpf"
	"kprobelab/bpf/answer"
	"kprobelab/internal/tools/conformance/sections"
)

// TestObjectsInsideOfTools: from the header to the last byte, and nothing of an ELF file for another machine or of one that is cut.
func TestObjectsInsideOfTools(t *testing.T) {
	object := sections.Object("kprobe/vfs_read")
	other := bytes.Clone(object)
	binary.LittleEndian.PutUint16(other[18:], 62)
	program := slicesOf([]byte(magic), other, make([]byte, 100), object, []byte("text"), object, object[:len(object)-1])
	found := inside(program)
	require.Len(t, found, 2)
	for _, f := range found {
		assert.Equal(t, object, f)
	}
	assert.Empty(t, inside(object[:headerSize]))
}

func slicesOf(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// TestPageOfTools: a cell has the number of programs that attach, and the reasons name the line.
func TestPageOfTools(t *testing.T) {
	yes := true
	good := answer.Program{Name: "good", Loads: true, Attaches: &yes}
	bad := answer.Program{Name: "bad", Error: "no_field | x", Blame: &answer.Place{Instruction: 3, File: "./tool.bpf.c", Line: 7, Text: " return *v;"}}
	var b strings.Builder
	page(&b, []*bpf.Table{{Object: "/x/tool.bpf.o", Columns: []bpf.Column{
		{Kernel: "5.10", Release: "5.10.1", Programs: []answer.Program{good, bad}}, {Kernel: "6.1", Programs: []answer.Program{good, good}},
	}}})
	assert.Contains(t, b.String(), "| tool | 2 | 1, 1 refused | all |")
	assert.Contains(t, b.String(), "| 5.10, 5.10.1 | 2 | 1 | 0 | 1 | 0 | 0 |")
	assert.Contains(t, b.String(), "## tool\n\n- `bad` on 5.10: refused: no\\_field \\| x; tool.bpf.c:7, `return *v;`\n")
	worse := bad
	worse.Name = "worse"
	b.Reset()
	page(&b, []*bpf.Table{{Object: "tool.bpf.o", Columns: []bpf.Column{{Kernel: "5.10", Programs: []answer.Program{bad, worse}}}}})
	assert.Contains(t, b.String(), "- `bad`, `worse` on 5.10: refused: ")
}

const printed = `=== /objects/a.bpf.o
Program free does not support autoattach, falling back to pinning
ended with 0
=== /objects/b.bpf.o
libbpf: prog 'bad': failed to load: -22
ended with 255
=== /objects/c.bpf.o
libbpf: map 'm': failed to create: -EINVAL
ended with 255
`

// TestAnswersBesideThoseOfBpftool: each program of an object that is loaded, and of others the one that is refused.
func TestAnswersBesideThoseOfBpftool(t *testing.T) {
	yes := true
	attaches := answer.Program{Name: "x", Loads: true, Attaches: &yes}
	named := func(p answer.Program, name string) *answer.Program {
		p.Name = name
		return &p
	}
	r := results(printed)
	require.Len(t, r, 3)
	for _, c := range []struct {
		object, program string
		our             answer.Program
		what, cause     bool
	}{
		{"a", "x", attaches, false, false},
		{"a", "free", attaches, true, false},
		{"a", "free", answer.Program{Loads: true}, false, false},
		{"a", "x", answer.Program{Loads: true}, true, false},
		{"a", "x", answer.Program{}, true, false},
		{"a", "x", answer.Program{Section: "?x"}, false, true},
		{"b", "bad", answer.Program{}, false, false},
		{"b", "bad", attaches, true, false},
		{"b", "x", attaches, false, true},
		{"c", "x", attaches, false, true},
	} {
		what, cause := r[c.object+".bpf.o"].differs(named(c.our, c.program))
		assert.Equal(t, c.what, what != "", "%+v: %s", c, what)
		assert.Equal(t, c.cause, cause != "", "%+v: %s", c, cause)
	}
	var b strings.Builder
	table := &bpf.Table{Object: "a.bpf.o", Columns: []bpf.Column{{Programs: []answer.Program{attaches, {Name: "y", Section: "kprobe/z"}}}}}
	assert.Equal(t, 1, sums(&b, r, []*bpf.Table{table}))
	assert.Contains(t, b.String(), "a.bpf.o/y (kprobe/z) DIFFERS: loads there, refused here")
	assert.Contains(t, b.String(), "1 objects, 2 programs: 1 the same, 0 by causes, 1 differ")
}
