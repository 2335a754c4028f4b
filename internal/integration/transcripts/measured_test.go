package transcripts

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
)

var update = flag.Bool("update", false, "write testdata from the measured transcripts")

// The measured kernels, in order, and their transcripts.
var (
	folders = []string{"oracle510", "oracle", "oracle612"}
	names   = []string{"handler_regs", "misuse", "recursion_nmissed", "fault_handler", "neighbours", "kprobes_list"}
	// absent names the transcripts that were not taken: folder and name.
	absent = map[string]bool{"oracle fault_handler": true}
)

// rewrite changes a measured line where this machine cannot agree with it, or
// where it depends on the build. Each row says why.
var rewrites = []struct {
	why  string
	re   *regexp.Regexp
	with string
}{
	{"the test module is the guest's demo", regexp.MustCompile(`korct?_`), "demo_"},
	{"and its name", regexp.MustCompile(` \[korct\]`), ""},
	{"functions have other sizes", regexp.MustCompile(`(\+0x[0-9a-f]+)/0x[0-9a-f]+`), "$1"},
	{"the caller is the host", regexp.MustCompile(`regsview\+0x[0-9a-f]+`), "CALLER"},
	{"an address is none", regexp.MustCompile(`addr=0{16}`), "addr=0"},
	{"or another one", regexp.MustCompile(`addr=[0-9a-f]{16}`), "addr=set"},
	{"what lies there is undefined to 5.17", regexp.MustCompile(`ss=0xffff[0-9a-f]+`), "ss=garbage"},
	{"6.1 was measured without it, and never boosts", regexp.MustCompile(`(emul=\d)\]`), "$1 boost=0]"},
	{"a detour buffer is somewhere else", regexp.MustCompile(`bytes e9( [0-9a-f]{2}){4}`), "bytes e9 REL32"},
	{"so it is after an int3", regexp.MustCompile(`bytes cc((?: [0-9a-f]{2})*) e9( [0-9a-f]{2}){4}`), "bytes cc$1 e9 REL32"},
	{"what follows the function", regexp.MustCompile(`( c3)( [0-9a-f]{2})+ \[`), "$1 ["},
	{"the same outside brackets", regexp.MustCompile(`(emul=\d)$`), "$1 boost=0"},
	{"the guest's functions have no ENDBR", regexp.MustCompile(`^((?:ft post|kretprobe ft|nested).*)\[none\]`), "$1[flags=0x18 byte0=e8 emul=0 boost=0]"},
	{"nor this one", regexp.MustCompile(`vfs_read\+0x4`), "vfs_read+0x0"},
	{"nor the list's", regexp.MustCompile(`demo_ft\+0x4`), "demo_ft+0x0"},
	{"nor the demo's", regexp.MustCompile(`demo_ft\+0x5`), "demo_ft+0x1"},
	{"a warning names lines of the kernel's source", regexp.MustCompile(`^WARNING: .*`), "WARNING"},
	{"an address in a list", regexp.MustCompile(`^[0-9a-f]{16}  `), "ADDR  "},
	{"a time in the log", regexp.MustCompile(`^dmesg: \[ *[0-9.]+\]`), "dmesg:"},
	{"the module is another", regexp.MustCompile(`  korct( |$)`), "  demo$1"},
	{"a host function has no name", regexp.MustCompile(` pre_handler=\S+`), ""},
	{"where in the function that reads depends on its compiler", regexp.MustCompile(` regs->ip=.*( preempt_count=\S+) irqs_disabled=1 mode=\d`), "$1"},
	{"a Go handler knows better", regexp.MustCompile(` kprobe_running=0`), ""},
	{"", regexp.MustCompile(` +`), " "},
}

// left are lines about other things.
var left = regexp.MustCompile(`^(==|# |tgt_flt insns|RIP:|Tainted)|tgt text at` +
	// what is there depends on the build: the next functions, the function's second instruction
	`|offset 0x10000|offset 0x7fffffff|offset 6 `)

// leftBy are lines that an ENDBR before the fentry site makes different, and one
// that looks at the text while the optimizer's worker may or may not have run.
var leftBy = map[string]*regexp.Regexp{"oracle612": regexp.MustCompile(`symbol ok \+ offset 5|vfs_read\+4 |after unregister k1: `)}

// measured reads a transcript as the guest would print it.
func measured(t *testing.T, folder, name string) []string {
	b, err := os.ReadFile(oracle.File(t, folder, "transcripts", name+".txt"))
	require.NoError(t, err)
	text := string(b)
	isList := name == "kprobes_list"
	if isList { // what follows is the modes of files, and addresses
		text, _, _ = strings.Cut(text, "# ls -l")
	}
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		by := leftBy[folder]
		if isList && strings.HasPrefix(line, "# ") {
			lines = append(lines, line)
			continue
		}
		if line == "" || left.MatchString(line) || by != nil && by.MatchString(line) {
			continue
		}
		if strings.Contains(line, "boost=") {
			line = strings.NewReplacer(" boost=0", "~0", " boost=1", "~1").Replace(line)
		}
		for _, r := range rewrites {
			line = r.re.ReplaceAllString(line, r.with)
		}
		lines = append(lines, strings.NewReplacer("~0", " boost=0", "~1", " boost=1").Replace(line))
	}
	return sortLists(lines)
}

func golden(folder, name string) string {
	return filepath.Join("testdata", oracle.Kernels[folder]+"_"+name+".txt")
}

// TestGoldenIsWhatWasMeasured holds testdata to the measured transcripts.
func TestGoldenIsWhatWasMeasured(t *testing.T) {
	for _, folder := range folders {
		for _, name := range names {
			if absent[folder+" "+name] {
				continue
			}
			text := strings.Join(measured(t, folder, name), "\n") + "\n"
			if *update {
				require.NoError(t, os.WriteFile(golden(folder, name), []byte(text), 0o644))
			}
			b, err := os.ReadFile(golden(folder, name))
			require.NoError(t, err)
			require.Equal(t, string(b), text, "%s %s", folder, name)
		}
	}
}
