package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// drawnTypedefs and drawnEnums are types that members of drawn programs have.
const drawnTypedefs = `
typedef unsigned short u16_t;
typedef signed char s8_t;
`

const drawnEnums = `
enum sign { NEGATIVE = -1, POSITIVE = 1 };
enum plain { NONE, SOME = 77 };
`

// drawnHead is the source that every drawn program begins with.
const drawnHead = `
#define NOIPA __attribute__((noipa))
#define INLINED static inline __attribute__((always_inline))
volatile long sink;
NOIPA long note(long x)
{
	sink = x;
	return x;
}
`

// drawnCode are functions whose variables move: through registers and the stack, into copies, into pieces, and out
// of reach. FIRST and its like are drawn numbers; a comment of one word names a line.
const drawnCode = `
NOIPA long steps(long a, long b)
{
	long x = a * FIRST + b;
	note(x); /* steps1 */
	x = x * SECOND - a;
	sink = 2;
	note(x); /* steps2 */
	a = x + THIRD;
	sink = 3;
	note(a); /* steps3 */
	return a + b + x;
}
NOIPA long walk(const int *list, long n)
{
	long sum = n * FIRST;
	for (int i = 0; i < 4; i++) {
		sum += list[i];
		note(sum); /* walk */
	}
	return sum;
}
INLINED long inner(long x, int y)
{
	long z = x ^ y;
	return note(z);
}
INLINED long outer(int v)
{
	return inner(v * 3L, v) + 1;
}
NOIPA long copies(int a, long b)
{
	long s = inner(b, a);
	s += outer(a);
	s += inner(b - a, 7);
	return s;
}
struct pair { long first; int second; short third; };
NOIPA long pieces(struct pair s, int k)
{
	note(k);
	return s.first + s.second;
}
NOIPA long gone(int a, long b)
{
	note(b);
	note(1); /* gone */
	return 4;
}
struct __attribute__((packed)) packed { unsigned int before : 31, crosses : 9; };
NOIPA long crossing(struct packed *p)
{
	return note(p->crosses);
}
struct table { short rows[2][3]; };
NOIPA long tables(struct table *t)
{
	return note(t->rows[1][2]);
}
`

// drawnMain are a program's calls, with drawn numbers.
type drawnMain struct {
	first, second, third  int64 // constants in its code
	a                     int32
	b                     int64
	list                  [4]int32
	params                []number
	passed                []int64
	results               []int64
	text                  string
	pairFirst, pairSecond int64
}

func drawMain(d *drawnProgram) (m drawnMain) {
	odd := func() int64 { return int64(int32(d.r.Uint32()>>d.r.IntN(32))) | 1 }
	m.first, m.second, m.third = odd(), odd(), odd()
	m.a, m.b = int32(d.r.Uint32()>>d.r.IntN(32)), int64(d.r.Uint64()>>d.r.IntN(64))
	for i := range m.list {
		m.list[i] = int32(d.r.Uint32() >> d.r.IntN(32))
	}
	for range 7 {
		n := d.number()
		m.params, m.passed = append(m.params, n), append(m.passed, n.draw(d.r))
	}
	for _, n := range numbers {
		m.results = append(m.results, n.draw(d.r))
	}
	m.text = d.letters(30)
	m.pairFirst, m.pairSecond = int64(d.r.Uint64()), int64(int32(d.r.Uint32()))
	return m
}

// inRegisters is the number of drawn parameters that the ABI passes in registers; two others come before them.
const inRegisters = 4

// source returns the program's C source.
func (m drawnMain) source(d *drawnProgram) string {
	whole := fmt.Sprintf("struct drawn { %s};\n", d.members("g", nil, 30, 3))
	d.declared = drawnEnums + d.types.String() + whole
	for i := range d.leaves {
		d.leaves[i].path = slices.Clone(d.leaves[i].path)
		d.leaves[i].path[0].arrow = true // the functions have a pointer to the structure
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s%s%sstruct drawn g;\n", drawnTypedefs, d.declared, drawnHead, d.objects.String())
	b.WriteString(strings.NewReplacer("FIRST", literal(m.first), "SECOND", literal(m.second), "THIRD", literal(m.third)).Replace(drawnCode))
	fmt.Fprintf(&b, "NOIPA void put(void)\n{\n%s}\n", d.puts.String())
	var params, passed []string
	for i, n := range m.params {
		params = append(params, fmt.Sprintf("%s p%d", n.name, i))
		passed = append(passed, literal(m.passed[i]))
	}
	fmt.Fprintf(&b, "NOIPA long whole(struct drawn *o, const char *text, %s)\n{\n\treturn note(o == 0);\n}\n", strings.Join(params, ", "))
	fmt.Fprintf(&b, "NOIPA long few(struct drawn *o, const char *text, %s)\n{\n\treturn note(o == 0);\n}\n", strings.Join(params[:inRegisters], ", "))
	results := ""
	for i, n := range numbers {
		fmt.Fprintf(&b, "NOIPA %s result%d(long v)\n{\n\treturn v;\n}\n", strings.TrimPrefix(n.name, "const volatile "), i)
		results += fmt.Sprintf("\tresult%d(%s);\n", i, literal(m.results[i]))
	}
	b.WriteString("NOIPA struct drawn *where(void)\n{\n\treturn &g;\n}\n")
	fmt.Fprintf(&b, "int list[] = { %d, %d, %d, %d };\n", m.list[0], m.list[1], m.list[2], m.list[3])
	fmt.Fprintf(&b, "struct packed packed;\nstruct table table;\nlong run(void)\n{\n\tstruct pair pair = { %s, %d, 3 };\n\tput();\n\twhole(&g, %q, %s);\n", literal(m.pairFirst), m.pairSecond, m.text, strings.Join(passed, ", "))
	fmt.Fprintf(&b, "\tfew(&g, %q, %s);\n", m.text, strings.Join(passed[:inRegisters], ", "))
	fmt.Fprintf(&b, "\tsteps(%d, %s);\n\twalk(list, %s);\n\tcopies(%d, %s);\n\tpieces(pair, %d);\n\tgone(%d, 2);\n\tcrossing(&packed);\n\ttables(&table);\n%s\treturn (long)where();\n}\n",
		m.a, literal(m.b), literal(m.b), m.a, literal(m.b), m.a, m.a, results)
	return b.String()
}

// marked are the lines of a source that have a comment of one word, counted from their function's and from the file's.
func marked(source string) func(name string) (relative, absolute int) {
	return func(name string) (int, int) {
		function := 0
		for i, l := range strings.Split(source, "\n") {
			if strings.HasSuffix(l, ")") && !strings.HasPrefix(l, "\t") && !strings.HasPrefix(l, "#") {
				function = i
			}
			if strings.HasSuffix(l, "/* "+name+" */") {
				return i - function, i + 1
			}
		}
		return 0, 0
	}
}

// buildDrawn makes a kernel of a source.
func buildDrawn(t *testing.T, text string, debug string) string {
	for _, tool := range []string{"gcc", "objcopy"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not here")
		}
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "drawn.c"), []byte(text), 0o600))
	for _, command := range []string{
		"gcc -O2 -ffreestanding -fno-pie -mcmodel=kernel -mno-red-zone -mno-sse -fcf-protection=none -fno-stack-protector -w -c " + debug + " drawn.c",
		"objcopy --set-section-flags .BTF=alloc,readonly,data drawn.o",
		"gcc -no-pie -static -nostdlib -Wl,--build-id=none,-e,run,-Ttext-segment=0xffffffff81000000 -o drawn.elf drawn.o",
	} {
		words := strings.Fields(command)
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", out, text)
	}
	return filepath.Join(dir, "drawn.elf")
}
