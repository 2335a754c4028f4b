package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/perfprobe"
	"kprobelab/internal/source"
	"kprobelab/internal/tracing/definition"
)

// refused runs a command that has to fail, and returns its standard error.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	var out, said bytes.Buffer
	require.NotEqual(t, exitOK, execute(append([]string{"kprobelab"}, args...), &out, &said), out.String())
	return said.String()
}

// seeds returns n new random seeds, or $KPROBELAB_SEED alone if it is set.
func seeds(t *testing.T, n int) (out []uint64) {
	if s := os.Getenv("KPROBELAB_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		return []uint64{seed}
	}
	for range n {
		out = append(out, rand.Uint64N(1<<32))
	}
	return out
}

// told reads lines of the form %d=%s: it returns the values that probes printed, by the number of the fetch.
func told(lines []string) map[int][]string {
	out := map[int][]string{}
	for _, l := range lines {
		if name, value, ok := strings.Cut(strings.TrimSuffix(l, "\n"), "="); ok {
			if n, err := strconv.Atoi(name); err == nil {
				out[n] = append(out[n], value)
			}
		}
	}
	return out
}

// nowhere is the value that probes print for a variable that the compiler has put out of reach.
const nowhere = "nowhere"

// same compares the values that were fetched with the values that the program has put there.
func same(t *testing.T, list []probing, got map[int][]string, has func(probing, fetch) bool) {
	n, seen, moving, away := 0, 0, 0, 0
	for _, p := range list {
		for _, f := range p.fetches {
			told := got[n]
			if n++; !has(p, f) {
				continue
			}
			want := slices.Clone(f.want)
			for i := range want {
				switch {
				case f.maybe && i < len(told) && told[i] == nowhere:
					want[i] = nowhere
					away++
				case f.maybe:
					moving++
				default:
					seen++
				}
			}
			assert.Equal(t, want, told, "%s %s, %s, %s; perf %s, stap %s, bpftrace %s", p.perf, p.stap, p.bpftrace, f.number.name, f.perf, f.stap, f.bpftrace)
		}
	}
	t.Logf("%d values; %d of variables that move, %d more of them out of reach", seen, moving, away)
	require.Positive(t, seen)
	require.GreaterOrEqual(t, moving, away/2)
}

// argument is a value of an event; its name has the fetch's number.
var argument = regexp.MustCompile(`v(\d+)=(?:"([^"]*)"|(\S+))`)

func fetchedByEvents(t *testing.T, image string, list []probing) {
	file, err := source.Open(image)
	if errors.Is(err, source.ErrNone) {
		file = nil
	} else {
		require.NoError(t, err)
	}
	args, got := []string{"run", image}, map[int][]string{}
	var all []fetch
	for i, p := range list {
		event := fmt.Sprintf("e%d=%s", i, p.perf)
		for _, f := range p.fetches {
			text := fmt.Sprintf(" v%d=%s", len(all), f.perf)
			if f.text {
				text += ":string"
			}
			if f.maybe && file != nil && p.perf != "" {
				if why := outOfReach(t, file, p.perf+text); why != "" {
					assert.Regexp(t, f.perf+" |shares its address", why)
					t.Logf("%s %s: %s", p.perf, f.perf, why)
					text, got[len(all)] = "", slices.Repeat([]string{nowhere}, len(f.want))
				}
			}
			event += text
			all = append(all, f)
		}
		if p.perf != "" && strings.Contains(event, " ") {
			args = append(args, "-e", event)
		}
	}
	for _, l := range says(t, append(args, "--call", "run()")...) {
		for _, m := range argument.FindAllStringSubmatch(l, -1) {
			k, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			value := m[2]
			if m[3] != "" {
				value = asC(t, all[k], m[3])
			}
			got[k] = append(got[k], value)
		}
	}
	same(t, list, got, func(p probing, f fetch) bool { return p.perf != "" && f.perf != "" })
}

// absent is the value that an event has for a variable that is missing at one of the event's places.
const absent = 0xdeade12d

// outOfReach returns the reason why a variable cannot be fetched at a place, "" if it can.
func outOfReach(t *testing.T, file *source.File, text string) string {
	p, err := perfprobe.Parse(definition.ReadLine(text))
	require.NoError(t, err)
	w := perfprobe.Writer{File: file, Features: perfprobe.Features{Hex: true, Immediate: true, Several: true, User: true}}
	if _, err = w.Define(p); err != nil {
		return err.Error()
	}
	return ""
}

// asC is a number of the trace as C has it: the kernel prints some in hexadecimal, and bitfields without their sign.
func asC(t *testing.T, f fetch, text string) string {
	v, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		u, err := strconv.ParseUint(text, 0, 64)
		require.NoError(t, err)
		v = int64(u)
	}
	if f.field {
		v = f.of(uint64(v))
	}
	if f.maybe && v == f.of(absent) {
		return nowhere
	}
	return strconv.FormatInt(v, 10)
}

func fetchedByStap(t *testing.T, image string, list []probing) {
	n := 0
	var script strings.Builder
	for _, p := range list {
		for _, f := range p.fetches {
			value, format := f.stap, "d"
			if f.text {
				value, format = "kernel_string("+value+")", "s"
			}
			if f.maybe {
				value, format = fmt.Sprintf(`@defined(%s) ? sprint(%s) : "%s"`, value, value, nowhere), "s"
			}
			if p.stap != "" && f.stap != "" {
				fmt.Fprintf(&script, "probe %s { printf(\"%d=%%%s\\n\", %s) }\n", p.stap, n, format, value)
			}
			n++
		}
	}
	got := told(says(t, "stap", "-r", image, "-e", script.String(), "--call", "run()"))
	same(t, list, got, func(p probing, f fetch) bool { return p.stap != "" && f.stap != "" })
}

// fetchedByBpftrace has a script with declarations of its own fetch the values.
func fetchedByBpftrace(t *testing.T, image, declarations string, list []probing) {
	n := 0
	var script strings.Builder
	script.WriteString(declarations)
	for _, p := range list {
		for i, f := range p.fetches {
			whole := slices.ContainsFunc(numbers, func(n number) bool { return n.name == f.name && n.bits == f.bits })
			if f.field && f.signed && !whole {
				// bpftrace 0.23.2 reads the bits as an unsigned number.
				v, err := strconv.ParseInt(f.want[0], 10, 64)
				require.NoError(t, err)
				p.fetches[i].want = decimal(v & (1<<f.bits - 1))
			}
			format := map[bool]string{true: "ld", false: "lu"}[f.signed || f.bits == 64]
			if f.text {
				format = "s"
			}
			if p.bpftrace != "" && f.bpftrace != "" {
				fmt.Fprintf(&script, "%s { printf(\"%d=%%%s\\n\", %s); }\n", p.bpftrace, n, format, f.bpftrace)
			}
			n++
		}
	}
	got := told(says(t, "bpftrace", "-r", image, "-e", script.String(), "--call", "run()"))
	same(t, list, got, func(p probing, f fetch) bool { return p.bpftrace != "" && f.bpftrace != "" })
}

// params holds what stands for all parameters against what was passed.
func params(t *testing.T, image string, m drawnMain) {
	for tool, ask := range map[string][]string{
		"kprobe_events": {"run", image, "-e", "whole $params"},
		"kprobe_vars":   {"run", image, "-e", "whole $vars"},
		"stap":          {"stap", "-D", "MAXSTRINGLEN=512", "-r", image, "-e", `probe kernel.function("whole") { println($$parms) }`},
		"stap_vars":     {"stap", "-D", "MAXSTRINGLEN=512", "-r", image, "-e", `probe kernel.function("whole") { println($$vars) }`},
	} {
		said := strings.Join(says(t, append(ask, "--call", "run()")...), "")
		for i, n := range m.params {
			name := fmt.Sprintf("p%d", i)
			found := regexp.MustCompile(` ` + name + `=(\S+)`).FindStringSubmatch(said)
			require.NotNil(t, found, "%s: %s", tool, said)
			got, want := asC(t, fetch{number: n, field: true}, found[1]), decimal(m.passed[i])[0]
			assert.Equal(t, want, got, "%s: %s %s", tool, n.name, name)
		}
	}
}

// What a notation cannot express is refused, and the refusal names the variable.
func TestDrawnRefusals(t *testing.T) {
	d := &drawnProgram{r: rand.New(rand.NewPCG(seeds(t, 1)[0], 0))}
	m := drawMain(d)
	text := m.source(d)
	image := buildDrawn(t, text, "-gdwarf-5")
	walk, _ := marked(text)("walk")
	gone, _ := marked(text)("gone")
	for probe, why := range map[string]string{
		"pieces s":                        "s is in pieces: 8 bytes %di, 8 bytes %si, which no probe fetches",
		"pieces s.first":                  "s is in pieces",
		"crossing p->crosses":             "p->crosses is a bitfield that crosses its words",
		"tables t->rows[1][1]":            "t->rows[1] is no array and no pointer",
		"tables t->rows:string":           "t->rows is no char* and no array of char",
		"tables t->missing":               "struct table has no member missing",
		"tables t.rows":                   "t is a pointer; write t->rows",
		"tables missing":                  "tables has no variable missing",
		fmt.Sprintf("walk:%d i", walk):    "i is computed",
		fmt.Sprintf("gone:%d a", gone):    "a is %di as it was at the entry",
		fmt.Sprintf("gone:%d a:u8", gone): "a is %di as it was at the entry",
	} {
		assert.Contains(t, refused(t, "probe", image, "-D", probe), why, probe)
	}
	for body, why := range map[string]string{
		`kernel.function("pieces") { println($s->third) }`:                       "cannot handle offset into register",
		`kernel.function("pieces") { println($s) }`:                              "'struct pair' is being accessed instead of a member such as '->first'",
		`kernel.function("tables") { println($t->rows[1][1]) }`:                  "invalid access",
		`kernel.function("tables") { println($t->missing) }`:                     "unable to find member 'missing' for struct table",
		`kernel.function("tables") { println($missing) }`:                        "unable to find local 'missing'",
		fmt.Sprintf(`kernel.statement("gone@drawn.c+%d") { println($a) }`, gone): "failed to retrieve location attribute for 'a'",
		fmt.Sprintf(`kernel.statement("walk@drawn.c+%d") { println($n) }`, walk): "failed to retrieve location attribute for 'n'",
	} {
		assert.Contains(t, refused(t, "stap", "-r", image, "-e", "probe "+body, "--call", "run()"), why, body)
	}
	image = buildDrawn(t, text, "-gbtf")
	for body, why := range map[string]string{
		`fentry:tables { print(args.missing); }`:                        "missing",
		`kprobe:tables { print(((struct table *)arg0)->missing); }`:     "missing",
		`kprobe:tables { print(((struct absent *)arg0)->rows[0][0]); }`: "absent",
	} {
		assert.Contains(t, refused(t, "bpftrace", "-r", image, "-e", body, "--call", "run()"), why, body)
	}
}

// withoutTypedefs puts types in the place of their typedefs, which scripts of bpftrace do not declare.
var withoutTypedefs = strings.NewReplacer("u16_t", "unsigned short", "s8_t", "signed char")

// A program is drawn, compiled with optimization, and run. Probes have to fetch the values that the program has put
// into its variables.
func TestDrawnValuesFetched(t *testing.T) {
	for _, seed := range seeds(t, 3) {
		t.Run(fmt.Sprintf("seed_%d", seed), func(t *testing.T) {
			d := &drawnProgram{r: rand.New(rand.NewPCG(seed, 0))}
			m := drawMain(d)
			text := m.source(d)
			for name, debug := range map[string]string{"DWARF_5": "-gdwarf-5", "DWARF_4": "-gdwarf-4"} {
				image := buildDrawn(t, text, debug)
				list := append(m.calls(d, false), m.lines(marked(text))...)
				t.Run(name+"_kprobe_events", func(t *testing.T) { fetchedByEvents(t, image, list) })
				t.Run(name+"_stap", func(t *testing.T) { fetchedByStap(t, image, list) })
			}
			t.Run("params", func(t *testing.T) { params(t, buildDrawn(t, text, "-gdwarf-5"), m) })
			image := buildDrawn(t, text, "-gbtf")
			list := m.calls(d, true)
			t.Run("BTF_kprobe_events", func(t *testing.T) { fetchedByEvents(t, image, list) })
			t.Run("BTF_stap", func(t *testing.T) { fetchedByStap(t, image, list) })
			t.Run("BTF_bpftrace", func(t *testing.T) { fetchedByBpftrace(t, image, "", list) })
			image = buildDrawn(t, text, "-g0")
			t.Run("declared_bpftrace", func(t *testing.T) {
				fetchedByBpftrace(t, image, withoutTypedefs.Replace(d.declared), m.withoutTypes(d))
			})
		})
	}
}
