//go:build linux

package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// grown makes a text that doubles, nests or repeats the given one.
func grown(rng *rand.Rand, text string, pairs, joints []string) string {
	for range 1 + rng.IntN(4) {
		n := 1 << rng.IntN(13)
		switch rng.IntN(3) {
		case 0:
			p := pairs[rng.IntN(len(pairs))]
			open, end, _ := strings.Cut(p, "…")
			n = min(n, (1<<18)/(len(p)+1))
			text = strings.Repeat(open, n) + text + strings.Repeat(end, n)
		case 1:
			joint := joints[rng.IntN(len(joints))]
			n = min(n, (1<<18)/(len(text)+len(joint)+1)+1)
			text += strings.Repeat(joint+text, n)
		case 2:
			joint := joints[rng.IntN(len(joints))]
			for range rng.IntN(12) {
				if len(text) > 1<<17 {
					break
				}
				text = "(" + text + joint + text + ")"
			}
		}
	}
	return text
}

var (
	bpftracePairs  = []string{"(…)", "-…", "!…", "*…", "(uint64)…", "1 ? …: 1", "@a[…]", "(1, …)", "str(…)", "{ print(…); }"}
	bpftraceJoints = []string{"+", ", ", "&&", "==", ".", "->", "[0]"}
	stapPairs      = []string{"(…)", "-…", "!…", "f(…)", "a[…]", "1 ? …: 1", "{ …}", "@m(…)"}
	stapJoints     = []string{"+", ", ", "&&", "==", ".", "="}
)

// doubled are assignments, each of which has the one before twice.
func doubled(rng *rand.Rand, first, format string) string {
	var b strings.Builder
	b.WriteString(first)
	for i := range 1 + rng.IntN(40) {
		fmt.Fprintf(&b, format, i+1, i)
	}
	return b.String()
}

// oddBpftrace is a script that asks for much.
func oddBpftrace(rng *rand.Rand) string {
	first := []string{"1", `"a"`, "(1, 2)", "comm", "@b", "nsecs", "kstack", "arg0"}[rng.IntN(8)]
	switch rng.IntN(7) {
	case 0:
		return "BEGIN { " + doubled(rng, "$v0 = "+first+";", []string{" $v%d = ($v%[2]d, $v%[2]d);", " $v%d = ((1, $v%[2]d), ($v%[2]d, 2));", " @v%d = (@v%[2]d, $v0, @v%[2]d);"}[rng.IntN(3)]) + " print($v1); exit() }"
	case 1:
		return doubled(rng, "#define M0 "+first+"\n", "#define M%d M%[2]d + M%[2]d\n") + "BEGIN { print(M" + fmt.Sprint(rng.IntN(40)) + "); exit() }"
	case 2:
		return fmt.Sprintf("interval:us:%d { printf(\"%%%dd\\n\", %s); @a[nsecs] = count(); }", 1+rng.IntN(3), rng.IntN(1<<17), first)
	case 3:
		n := rng.IntN(200)
		return "BEGIN { " + strings.Repeat(fmt.Sprintf("unroll(%d) { ", n), 1+rng.IntN(6)) + "@a = count();" + strings.Repeat("}", 6) + " exit() }"
	case 4:
		return "struct s { " + strings.Repeat("int a[65535]; ", rng.IntN(100)) + "struct s *p; }; BEGIN { print(*(struct s *)0); print(sizeof(struct s)); exit() }"
	case 5:
		n := rng.IntN(5000)
		return "BEGIN { printf(\"" + strings.Repeat("%d", n) + "\"" + strings.Repeat(","+first, n) + "); exit() }"
	}
	return "BEGIN { $x = " + grown(rng, first, bpftracePairs, bpftraceJoints) + "; print($x); exit() }"
}

// oddStap is a script that asks for much.
func oddStap(rng *rand.Rand) string {
	switch rng.IntN(6) {
	case 0:
		return doubled(rng, "@define m0 %( 1 %)\n", []string{"@define m%d %%( @m%[2]d + @m%[2]d %%)\n", "@define m%d %%( @m%[1]d %%)\n", "@define m%d(x) %%( @m%[2]d @x @x %%)\n"}[rng.IntN(3)]) +
			"probe begin { println(@m" + fmt.Sprint(rng.IntN(40)) + ") exit() }"
	case 1:
		return doubled(rng, "probe a0 = begin { println(1) }\n", []string{"probe a%d = a%[2]d, a%[2]d { }\n", "probe a%d = a%[2]d ?, a%[2]d ! { }\n", "probe a%d = a%[1]d, a%[2]d { }\n"}[rng.IntN(3)]) + "probe a" + fmt.Sprint(rng.IntN(40)) + " { exit() }"
	case 2:
		return fmt.Sprintf("global a probe timer.us(%d) { printf(\"%%%dd\\n\", 1) a[a[1]++]++ }", 1+rng.IntN(3), rng.IntN(1<<17))
	case 3:
		return doubled(rng, "function f0(x) { return x }\n", "function f%d(x) { return f%[2]d(x) + f%[2]d(x) }\n") + "probe begin { println(f" + fmt.Sprint(rng.IntN(40)) + "(1)) exit() }"
	case 4:
		return "probe " + strings.Repeat("{begin,end}.", rng.IntN(20)) + "begin { exit() }"
	}
	return "global a function f(x) { return x } @define m(x) %( @x %)\nprobe begin { println(" + grown(rng, []string{"1", `"a"`, "a[1]", "pp()"}[rng.IntN(4)], stapPairs, stapJoints) + ") exit() }"
}

// oddScripts runs a script, or checks it alone.
func oddScripts(c *tryOut) {
	args := []string{"--timeout", "20s", "--max-output", "1000000"}
	if c.rng.IntN(2) == 0 {
		text := oddBpftrace(c.rng)
		if c.rng.IntN(8) == 0 {
			text = string(mutateText(c.rng, []byte(text)))
		}
		if args = append([]string{"bpftrace"}, args...); c.rng.IntN(3) == 0 {
			args = append(args, "--dry-run")
		}
		c.exits(255).run(nil, append(args, c.file("script.bt", []byte(text)))...)
		return
	}
	text := oddStap(c.rng)
	if c.rng.IntN(8) == 0 {
		text = string(mutateText(c.rng, []byte(text)))
	}
	args = append([]string{"stap"}, args...)
	if pass := c.rng.IntN(3); pass > 0 {
		args = append(args, fmt.Sprintf("-p%d", pass))
	}
	c.run(nil, append(args, c.file("script.stp", []byte(text)))...)
}

// oddScenarios explores a damaged scenario, and looks at the picture of it: whatever the names in it, it is one document.
func oddScenarios(c *tryOut) {
	list, err := filepath.Glob(filepath.Join(c.root, "internal/explore/testdata/scenarios/*.poke"))
	if err != nil || len(list) == 0 {
		c.found("", "there are no scenarios")
		return
	}
	b, err := os.ReadFile(list[c.rng.IntN(len(list))])
	if err != nil {
		c.found("", err.Error())
		return
	}
	text := mutateText(c.rng, b)
	if c.rng.IntN(2) == 0 {
		text = []byte(strings.ReplaceAll(string(b), "expect ok", "expect hang"))
		for _, name := range []string{"scenario ", "about "} {
			text = []byte(strings.Replace(string(text), name, name+[]string{"<script>", `"&`, "]]>", "</svg>", "\x1b[2J"}[c.rng.IntN(5)], 1))
		}
	}
	c.says = true
	picture := filepath.Join(c.dir, "picture.svg")
	c.run(nil, "explore", "--timeout", "20s", "--max-runs", "2000", "--svg", picture, "--bug", fmt.Sprint(1+c.rng.IntN(6)), c.file("x.poke", text))
	svg, err := os.ReadFile(picture)
	if err != nil {
		return
	}
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if e, ok := t.(xml.StartElement); ok && e.Name.Local == "script" || err != nil {
			c.found("explore --svg", fmt.Sprintf("the picture is no document, or has a script in it: %v", err))
			return
		}
	}
}
