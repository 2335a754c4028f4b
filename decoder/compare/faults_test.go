package compare

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// faultyX86asm builds the line program with a copy of x86asm that has the faults of
// testdata/x86asm.
func faultyX86asm(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds x86asm anew")
	}
	dir := t.TempDir()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/arch").Output()
	if err != nil {
		t.Skipf("there is no go command, or no copy of x86asm: %v", err)
	}
	from := filepath.Join(strings.TrimSpace(string(out)), "x86", "x86asm")
	to := filepath.Join(dir, "arch", "x86", "x86asm")
	require.NoError(t, os.MkdirAll(to, 0o777))
	files, err := filepath.Glob(from + "/*.go")
	require.NoError(t, err)
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		if filepath.Base(f) == "decode.go" {
			text = []byte(strings.Replace(string(text), "func Decode(", "func decodeUnmended(", 1))
		}
		require.NoError(t, os.WriteFile(filepath.Join(to, filepath.Base(f)), text, 0o666))
	}
	faults, err := os.ReadFile("testdata/x86asm/faults.go.txt")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(to, "faults.go"), faults, 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "arch", "go.mod"), []byte("module golang.org/x/arch\n\ngo 1.25\n"), 0o666))
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile("../../" + name)
		require.NoError(t, err)
		if name == "go.mod" {
			text = append(text, "\nreplace golang.org/x/arch => "+filepath.Join(dir, "arch")+"\n"...)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o666))
	}
	program := filepath.Join(dir, "x86asmline")
	build := exec.Command("go", "build", "-modfile", filepath.Join(dir, "go.mod"), "-o", program, "../../internal/tools/x86asmline")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	return program
}

func startFault(t *testing.T, program, fault string) Decoder {
	t.Helper()
	t.Setenv("X86ASM_FAULT", fault)
	c, err := StartChild("x86asm with "+fault, program)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// askedOfFaults returns a number of questions that covers all forms.
func askedOfFaults() int { return 2*len(allForms()) + 5000 }

// TestInjectedFaults: each of twenty faults in x86asm's table is reported as worse, by its opcode
// and kind of difference, with a short example; nothing else is.
func TestInjectedFaults(t *testing.T) {
	program := faultyX86asm(t)
	for _, tt := range []struct {
		fault, what string
		// opcode is the only one that may change; shrunk is the length of the
		// shortest example at most.
		opcode string
		shrunk int
	}{
		{"length-shld", "length", "0f a4 shld", 5},
		{"length-pshufd", "length", "0f 70 pshufd", 8},
		{"length-bt", "length", "0f ba bt", 5},
		{"length-jl", "length", "0f 8c jl", 6},
		{"refused-imul", "refused", "0f af imul", 3},
		{"refused-cpuid", "refused", "0f a2 cpuid", 2},
		{"refused-cmpxchg", "refused", "0f b1 cmpxchg", 4},
		{"refused-syscall", "refused", "0f 05 syscall", 2},
		{"accepted-push-es", "accepted", "06", 1},
		{"accepted-daa", "accepted", "27", 1},
		{"accepted-aaa", "accepted", "37", 1},
		{"class-call", "class", "primary e8 call", 5},
		{"class-ret", "class", "primary c3 ret", 1},
		{"class-jmp", "class", "primary ff jmp", 2},
		{"target-jrcxz", "target", "primary e3 jrcxz", 2},
		{"target-loop", "target", "primary e2 loop", 2},
		{"target-jmp", "target", "primary eb jmp", 2},
		{"operands-imul", "operands", "0f af imul", 4},
		{"operands-cmpxchg", "operands", "0f b0 cmpxchg", 3},
		{"mnemonic-bt", "mnemonic", "0f a3 bt", 3},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			v := &Versions{Old: startFault(t, program, "none"), New: startFault(t, program, tt.fault)}
			_, err := v.Fuzz(1, askedOfFaults(), none)
			require.NoError(t, err)
			found := false
			for _, c := range v.Changes() {
				// With LOCK before it, it is no instruction, and has no name here.
				require.Contains(t, tt.opcode, c.Opcode, "%v %s: % x", c.Verdict, c.What, c.Bytes())
				if c.Ours.Length == 0 && !strings.HasPrefix(tt.fault, "accepted") {
					continue
				}
				require.NotEqual(t, Better, c.Verdict, "%s: % x: old %v, new %v", c.What, c.Bytes(), c.Old, c.New)
				if c.Verdict == Worse && c.What == tt.what {
					require.NoError(t, v.Shrink(c))
					require.Equal(t, Worse, judge(c.Ours, c.Old, c.New))
					require.LessOrEqual(t, len(c.Bytes()), tt.shrunk, "% x", c.Bytes())
					found = true
				}
			}
			require.True(t, found, "not found: %v", v.Changes())
			worse, err := v.Report(io.Discard, nil)
			require.NoError(t, err)
			require.Positive(t, worse)
		})
	}
}

// TestMendedFaults: five known faults of x86asm, mended, are each named as better.
func TestMendedFaults(t *testing.T) {
	program := faultyX86asm(t)
	v := &Versions{Old: startFault(t, program, "none"), New: startFault(t, program, "mended")}
	_, err := v.Fuzz(1, askedOfFaults(), none)
	require.NoError(t, err)
	better := map[string]bool{}
	for _, c := range v.Changes() {
		require.Equal(t, Better, c.Verdict, "%s: % x: old %v, new %v, ours %v", c.Opcode, c.Bytes(), c.Old, c.New, c.Ours)
		require.NoError(t, v.Shrink(c))
		better[fmt.Sprintf("%x", c.Bytes())] = true
	}
	for _, b := range []string{"f30f1efa", "0f01ee", "0f01e8", "0f01d9", "c5f87700"} {
		require.True(t, better[b], "%s: %v", b, better)
	}
	var text strings.Builder
	worse, err := v.Report(&text, nil)
	require.NoError(t, err)
	require.Zero(t, worse)
	require.Contains(t, text.String(), "\n0 kinds worse, ")
}
