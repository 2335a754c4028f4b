package definition_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/tracing/definition"
	"kprobelab/profile"
)

func tracing(t testing.TB, kernel string) *profile.Tracing {
	c, ok := profile.Named(kernel)
	require.True(t, ok)
	return &c.Tracing
}

func parse(t testing.TB, kernel, line string) (*definition.Definition, error) {
	return definition.Parse(definition.ReadLine(line), fakeKernel{}, tracing(t, kernel))
}

// answer returns a kernel's answer to a definition: the line that is read back, or
// the errno and the message with the caret's column.
func answer(t testing.TB, kernel, line string) string {
	d, err := parse(t, kernel, line)
	if err == nil {
		return d.String(d.MaxActive)
	}
	var e *definition.Error
	require.ErrorAs(t, err, &e)
	text := e.ID.Text(tracing(t, kernel))
	if text == "" {
		return errno.Of(err).Name()
	}
	return fmt.Sprintf("%s %d %s", errno.Of(err).Name(), e.Column, text)
}

// TestDefinitions asks every release of testdata/definitions.txt.
func TestDefinitions(t *testing.T) {
	text, err := os.ReadFile("testdata/definitions.txt")
	require.NoError(t, err)
	kernels, n := []string{}, 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			kernels = strings.Fields(strings.Trim(line, "[]"))
		default:
			def, want, ok := strings.Cut(line, " -> ")
			require.True(t, ok, line)
			def = expandRuns(def)
			want = expandRuns(want)
			for _, k := range kernels {
				require.Equal(t, want, answer(t, k, def), "%s: %s", k, def)
				n++
			}
		}
	}
	require.Greater(t, n, 150)
}

// Rule: $arg* of a function without BTF is an unknown variable, and from some
// stable releases on it has an errno of its own.
func TestStarWithoutBTF(t *testing.T) {
	for refused, want := range map[bool]errno.Errno{false: errno.EINVAL, true: errno.EOPNOTSUPP} {
		c := *tracing(t, "6.12")
		c.StarRefused = refused
		_, err := definition.Parse(definition.ReadLine("r mod:modfn $arg*"), fakeKernel{}, &c)
		require.Equal(t, want, errno.Of(err))
	}
}

// Rule: a kernel with BTF that was built without PROBE_EVENTS_BTF_ARGS does not read it: $argN is a
// register, $arg* an unknown variable, and a parameter has no name (kernel/trace/trace_probe.c).
func TestBTFLeftOut(t *testing.T) {
	c := *tracing(t, "6.12")
	c.NoBTFArgs, c.StarRefused = true, false
	for line, want := range map[string]errno.Errno{
		"p fn $arg1": 0, "p fn a=$arg2:x32": 0, "p fn $arg9": 0, "r fn $arg1": 0, "r fn $retval": 0, "p fn +0($arg1):u64": 0,
		"p fn $arg*": errno.EINVAL, "p fn $arg1 $arg*": errno.EINVAL, "r fn $arg*": errno.EINVAL, "p fn $arg0": errno.EINVAL,
		"p fn file": errno.EOPNOTSUPP, "p fn a=file->f_path": errno.EOPNOTSUPP,
	} {
		_, err := definition.Parse(definition.ReadLine(line), fakeKernel{}, &c)
		if want == 0 {
			require.NoError(t, err, line)
			continue
		}
		require.Equal(t, want, errno.Of(err), line)
	}
	// An argument without a type has none that BTF knows.
	d, err := definition.Parse(definition.ReadLine("p fn $arg1"), fakeKernel{}, &c)
	require.NoError(t, err)
	require.Equal(t, "x64", d.Args[0].Type.Name)
}

// Rule: where $arg0 is a word of its own, some releases look for it among the parameters
// that BTF names; everywhere else 0 is no number. 6.12.90 and 6.12.118, booted.
func TestArgumentZero(t *testing.T) {
	for _, c := range []struct {
		line    string
		looked  errno.Errno
		refused errno.Errno
	}{
		{"p fn $arg0", errno.ENOENT, errno.EINVAL}, {"r fn $arg0", errno.ENOENT, errno.EINVAL}, {"p fn $arg00:u8", errno.ENOENT, errno.EINVAL},
		{"p fn $arg1 $arg0", errno.ENOENT, errno.EINVAL}, {"p fn a=$arg0", errno.EINVAL, errno.EINVAL}, {"p fn +0($arg0)", errno.EINVAL, errno.EINVAL},
		{"p fn+1 $arg0", errno.EINVAL, errno.EINVAL}, {"p fn $arg0x", errno.ENOENT, errno.ENOENT},
	} {
		for zero, want := range map[bool]errno.Errno{true: c.looked, false: c.refused} {
			rules := *tracing(t, "6.12")
			rules.ArgZero = zero
			_, err := definition.Parse(definition.ReadLine(c.line), fakeKernel{}, &rules)
			require.Equal(t, want, errno.Of(err), "%s, ArgZero %v", c.line, zero)
		}
	}
}

// Rule: a bit field that BTF names has the type of the integer that holds it, and is
// taken out of that; with a type in the definition the bytes stay as they are.
func TestBitFieldsType(t *testing.T) {
	for line, want := range map[string]struct {
		typ      string
		bitfield *definition.Op
	}{
		"p fn file->f_path.dentry->flags":       {"s32", &definition.Op{Code: definition.OpBitfield, Size: 4, Left: 24, Right: 27}},
		"p fn a=file->f_path.dentry->tiny":      {"u8", &definition.Op{Code: definition.OpBitfield, Size: 1, Left: 1, Right: 6}},
		"p fn a=file->f_path.dentry->flags:u8":  {"u8", nil},
		"p fn a=file->f_path.dentry->flags:x64": {"x64", nil},
		"p fn n":                                {"s32", nil},
	} {
		d, err := parse(t, "6.12", line)
		require.NoError(t, err, line)
		require.Equal(t, want.typ, d.Args[0].Type.Name, line)
		var found *definition.Op
		for i := range d.Args[0].Code {
			if d.Args[0].Code[i].Code == definition.OpBitfield {
				found = &d.Args[0].Code[i]
			}
		}
		require.Equal(t, want.bitfield, found, line)
	}
}

// expandRuns writes <x*70> out as 70 times x.
func expandRuns(s string) string {
	for {
		i := strings.Index(s, "<x*")
		if i < 0 {
			return s
		}
		var n int
		j := strings.IndexByte(s[i:], '>') + i
		fmt.Sscanf(s[i:j], "<x*%d", &n)
		s = s[:i] + strings.Repeat("x", n) + s[j+1:]
	}
}

func TestDerefsAreCounted(t *testing.T) {
	nested := func(n int, base string) string {
		return "p fn " + strings.Repeat("+0(", n) + base + strings.Repeat(")", n)
	}
	for base, most := range map[string]int{"%ax": 14, "@0": 13, "@fn": 12} {
		require.NotContains(t, answer(t, "6.1", nested(most, base)), "nested", base)
		require.Contains(t, answer(t, "6.1", nested(most+1, base)), "EINVAL 8 Dereference is too much nested", base)
	}
}

func TestTooManyArguments(t *testing.T) {
	line := "p fn" + strings.Repeat(" %ax", 129)
	d, err := parse(t, "6.1", line)
	require.NoError(t, err)
	require.Len(t, d.Args, 128, "the rest is ignored")
	require.Equal(t, "E2BIG", answer(t, "6.12", line))
}

func TestEventTooBig(t *testing.T) {
	line := "p fn" + strings.Repeat(" +0(%ax):u64[64]", 6)
	_, err := parse(t, "6.1", line)
	require.NoError(t, err)
	_, err = parse(t, "6.1", line+" %ax:u8")
	require.ErrorIs(t, err, errno.E2BIG)
	var e *definition.Error
	require.True(t, errors.As(err, &e))
	require.Equal(t, definition.EventTooBig, e.ID)
	require.Equal(t, len(line)+1, e.Column)
}

func TestErrorIsOneLine(t *testing.T) {
	_, err := parse(t, "6.1", "p:a fn $foo")
	require.EqualError(t, err, "p:a fn $foo (column 7): Invalid $-variable specified: invalid argument")
	_, err = parse(t, "6.1", "q fn")
	require.EqualError(t, err, "q fn: invalid argument")
}

func ExampleParse() {
	c, _ := profile.Named("6.1")
	for _, line := range []string{"r:my/ret fn $retval:s32", "p fn %foo"} {
		d, err := definition.Parse(definition.ReadLine(line), fakeKernel{}, &c.Tracing)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(d.String(0))
	}
	// Output:
	// r:my/ret fn arg1=$retval:s32
	// p fn %foo (column 5): Invalid register name: invalid argument
}

// Rule: to 4.0 numbers without a sign are hexadecimal without 0x, and those of 4 bytes and
// more are printed as long (the print fmt of 3.2 and 3.10, by their source).
func TestNumbersOfOldReleases(t *testing.T) {
	for kernel, want := range map[string][]string{
		"3.2": {"%x", "%lx", "%llx", "%d", "%ld", "%lld"}, "3.10": {"%x", "%lx", "%llx", "%d", "%ld", "%lld"},
		"4.4": {"0x%x", "0x%x", "0x%Lx", "%d", "%d", "%Ld"}, "4.14": {"%u", "%u", "%Lu", "%d", "%d", "%Ld"},
	} {
		d, err := parse(t, kernel, "p fn %ax:u8 %ax:u32 %ax:u64 %ax:s8 %ax:s32 %ax:s64")
		require.NoError(t, err, kernel)
		var got []string
		for i := range d.Args {
			got = append(got, d.Args[i].Type.Format)
		}
		require.Equal(t, want, got, kernel)
	}
	_, err := parse(t, "3.10", "p fn %ax:x64")
	require.ErrorIs(t, err, errno.EINVAL)
}
