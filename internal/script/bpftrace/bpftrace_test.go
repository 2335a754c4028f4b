package bpftrace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/ctype"
	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
)

// program is a file with functions, one of them with a variable's name.
func program(file string) (*host.Program, error) {
	if file != "/bin/p" {
		return nil, os.ErrNotExist
	}
	return &host.Program{
		File:      file,
		Functions: []host.ProgramSymbol{{Name: "one", Addr: 0x1000, Size: 16, Offset: 0x200}, {Name: "other", Addr: 0x1010, Size: 8, Offset: 0x210}},
		Variables: []host.ProgramSymbol{{Name: "count", Addr: 0x3000, Size: 4}},
	}, nil
}

// Where a probe of a program is, and what is wrong with one.
func TestPrograms(t *testing.T) {
	k := &Kernel{Kernel: host.Kernel{Program: program}, FunctionsAtReturns: true}
	for point, want := range map[string][]host.InProgram{
		"uprobe:/bin/p:one":     {{Addr: 0x1000, Offset: 0x200}},
		"u:p:one":               {{Addr: 0x1000, Offset: 0x200}},
		"uprobe:/bin/p:one+4":   {{Addr: 0x1004, Offset: 0x204}},
		"uprobe:/bin/p:0x1012":  {{Addr: 0x1012, Offset: 0x212}},
		"uretprobe:/bin/p:o*":   {{Addr: 0x1000, Offset: 0x200, Return: true}, {Addr: 0x1010, Offset: 0x210, Return: true}},
		"uprobe:/bin/p:nothin*": nil,
	} {
		s, err := Analyze("stdin", point+" { @[func, ustack, usym(arg0), str(arg1)] = count(); }", &Options{}, k)
		if strings.Contains(point, "uret") {
			s, err = Analyze("stdin", point+" { @[func, retval] = count(); }", &Options{}, k)
		}
		if want == nil {
			require.NoError(t, err)
			require.Equal(t, "No probes to attach\n", s.Attaching())
			continue
		}
		require.NoError(t, err, point)
		var got []host.InProgram
		for _, p := range s.Probes {
			require.Equal(t, host.User, p.Kind)
			in := *p.InProgram
			in.Program = nil
			got = append(got, in)
		}
		require.Equal(t, want, got, point)
	}
	for script, want := range map[string]string{
		"uprobe:/bin/q:f { }":              "ERROR: uprobe target file '/bin/q' does not exist or is not executable\n",
		"uprobe::f { }":                    "ERROR: uprobe should have a target\n",
		"uprobe:/bin/p: { }":               "ERROR: uprobe should be attached to a function and/or address\n",
		"uprobe:/bin/p:one+1+2 { }":        "ERROR: Cannot take more than one offset\n",
		"uretprobe:/bin/p:one+1 { }":       "ERROR: Offset not allowed\n",
		"uprobe:/bin/p:cpp:one { }":        "ERROR: uprobe: names of C++ are not there\n",
		"uprobe:/bin/p:go:one { }":         "ERROR: unsupported language type: go\n",
		`uprobe:/bin/p:one { uaddr("x") }`: "ERROR: Could not resolve symbol: /bin/p:x\n",
		`BEGIN { uaddr("one") }`:           "ERROR: uaddr can not be used with \"BEGIN\" probes\n",
	} {
		_, err := Analyze("stdin", script, &Options{}, k)
		var p *Problems
		require.ErrorAs(t, err, &p, script)
		assert.Contains(t, p.Text(), want, script)
	}
	for script, want := range map[string]string{
		"uprobe:/bin/p:three { }":  "ERROR: Could not resolve symbol: /bin/p:three, cannot attach probe.\n",
		"uprobe:/bin/p:0x9000 { }": "ERROR: Could not resolve address: /bin/p:0x9000\n",
		"uprobe:/bin/p:one+16 { }": "ERROR: Offset outside the function bounds ('one' size is 16)\n",
	} {
		s, err := Analyze("stdin", script, &Options{}, k)
		require.NoError(t, err, script)
		assert.True(t, s.Failed, script)
		assert.Equal(t, want, s.Log, script)
	}
	list, _ := List("uprobe:/bin/p:o*", false, k)
	require.Equal(t, "uprobe:/bin/p:one\nuprobe:/bin/p:other\n", list)
	list, _ = List("uprobe:/bin/q:*", false, k)
	require.Empty(t, list)
}

// What is wrong with a script is said in bpftrace's words, at its place.
func TestErrors(t *testing.T) {
	for script, want := range map[string]string{
		`BEGIN { $x = 1 + ; }`:                                   "stdin:1:18-19: ERROR: syntax error, unexpected ;\nBEGIN { $x = 1 + ; }\n                 ~\n",
		"BEGIN { $x = 1;\n foo(2); }":                            "stdin:2:2-5: ERROR: Unknown function: foo\n foo(2); }\n ~~~\n",
		`BEGIN { @ = bar + 1 }`:                                  "stdin:1:13-16: ERROR: Unknown identifier: 'bar'\n",
		`BEGIN { "abc }`:                                         "stdin:1:9-15: ERROR: unterminated string\n",
		`BEGIN { printf("%d\n") }`:                               "stdin:1:9-23: ERROR: printf: Not enough arguments for format string (0 supplied, 1 expected)\n",
		`BEGIN { printf("%d\n", "a") }`:                          "stdin:1:9-28: ERROR: printf: %d specifier expects a value of type int (string supplied)\n",
		`BEGIN { @a = count(); printf("%d", @a) }`:               "ERROR: printf: %d specifier expects a value of type int (count_t supplied)\n",
		"#define N 2\nstruct f { char x[N * 2 + n]; } BEGIN { }": "ERROR: definitions: 'n' is not a number\n",
		"BEGIN { } \n\nkprobe { }":                               "stdin:1-3: ERROR: kprobe probe type requires 1 or 2 arguments, found 0\n",
		`BEGIN /"a"/ { @ = 1; }`:                                 "stdin:1:7-12: ERROR: Invalid type for predicate: string\n",
		`BEGIN { @a = 1; @a = "s" }`:                             "stdin:1:17-19: ERROR: Type mismatch for @a: trying to assign value of type 'string[2]' when map already contains a value of type 'int64'\n",
		`BEGIN { @a[1] = 1; @a["x"] = 2 }`:                       "stdin:1:20-27: ERROR: Argument mismatch for @a: trying to access with arguments: 'string[2]' when map expects arguments: 'int64'\n",
		`BEGIN { print(@nothing) }`:                              "stdin:1:9-23: ERROR: Undefined map: @nothing\n",
		`BEGIN { $x = count() }`:                                 "stdin:1:14-21: ERROR: count() should be directly assigned to a map\n",
		`BEGIN { break; }`:                                       "stdin:1:9-14: ERROR: break used outside of a loop\n",
		`BEGIN { unroll(101) { @++ } }`:                          "stdin:1:9-20: ERROR: unroll maximum value is 100\n",
		`BEGIN { @ = lhist(1, 0, 10000, 1) }`:                    "stdin:1:13-34: ERROR: lhist() too many buckets, must be <= 1000 (would need 10000)\n",
		`BEGIN { system("ls") }`:                                 "stdin:1:9-21: ERROR: system() is an unsafe function being used in safe mode\n",
		`BEGIN { cat("/etc/passwd") }`:                           "stdin:1:9-27: ERROR: cat(): there are no files of a running system here\n",
		`BEGIN { $x = retval }`:                                  "stdin:1:14-20: ERROR: The retval builtin can only be used with 'kretprobe' and 'uretprobe' and 'fentry' probes\n",
		`BEGIN { } BEGIN { }`:                                    "stdin:1:10-16: ERROR: More than one BEGIN probe defined\n",
		`kprobe { }`:                                             "stdin:1:1-7: ERROR: kprobe probe type requires 1 or 2 arguments, found 0\n",
		`nothing:f { }`:                                          "stdin:1:1-10: ERROR: Invalid probe type: nothing\n",
		`interval:x:1 { }`:                                       "stdin:1:1-13: ERROR: x is not an accepted unit of time\n",
		`uprobe:/bin/sh:main { }`:                                "stdin:1:1-20: ERROR: uprobe: probes of programs need the dump of a booted kernel (-r)\n",
		`watchpoint:0:3:zww { }`: "ERROR: watchpoint must be attached to a non-zero address\nwatchpoint:0:3:zww { }\n~~~~~~~~~~~~~~~~~~\n" +
			"stdin:1:1-19: ERROR: watchpoint length must be one of (1,2,4,8)\nwatchpoint:0:3:zww { }\n~~~~~~~~~~~~~~~~~~\n" +
			"stdin:1:1-19: ERROR: watchpoint mode must be combination of (r,w,x)\nwatchpoint:0:3:zww { }\n~~~~~~~~~~~~~~~~~~\n" +
			"stdin:1:1-19: ERROR: watchpoint modes may not be duplicated\n",
		`watchpoint:0x10:8:r { }`:                      "ERROR: invalid watchpoint mode: r\n",
		`watchpoint:-1:8:xr { }`:                       "ERROR: invalid watchpoint mode: rx\n",
		`watchpoint:010:8: { }`:                        "ERROR: watchpoint mode must be combination of (r,w,x)\n",
		`watchpoint:f:8:w { }`:                         "ERROR: stoull\nInvalid function/address argument\n",
		`watchpoint:16z:8:w { }`:                       "ERROR: Found trailing non-numeric characters\nInvalid function/address argument\n",
		`watchpoint:f+arg1+arg2:8:w { }`:               "ERROR: Invalid function/address argument\n",
		`watchpoint:f+3:8:w { }`:                       "ERROR: Invalid function argument\n",
		`watchpoint:16::w { }`:                         "ERROR: stoull\nInvalid length argument\n",
		`w:f+arg7:8:w { }`:                             "ERROR: -p PID or -c CMD required for watchpoint\nw:f+arg7:8:w { }\n~~~~~~~~~~~~\nstdin:1:1-13: ERROR: x86_64 doesn't support arg7\n",
		`aw:16:8:w { }`:                                "ERROR: asyncwatchpoint requires a function name\n",
		`w:16:8:w { @ = func }`:                        "ERROR: The func builtin can not be used with 'watchpoint' probes\n",
		`kprobe:f { print(path(arg0)) }`:               "ERROR: The path function can only be used with 'fentry', 'fexit', 'iter' probes\n",
		`BEGIN { print(percpu_kaddr("runqueues")) }`:   "ERROR: Could not resolve variable \"runqueues\" from BTF\n",
		`struct f { int char x; } BEGIN { }`:           "ERROR: definitions: cannot combine 'char' with the words before\n",
		`struct f { long long long x; } BEGIN { }`:     "ERROR: definitions: cannot combine 'long' with the words before\n",
		`struct f { int (*g)(int char *); } BEGIN { }`: "ERROR: definitions: cannot combine 'char' with the words before\n",
		`struct f { int (*g)(int, char *a[2], int (*)(void), ...), ; } BEGIN { }`: "ERROR: definitions: expected member name before ';'\n",
		`struct f { int (*g)(int, char 4*); } BEGIN { }`:                          "ERROR: definitions: expected ')'\n",
		`struct f { int b; long b; } BEGIN { }`:                                   "ERROR: definitions: duplicate member 'b'\n",
		`struct f { int b; struct { int c; } } BEGIN { }`:                         "ERROR: definitions: expected member name or ';' after declaration specifiers\n",
		`struct f { int b; union x { int c; } } BEGIN { }`:                        "ERROR: definitions: expected member name or ';' after declaration specifiers\n",
		`struct f { struct { int b; }; int b; } BEGIN { }`:                        "ERROR: definitions: duplicate member 'b'\n",
		`struct f { int b; union { int c, b; }; } BEGIN { }`:                      "ERROR: definitions: duplicate member 'b'\n",
		`enum e { A, A } BEGIN { }`:                                               "ERROR: definitions: redefinition of enumerator 'A'\n",
		`enum e { A }; enum g { B, A }; BEGIN { }`:                                "ERROR: definitions: redefinition of enumerator 'A'\n",
		`struct f { int } BEGIN { }`:                                              "ERROR: definitions: expected member name or ';' after declaration specifiers\n",
		`struct f { int b[2][-1]; } BEGIN { }`:                                    "ERROR: definitions: 'b' declared as an array with a negative size\n",
		`struct f { int struct; } BEGIN { }`:                                      "ERROR: definitions: expected member name before 'struct'\n",
		"struct f { int x; } BEGIN { $x = (struct\n\tf *)0; }":                    "ERROR: Cannot resolve unknown type \"struct \n\tf\"\n",
		`struct f { int x; } BEGIN { $x = (f *)0; }`:                              "ERROR: Cannot resolve unknown type \"f\"\n",
		`BEGIN { $t = (1, 2); print($t.2); }`:                                     "Invalid tuple index: 2. Found 2 elements in tuple.",
		`BEGIN { let $x: uint8 = 300; }`:                                          "which does not fit into the variable of type 'uint8'",
		`BEGIN { $x = (struct nothing *)0; }`:                                     "ERROR: Cannot resolve unknown type \"struct nothing\"\n",
		`BEGIN { @a = 1; for ($kv : @a) { } }`:                                    "Maps used as for-loop expressions must have keys to iterate over",
		`config = { nothing = 1 } BEGIN { }`:                                      "ERROR: Unrecognized config variable: nothing\n",
		"# 1 x\nBEGIN { }":                                                        "ERROR: definitions: invalid filename for line marker directive\n",
		"# 1 \"x\" 2\nBEGIN { }":                                                  "ERROR: definitions: invalid line marker flag '2': cannot pop empty include stack\n",
		"# 1.5\nBEGIN { }":                                                        "ERROR: definitions: line marker directive requires a simple digit sequence\n",
		"#foo\nBEGIN { }":                                                         "ERROR: definitions: invalid preprocessing directive\n",
		"#if 1\nBEGIN { }":                                                        "ERROR: definitions: unterminated conditional directive\n",
		"#undef 3\nBEGIN { }":                                                     "ERROR: definitions: macro name must be an identifier\n",
		"#define A(x\nBEGIN { }":                                                  "ERROR: definitions: expected comma in macro parameter list\n",
		"#include\nBEGIN { }":                                                     "ERROR: definitions: expected \"FILENAME\" or <FILENAME>\n",
		`struct f { nothing_t x; } BEGIN { }`:                                     "ERROR: definitions: unknown type name 'nothing_t'\n",
		`struct f { struct f x; } BEGIN { }`:                                      "ERROR: definitions: field has incomplete type 'struct f'\n",
		`struct f { int x; } struct f { int y; } BEGIN { }`:                       "ERROR: definitions: redefinition of 'f'\n",
		`struct f { int x : 33; } BEGIN { }`:                                      "ERROR: definitions: the width of a bit-field is wrong\n",
		`struct f { char x[99999999]; } BEGIN { }`:                                "ERROR: definitions: an array is too large\n",
		`struct f { int x, ; } BEGIN { }`:                                         "ERROR: definitions: expected member name before ';'\n",
		`struct f { int x; } BEGIN { $f = (struct f *)0; $y = $f->y }`:            "does not contain a field named 'y'\n",
		`BEGIN { @ = hist(1, 2); @ = hist(1, 3) }`:                                "ERROR: Different bits in a single hist, had 2 now 3\n",
		"#define A A1 A1 A1\n#define A1 A A A\nBEGIN { A }":                       "ERROR: Macro recursion limit reached: ",
		strings.Repeat("BEGIN { if (1) { ", 300):                                  "ERROR: ",
		"BEGIN { $x = " + strings.Repeat("(", 1000) + "1":                         "ERROR: the script is nested too deep\n",
	} {
		_, err := Analyze("stdin", script, &Options{}, nil)
		var p *Problems
		require.ErrorAs(t, err, &p, script)
		assert.Contains(t, p.Text(), want, script)
	}
}

// An array of characters is text; one of what is only defined as a character is not (u8).
func TestArraysOfCharacters(t *testing.T) {
	char := &ctype.Type{Kind: ctype.Base, Bytes: 1, Char: true, Name: "unsigned char"}
	assert.Equal(t, "string[6]", fromC(ctype.ArrayOf(char, 6)).String())
	d, err := define(&preprocessor{definitions: []string{"struct f { u8 bytes[4]; char text[4]; }"}}, nil)
	require.NoError(t, err)
	for member, want := range map[string]string{"bytes": "uint8[4]", "text": "string[4]"} {
		m, ok := d.types["struct f"].Member(member)
		require.True(t, ok)
		assert.Equal(t, want, fromC(m.Type).String(), member)
	}
}

// What is warned of, and what is not.
func TestWarnings(t *testing.T) {
	k := &Kernel{Events: func(p string) []Event {
		if p == "a:b" {
			return []Event{{Name: p}}
		}
		return nil
	}}
	for script, want := range map[string]string{
		`BEGIN { $x = (int64)-1 < (uint64)1; }`:                                "comparison of integers of different signs: 'int64' and 'uint64' can lead to undefined behavior",
		`BEGIN { $x = (uint64)2; if ($x > 1) { } $y = $x + 1; }`:               "",
		`BEGIN { $x = (int64)-1 + (uint64)1; }`:                                "arithmetic on integers of different signs: 'int64' and 'uint64' can lead to undefined behavior",
		`BEGIN { $x = -4; $y = $x / 2; }`:                                      "signed operands for '/' can lead to undefined behavior (cast to unsigned to silence warning)",
		`BEGIN { $y = (uint64)4 / 2; $z = 4 % 3; }`:                            "",
		`BEGIN { let $x; $y = $x; $x = 1; }`:                                   "Variable used before it was assigned: $x",
		`BEGIN { let $x; }`:                                                    "Variable $x never assigned to.",
		`BEGIN { return; exit(); }`:                                            "All code after a 'return' is unreachable.",
		`BEGIN { @ = 1; while (1) { print(@); break; } }`:                      "Due to it's asynchronous nature using 'print()' in a loop",
		`BEGIN { @ = stats(1); print(@, 2); }`:                                 "print()'s top and div arguments are ignored when used on stats() maps.",
		`BEGIN { @ = str(0, 4096); }`:                                          "length param (4096) is too long and will be shortened to 1024 bytes (see BPFTRACE_MAX_STRLEN)",
		`BEGIN { @ = buf(0, 4096); }`:                                          "buf() length is too long and will be shortened to 1024 bytes (see BPFTRACE_MAX_STRLEN)",
		`BEGIN /comm == "a task's name is not as long"/ { }`:                   "The literal is longer than the variable string (size=16), condition will always be false",
		`BEGIN { if ((int8 *)1 == (int16 *)2) { } }`:                           "comparison of distinct pointer types ('int8, 'int16')",
		`BEGIN { if (strcontains(str(0), str(1))) { } }`:                       "strcontains() is known to have verifier complexity issues",
		`tracepoint:a:b, tracepoint:a:c { }`:                                   "stdin:1:16-31: WARNING: tracepoint not found: a:c",
		`struct f { int x; } BEGIN { $p = (struct f *)0; @ = $p->x; @ = -1; }`: "",
	} {
		s, err := Analyze("stdin", script, &Options{}, k)
		require.NoError(t, err, script)
		said := strings.ReplaceAll(s.Warnings, "WARNING: Addrspace is not set\n", "")
		if want == "" {
			assert.Empty(t, said, script)
			continue
		}
		assert.Contains(t, said, want, script)
		assert.Equal(t, 1, strings.Count(said, "WARNING: "), script)
	}
}

// The corpus is accepted, with a kernel that has what it asks for.
func TestCorpusIsRead(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.bt")
	require.NoError(t, err)
	require.Greater(t, len(files), 8)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		_, problems := parse(newFile(f, string(b)), nil, Language23)
		assert.Empty(t, problems.list, f)
	}
}

func TestListing(t *testing.T) {
	k := kernelWith(booted())
	for pattern, want := range map[string]string{
		"kprobe:vfs_*":         "kprobe:vfs_open\nkprobe:vfs_read\n",
		"kprobe:vmlinux:vfs_*": "kprobe:vmlinux:vfs_open\nkprobe:vmlinux:vfs_read\n",
		"kr:own":               "kretprobe:own\n",
		"f:own":                "fentry:demo:own\n",
		"vfs_r*d":              "fentry:vmlinux:vfs_read\nkprobe:vfs_read\n", // kretprobe and fexit are not in a list of all kinds
		"*swi*":                "rawtracepoint:switch\ntracepoint:sched:switch\n",
	} {
		list, warnings := List(pattern, false, k)
		assert.Equal(t, want, list, pattern)
		assert.Empty(t, warnings, pattern)
	}
	list, warnings := List("kprobe:own,k:x.cold", false, k)
	assert.Equal(t, "kprobe:own\n", list)
	assert.Equal(t, "stdin:1:12-20: WARNING: x.cold"+notTraceable+"\nkprobe:own,k:x.cold\n           ~~~~~~~~\n", warnings)
}

// One block on many functions is one handler; parameters by their names need one for each.
func TestWildcardsShareTheirHandler(t *testing.T) {
	k := kernelWith(&fakeWays{traced: []host.Function{{Name: "a", Addr: 1}, {Name: "b", Addr: 2}, {Name: "c", Addr: 3}}})
	s, err := Analyze("stdin", `kprobe:* { @[probe, func, arg0] = count(); }`, &Options{}, k)
	require.NoError(t, err)
	assert.Len(t, s.Probes, 3)
	assert.Len(t, s.Program.Handlers, 1)
}

// A watchpoint's name has the program of -c, as bpftrace 0.23.2 has it on a booted kernel.
func TestNamesOfWatchpoints(t *testing.T) {
	for program, want := range map[string]string{"": "watchpoint:16:8:rw", "/bin/deep": "watchpoint:/bin/deep:16:8:rw"} {
		s, err := Analyze("stdin", `w:0x10:8:wr { @[probe] = count(); }`, &Options{Command: program != "", Program: program}, nil)
		require.NoError(t, err)
		assert.Equal(t, want, s.Probes[0].Point)
		assert.Equal(t, program != "", s.Probes[0].Watched.Target)
	}
}

// Types that have names of their own.
func TestTypesOfVariables(t *testing.T) {
	_, err := Analyze("stdin", `BEGIN { let $x : kstack_t = kstack; let $y : ustack_t = ustack; let $z : string[16] = comm; let $p : int8 * = (int8 *)0; }`, &Options{}, nil)
	require.NoError(t, err)
}

func TestUnsignedAndSignedComparisons(t *testing.T) {
	_, err := Analyze("stdin", `BEGIN { if ((uint64)1 < -1) { } $x = (int8)-1 < 0; }`, &Options{}, nil)
	require.NoError(t, err)
}

func FuzzAnalyze(f *testing.F) {
	files, _ := filepath.Glob("testdata/*/*.bt")
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(string(b), false)
	}
	newest, err := os.ReadFile("testdata/newest/features.txt")
	require.NoError(f, err)
	for _, one := range strings.Split(string(newest), "## ")[1:] {
		_, text, _ := strings.Cut(one, "\n")
		f.Add(strings.TrimSpace(text), true)
	}
	k := &Kernel{Kernel: host.Kernel{Functions: func(string) []host.Function { return []host.Function{{Name: "f", Addr: 0x1000}} }}}
	f.Fuzz(func(t *testing.T, text string, newest bool) {
		if len(text) > 1<<14 {
			return
		}
		o := &Options{Args: []string{"one", "2"}, Named: []string{"n=1"}}
		if newest {
			o.Language = Language27
		}
		s, err := Analyze("stdin", text, o, k)
		var p *Problems
		if errors.As(err, &p) {
			assert.NotEmpty(t, p.Text())
			return
		}
		require.NoError(t, err)
		var large *script.ErrTooLarge
		if _, err := script.Compile(s.Program); err != nil && !errors.As(err, &large) {
			t.Fatal(err)
		}
	})
}

func TestStrftime(t *testing.T) {
	const ns = 1767225600e9 + 12345678000
	for format, want := range map[string]string{
		"%H:%M:%S": "00:00:12", "%f": "%f", "%Y-%m-%d %j": "2026-01-01 001", "%a %b %e %%": "Thu Jan  1 %", "%s": "1767225612", "%q": "%q", "%": "%", "%-d %_d %_j %-k %0e": "1  1   1 0 01", "%P %G %g %U %W %V": "am 2026 26 00 00 01",
		"%^a %^p %Oy %Ec %E": "THU AM 26 Thu Jan  1 00:00:12 2026 %E", "%+ %5d|%-5d|%_5m|%08Y": "%+ 00001|    1|    1|00002026", "%#a %#p": "THU am",
		"%010A|%05Z|%#Z|%_9B|%-9B|%010p": "00Thursday|00UTC|utc|  January|  January|00000000AM", "%#c|%^c|%#x": "Thu Jan  1 00:00:12 2026|THU JAN  1 00:00:12 2026|01/01/26",
		"%010T|%012F|%3%|%03%|%04n": "0000:00:12|002026-01-01|  %|00%|000\n", "%z|%5z|%-z|%_z": "+0000|    +00000|+0|+   0", "%5N|%05Q|%5": "  %5N|0%05Q|   %5",
	} {
		assert.Equal(t, want, string(strftime(format, ns, nil)), format)
	}
	assert.True(t, bytes.HasPrefix(strftime("%T", 0, nil), []byte("00:00:00")))
}

// A field of an event is as wide as the event's format says, with the sign of its type.
func TestTypesOfEventFields(t *testing.T) {
	for text, want := range map[string]string{"int": "long", "unsigned int": "unsigned long", "pid_t": "unsigned long", "umode_t": "umode_t", "size_t": "size_t", "long": "long"} {
		assert.Equal(t, want, FieldType(text, 8), text)
		assert.Equal(t, text, FieldType(text, 4), text)
	}
}

// An address of a program is no address of the kernel's, unless the script says so, and none of either where bpftrace knows
// no address space.
func TestAddressSpaces(t *testing.T) {
	k := &Kernel{Kernel: host.Kernel{Functions: func(string) []host.Function { return []host.Function{{Name: "f", Addr: 0x1000}} }}}
	for text, want := range map[string]script.Space{
		`kprobe:f { $x = arg0; }`: script.KernelSpace, `kprobe:f { $x = uptr(arg0); }`: script.UserSpace, `kprobe:f { $x = uptr(arg0) + 8; }`: script.UserSpace,
		`kretprobe:f { $x = retval; }`: script.KernelSpace, `interval:s:1 { $x = (uint8 *)5; }`: script.AnySpace, `kprobe:f { $x = (uint8 *)5; }`: script.KernelSpace,
		`kprobe:f { $x = 5 + arg0; }`: script.KernelSpace, `kprobe:f { $x = uptr(arg0) + arg1; }`: script.AnySpace, `BEGIN { $x = curtask; }`: script.KernelSpace,
		`kprobe:f { $x = ~arg0; }`: script.AnySpace, `kprobe:f { $x = kptr(uptr(arg0)); }`: script.KernelSpace, `kprobe:f,interval:s:1 { $x = (uint8 *)5; }`: script.AnySpace,
		`BEGIN { $x = kaddr("a"); }`: script.KernelSpace, `kprobe:f { $x = reg("sp") + 8; }`: script.KernelSpace, `BEGIN { $x = (uint8 *)uptr(5); }`: script.UserSpace,
	} {
		f := newFile("stdin", text)
		tree, problems := parse(f, nil, Language23)
		c := &checker{o: &Options{}, k: k, t: tree, problems: problems}
		c.surround()
		c.lines, _ = preprocess(nil, false)
		c.check()
		require.Empty(t, problems.list, text)
		assert.Equal(t, want, c.slots[tree.probes[0]][0].typ.Space, text)
	}
}
