package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// fetch is a value that a probe fetches each time that it fires.
type fetch struct {
	// perf, stap and bpftrace hold the value's name in the notation of each tool, "" if the tool cannot name it.
	perf, stap, bpftrace string
	number
	text, field bool
	// maybe is for a variable that the compiler may have put out of reach.
	maybe bool
	want  []string
}

// probing is a probe with its fetches. perf, stap and bpftrace hold its place in the notation of each tool, "" if the tool
// cannot probe it.
type probing struct {
	perf, stap, bpftrace string
	fetches              []fetch
}

func decimal(values ...int64) (out []string) {
	for _, v := range values {
		out = append(out, strconv.FormatInt(v, 10))
	}
	return out
}

// fetches returns a fetch for each leaf of the structure that a pointer leads to. perf, stap and bpftrace are the pointer's
// names.
func (d *drawnProgram) fetches(perf, stap, bpftrace string, byRows bool) (list []fetch) {
	for _, l := range d.leaves {
		if byRows && !l.inBTF() {
			continue
		}
		at := l.path.notation(byRows)
		f := fetch{perf: perf + at, stap: stap + arrows(at), bpftrace: bpftrace + at, number: l.number, field: l.field, text: l.bits == 0, want: decimal(l.value)}
		if f.text {
			f.want = []string{l.text}
		}
		switch {
		case f.text && !l.inside:
			f.bpftrace = "str(" + f.bpftrace + ")"
		case l.byte():
			f.bpftrace = ""
		}
		list = append(list, f)
	}
	return list
}

// cast is the name of a type in kprobe_events, or with int in bpftrace.
func (n number) cast(word string) string {
	letter := map[bool]string{true: "s", false: "u"}[n.signed]
	if word != "" {
		letter = strings.TrimPrefix(letter, "s")
	}
	return fmt.Sprintf("%s%s%d", letter, word, max(n.bits, 8))
}

// calls are the probes of functions, which DWARF and BTF both tell.
func (m drawnMain) calls(d *drawnProgram, byRows bool) (list []probing) {
	const perEvent = 40
	for part := range slices.Chunk(d.fetches("o", "$o", "((struct drawn *)arg0)", byRows), perEvent) {
		list = append(list, probing{perf: "whole", stap: `kernel.function("whole")`, bpftrace: "kprobe:whole", fetches: part})
	}
	list = append(list,
		probing{bpftrace: "fentry:few", fetches: d.fetches("", "", "args.o", byRows)},
		probing{stap: `kernel.function("where").return`, bpftrace: "kretprobe:where", fetches: d.fetches("", "$return", "((struct drawn *)retval)", byRows)},
		probing{bpftrace: "fexit:where", fetches: d.fetches("", "", "retval", byRows)},
	)
	text := fetch{perf: "text", stap: "$text", bpftrace: "str(arg1)", text: true, want: []string{m.text}}
	params, few := probing{perf: "whole", stap: `kernel.function("whole")`, fetches: []fetch{text}}, probing{bpftrace: "kprobe:few", fetches: []fetch{text}}
	args := probing{bpftrace: "fentry:few"}
	for i, n := range m.params {
		name, want := fmt.Sprintf("p%d", i), decimal(m.passed[i])
		if byRows && !(leaf{number: n}).inBTF() {
			continue
		}
		params.fetches = append(params.fetches, fetch{perf: name, stap: "$" + name, number: n, want: want})
		if i < inRegisters {
			few.fetches = append(few.fetches, fetch{bpftrace: fmt.Sprintf("(%s)arg%d", n.cast("int"), i+2), number: n, want: want})
			args.fetches = append(args.fetches, fetch{bpftrace: "args." + name, number: n, want: want})
		}
	}
	list = append(list, params, few, args)
	for i, n := range numbers {
		name, want := fmt.Sprintf("result%d", i), decimal(m.results[i])
		if byRows && !(leaf{number: n}).inBTF() {
			continue
		}
		list = append(list,
			probing{perf: name + "%return", stap: fmt.Sprintf(`kernel.function("%s").return`, name), bpftrace: "kretprobe:" + name, fetches: []fetch{
				{perf: "$retval:" + n.cast(""), stap: "$return", bpftrace: fmt.Sprintf("(%s)retval", n.cast("int")), number: n, want: want},
			}},
			probing{bpftrace: "fexit:" + name, fetches: []fetch{{bpftrace: "retval", number: n, want: want}}},
			probing{stap: fmt.Sprintf(`kernel.function("%s").return`, name), fetches: []fetch{{stap: "@entry($v)", number: numbers[integers-1], want: want}}},
		)
	}
	return list
}

// withoutTypes are the probes of a script that declares the types itself: the kernel has none, and no fentry.
func (m drawnMain) withoutTypes(d *drawnProgram) (list []probing) {
	for _, p := range m.calls(d, true) {
		if !strings.HasPrefix(p.bpftrace, "f") {
			list = append(list, p)
		}
	}
	return list
}

// lines are the probes of lines and of inlined copies, which DWARF alone tells. at is the line of a mark, from the function's
// own on and in the file.
func (m drawnMain) lines(at func(string) (int, int)) (list []probing) {
	long, integer := number{"long", 64, true}, number{"int", 32, true}
	variable := func(name string, n number, values ...int64) fetch {
		return fetch{perf: name, stap: "$" + name, number: n, maybe: true, want: decimal(values...)}
	}
	line := func(function, mark string, fetches ...fetch) {
		relative, absolute := at(mark)
		list = append(list, probing{perf: fmt.Sprintf("%s:%d", function, relative), stap: fmt.Sprintf(`kernel.statement("%s@drawn.c:%d")`, function, absolute), fetches: fetches})
	}
	a, b := int64(m.a), m.b
	x := a*m.first + b
	line("steps", "steps1", variable("a", long, a), variable("b", long, b), variable("x", long, x))
	x = x*m.second - a
	line("steps", "steps2", variable("a", long, a), variable("b", long, b), variable("x", long, x))
	line("steps", "steps3", variable("a", long, x+m.third), variable("b", long, b), variable("x", long, x))
	sums := []int64{b * m.first}
	for i, v := range m.list {
		sums = append(sums, sums[i]+int64(v))
	}
	line("walk", "walk", variable("sum", long, sums[1:]...), variable("i", integer, 0, 1, 2, 3), variable("n", long, b, b, b, b))
	line("gone", "gone", variable("a", integer, a), variable("b", long, 2))
	xs, ys := []int64{b, a * 3, b - a}, []int64{a, a, 7}
	list = append(list,
		probing{perf: "inner", stap: `kernel.function("inner")`, fetches: []fetch{variable("x", long, xs...), variable("y", integer, ys...)}},
		probing{stap: `kernel.function("pieces")`, fetches: []fetch{
			{stap: "$s->first", number: long, want: decimal(m.pairFirst)},
			{stap: "$s->second", number: integer, want: decimal(m.pairSecond)},
		}},
	)
	return list
}
