package main

import (
	"bytes"
	"io"
	"kprobelab/profile"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// candidates are the values that __complete prints.
func candidates(words ...string) []string {
	var b bytes.Buffer
	complete(&b, words)
	var list []string
	for line := range strings.Lines(b.String()) {
		value, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		list = append(list, value)
	}
	return list
}

func TestComplete(t *testing.T) {
	for name, c := range map[string]struct{ words, want string }{
		"command":            {"bash|sy", "symbols"},
		"commands":           {"bash|", strings.Join(commandNames(), " ")},
		"samples":            {"bash|sample|", "kprobe kretprobe jprobe article"},
		"sample":             {"bash|sample|article|kr", "kretprobe"},
		"sample_flag":        {"bash|sample|article|kretprobe|--max", "--maxactive"},
		"sample_symbol":      {"bash|sample|kprobe|--symbol|vfs_w", "vfs_write"},
		"sample_no_image":    {"bash|sample|kprobe|", ""},
		"bench_path":         {"bash|bench|--path|r", "r rb ro r-ftrace r-missed"},
		"bench_hardware":     {"bash|bench|--hardware|i", "i386 :files"},
		"bench_symbol":       {"bash|bench|--image|-|--symbol|vfs_w", "vfs_write"},
		"bench_symbol_image": {"bash|bench|--image|/nosuch|--symbol|vfs_w", ""},
		"bench_call":         {"bash|bench|--call|snprin", "'snprintf("},
		"bench_image":        {"bash|bench|--image|x", ":files"},
		"bench_no_image":     {"bash|bench|", ""},
		"unknown_sample":     {"bash|sample|nosuch|x", ""},
		"unknown_command":    {"bash|nosuch|x", ""},
		"flag":               {"bash|run|--kr", "--kretprobe"},
		"decode":             {"bash|decode|", "check fuzz corpus"},
		"decode_flag":        {"bash|decode|--pr", "--profile"},
		"decode_file":        {"bash|decode|check|", ":files"},
		"decode_with":        {"bash|decode|check|--with|z", "zydis"},
		"help":               {"bash|info|--he", "--help"},
		"image":              {"bash|run|", ":files"},
		"image_after_flag":   {"bash|run|--json|/bo", ":files"},
		"pattern":            {"bash|symbols|-|vfs_rea", "vfs_read"},
		"explained":          {"bash|explain|-|vfs_rea", "vfs_read"},
		"assembler":          {"bash|explain|--asm|x", ":files"},
		"second_pattern":     {"bash|scan|-|gcd|vfs_rea", "vfs_read"},
		"points":             {"bash|scan|--points|x", ":files"},
		"probe":              {"bash|run|--kprobe|vfs_w", "vfs_write"},
		"probe_of_image":     {"bash|run|-|--kretprobe|vfs_o", "vfs_open"},
		"probe_no_data":      {"bash|run|--kprobe|linux_ban", ""},
		"probe_empty":        {"bash|run|--kprobe|", ""},
		"equals_whole":       {"zsh|run|--kprobe=vfs_w", "--kprobe=vfs_write"},
		"equals_bash_splits": {"bash|run|--kprobe|=|vfs_w", "vfs_write"},
		"equals_empty":       {"bash|run|--profile|=", strings.Join(profile.All(), " ")},
		"profile":            {"fish|info|--profile|5", "5.4 5.8 5.10 5.15"},
		"file_flag":          {"bash|run|--module|x", ":files"},
		"call":               {"bash|run|--call|snprin", "'snprintf("},
		"call_fish_quotes":   {"fish|run|--call|snprin", "snprintf("},
		"call_open_quote":    {"bash|run|--call|'snprin", "snprintf("},
		"call_argument":      {"bash|run|--call|'gcd(1", ""},
		"call_symbol":        {"bash|run|--call|'gcd(&linux_ban", "gcd(&linux_banner"},
		"task_second_call":   {"bash|run|--task|'gcd(1, 2); snprin", "gcd(1, 2); snprintf("},
		"not_a_value":        {"bash|run|--json|--kpr", "--kprobe"},
		"scenario":           {"bash|explore|optimize-h", "optimize-hit :files"},
		"scenario_once":      {"bash|explore|optimize-hit|o", ""},
		"bug":                {"zsh|explore|--bug|13", "13 13b"},
		"bug_equals":         {"zsh|explore|--bug=34", "--bug=34"},
		"replayed":           {"bash|explore|--replay|x", ":files"},
		"program":            {"bash|uprobe|", ":files"},
		"programs_own":       {"bash|uprobe|./prog|--wa", ":files"},
		"programs_file":      {"bash|uprobe|--file|x", ":files"},
		"exec_flag":          {"bash|exec|--kernel|-|--bef", "--before"},
		"exec_symbol":        {"bash|exec|--kernel|-|--kprobe|vfs_w", "vfs_write"},
		"shell":              {"bash|completion|", "bash fish zsh"},
		"bad_image":          {"bash|run|/nosuch|--kprobe|vfs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := candidates(strings.Split(c.words, "|")...)
			require.Equal(t, c.want, strings.Join(got, " "))
		})
	}
}

// commandNames are the program's commands, in its own order.
func commandNames() (names []string) {
	for _, c := range newApp(newTerm(io.Discard, io.Discard)).Commands {
		names = append(names, c.Name)
	}
	return names
}

func TestCompleteWithoutWords(t *testing.T) {
	require.Empty(t, candidates())
	require.Empty(t, candidates("bash"))
}

// The bash script itself, in a bash where there is one.
func TestBashScript(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine")
	}
	test := bashScript + `
kprobelab() { printf '%s\t%s\n' "vfs_read" "x" "vfs_write" "y"; [[ $1 == __complete ]] || echo bad; }
COMP_WORDS=(kprobelab run --kprobe vfs_); COMP_CWORD=3; _kprobelab
echo "${COMPREPLY[@]}"
`
	out, err := exec.Command(bash, "-c", test).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "vfs_read vfs_write\n", string(out))
}

func TestScriptsOfOtherShellsParse(t *testing.T) {
	for shell, flag := range map[string]string{"zsh": "-n", "fish": "--no-execute"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("no %s on this machine", shell)
			continue
		}
		cmd := exec.Command(path, flag, "/dev/stdin")
		cmd.Stdin = strings.NewReader(newApp(newTerm(io.Discard, io.Discard)).Shells[shell])
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", shell, out)
	}
}
