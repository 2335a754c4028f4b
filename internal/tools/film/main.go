// Command film writes docs/film.svg (make film): a film of a terminal in which commands run. It runs them, and
// shows their output. The film is plain SVG with animations of CSS, without a script; where nothing moves, it
// shows the first scene.
//
// It must not know what the commands do.
package main

import (
	"flag"
	"fmt"
	"html"
	"log"
	"os"
	"os/exec"
	"strings"
)

// scenes are the command lines, after the program's name, in the order of the film.
var scenes = []string{
	`run --steps --kprobe strlen+0x5 --call 'strlen("hello")'`,
	`explain - strlen+0xd`,
	`bpftrace -e 'kprobe:gcd { printf("%s: gcd(%d, %d)\n", comm, arg0, arg1); }' --call 'gcd(12, 18)'`,
	`explore optimize-hit`,
}

// The screen, in characters, and a character's size.
const (
	columns, rows   = 104, 27
	wide, high      = 8.0, 17
	margin, heading = 14, 34
)

func main() {
	log.SetFlags(0)
	program := flag.String("program", "bin/kprobelab", "the program to film")
	out := flag.String("o", "docs/film.svg", "the film")
	flag.Parse()
	var list []scene
	for _, command := range scenes {
		printed, err := run(*program, command)
		if err != nil {
			log.Fatalf("kprobelab %s: %v\n%s", command, err, printed)
		}
		list = append(list, newScene(command, printed))
	}
	if err := os.WriteFile(*out, []byte(film(list)), 0o644); err != nil {
		log.Fatal(err)
	}
}

// run has a shell run a command, without a home: nothing that was kept changes what it prints.
func run(program, command string) (string, error) {
	cmd := exec.Command("sh", "-c", program+" "+command)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "NO_COLOR=1"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// scene is a command and the lines that the screen has room for.
type scene struct {
	command string
	lines   []string
}

// newScene cuts what was printed to the screen; a cut line ends with "…", and so does a cut output.
func newScene(command, printed string) scene {
	s := scene{command: command}
	all := strings.Split(strings.TrimRight(printed, "\n"), "\n")
	for i, line := range all {
		if r := []rune(line); len(r) > columns {
			line = string(r[:columns-1]) + "…"
		}
		if len(s.lines) == rows-2 && i+1 < len(all) {
			s.lines = append(s.lines, "…")
			break
		}
		s.lines = append(s.lines, line)
	}
	return s
}

// Times in seconds: of a typed character, between lines, and for reading.
const (
	typing, between = 0.035, 0.12
	reading         = 2.5
)

// lasts is the time of a scene.
func (s *scene) lasts() float64 {
	return 0.6 + typing*float64(len(s.command)) + between*float64(len(s.lines)) + reading + 0.12*float64(len(s.lines))
}

// film draws the scenes.
func film(list []scene) string {
	total := 0.0
	for _, s := range list {
		total += s.lasts()
	}
	width, height := columns*wide+2*margin, float64(heading+rows*high+margin)
	var style, body strings.Builder
	keys := 0
	// shown makes an animation in which something is visible between two times, and returns its class.
	shown := func(from, to float64) string {
		keys++
		fmt.Fprintf(&style, "@keyframes k%d{0%%,%.3f%%{opacity:0}%.3f%%,%.3f%%{opacity:1}%.3f%%,100%%{opacity:0}}.k%d{animation-name:k%d}\n",
			keys, 100*from/total-0.001, 100*from/total, 100*to/total-0.001, 100*to/total, keys, keys)
		return fmt.Sprintf("k%d", keys)
	}
	at := 0.001
	for n, s := range list {
		end := at + s.lasts() - 0.002
		fmt.Fprintf(&body, "<g class=\"s%d\" aria-label=\"%s\">\n", n, html.EscapeString("kprobelab "+s.command))
		y := heading + high
		words := []rune("$ kprobelab " + s.command)
		fmt.Fprintf(&body, "<text class=\"a p %s\" x=\"%d\" y=\"%d\">%s</text>\n", shown(at, end), margin, y, html.EscapeString(string(words)))
		typed := at + 0.6 + typing*float64(len(s.command))
		keys++
		// The cover goes from the first character of the command to past the last, and is away at all other times.
		fmt.Fprintf(&style, "@keyframes k%d{0%%,%.3f%%{opacity:0;transform:translateX(0)}%.3f%%{opacity:1;transform:translateX(0)}%.3f%%{opacity:1;transform:translateX(%.0fpx)}%.3f%%,100%%{opacity:0;transform:translateX(%.0fpx)}}.k%d{animation-name:k%d;animation-timing-function:steps(%d)}\n",
			keys, 100*at/total-0.001, 100*at/total, 100*typed/total, wide*float64(len(words)), 100*typed/total+0.001, wide*float64(len(words)), keys, keys, len(words))
		fmt.Fprintf(&body, "<rect class=\"b k%d\" x=\"%d\" y=\"%d\" width=\"%.0f\" height=\"%d\"/>\n", keys, margin, y-high+4, width, high+1)
		for i, line := range s.lines {
			y += high
			if line == "" {
				continue
			}
			fmt.Fprintf(&body, "<text class=\"a %s\" x=\"%d\" y=\"%d\">%s</text>\n", shown(typed+0.2+between*float64(i), end), margin, y, html.EscapeString(line))
		}
		body.WriteString("</g>\n")
		at = end + 0.002
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-label="A film of a terminal">
<!-- Written by make film from what the commands print. -->
<style>
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d6dbe3;white-space:pre}
.p{fill:#8bd5a5}.b{fill:#1b2028;opacity:0}.a{opacity:0}.s0 .a{opacity:1}
@media (prefers-reduced-motion:no-preference){.a,.b{animation:%.2[3]fs infinite linear}
%[4]s}
</style>
<defs><clipPath id="w"><rect width="%[1]d" height="%[2]d" rx="8"/></clipPath></defs>
<g clip-path="url(#w)">
<rect width="%[1]d" height="%[2]d" fill="#1b2028"/>
<circle cx="20" cy="17" r="5" fill="#ed6a5e"/><circle cx="38" cy="17" r="5" fill="#f4bf4f"/><circle cx="56" cy="17" r="5" fill="#61c554"/>
%[5]s</g>
</svg>
`, int(width), int(height), total, style.String(), body.String())
}
