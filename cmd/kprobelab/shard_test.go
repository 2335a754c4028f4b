package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
)

// inShards runs a command in n shards, and returns the files of their outputs. The exit code of a shard that is whole is 0.
func inShards(t *testing.T, n int, args ...string) (names []string) {
	t.Helper()
	dir := t.TempDir()
	for i := 1; i <= n; i++ {
		var out, errs bytes.Buffer
		line := append([]string{"kprobelab", args[0], "--shard", fmt.Sprintf("%d/%d", i, n)}, args[1:]...)
		require.Zero(t, execute(line, &out, &errs), errs.String())
		require.Contains(t, errs.String(), fmt.Sprintf("shard %d/%d", i, n))
		names = append(names, filepath.Join(dir, fmt.Sprint(i)))
		require.NoError(t, os.WriteFile(names[i-1], out.Bytes(), 0o600))
	}
	return names
}

// Rule: the merged shards of a command print what one run prints, to the byte, on both outputs, with its exit code.
func TestShardsOfCommandsAreOneRun(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	probes := write("probes", "vfs_read\nnosuch\ncallee_pop+0xa\nvfs_*\nr:x gcd\ngcd+1\n")
	good := write("good", "vfs_read\n")
	points := write("points", "vfs_read\ngcd+1\nnosuch\nffffffff81000015\n")
	symbols := write("symbols", "ffffffff81000000 T _text\nffffffff81000000 T _stext\nffffffff81000000 T can_probe\nffffffff81000080 T find_bug\nffffffff81000100 T _etext\n")
	answers := write("answers", "\x31\xc0\xc3"+strings.Repeat("\x90", 125)+"\xb8\x01\x00\x00\x00\xc3"+strings.Repeat("\x00", 122)) // no, yes
	guest, other := write("guest.elf", string(kprobelab.GuestELF())), write("other.elf", string(kprobelab.GuestELF()))
	archive := filepath.Join(dir, "archive")
	require.Zero(t, execute([]string{"kprobelab", "pack", "-o", archive, "-"}, &bytes.Buffer{}, &bytes.Buffer{}))
	broken := filepath.Join(dir, "broken")
	require.NoError(t, os.CopyFS(broken, os.DirFS(archive)))
	require.NoError(t, os.WriteFile(filepath.Join(broken, "9.9-x.12345678.kpack"), []byte("kpack"), 0o600))

	lines := [][]string{
		{"explore", "--all", "--max-runs", "20"}, {"explore", "--all", "--max-runs", "20", "--profile", "5.10"},
		{"scan"}, {"scan", "--tsv"}, {"scan", "--json", "--slots", "--detail", "-", "vfs_*", "gcd"}, {"scan", "--padding", guest},
		{"scan", "--entries", "--tsv"}, {"scan", "--points", points, "--json"}, {"scan", "--own", "-", "vfs_*", "gcd"}, {"scan", "--own", "--tsv", "-", "gcd"},
		{"scan", "--decoder", "x86asm", "--bare"}, {"scan", "--decoder", "x86asm", "--bare", "--json", "-", "*"},
		{"selfcheck", "--points", "900", guest}, {"selfcheck", "--points", "900", "--symbols", symbols, "--live-text", answers + "@ffffffff81000000", guest},
		{"selfcheck", "--json", "--boundaries", "700", "--insides", "40", "--symbols", symbols, "--live-text", answers + "@ffffffff81000000", guest},
		{"check", good, "-"}, {"check", "--json", "--allow", "RET_IMM", probes, "-", guest},
		{"check", "--archive", archive, good}, {"check", "--archive", archive, "--changed", probes, guest, other},
		{"check", "--archive", broken, "--tsv", probes}, {"check", "--archive", broken, probes, guest, other, "-"},
	}
	for _, format := range []string{"text", "tsv", "json", "junit", "annotations"} {
		lines = append(lines, []string{"check", "--format", format, probes, guest, "-", other})
	}
	for _, args := range lines {
		t.Run(strings.ReplaceAll(strings.Join(args, " "), dir+"/", ""), func(t *testing.T) {
			var out, errs, merged, mergedErrs bytes.Buffer
			code := execute(append([]string{"kprobelab"}, args...), &out, &errs)
			require.NotEmpty(t, out.String())
			names := inShards(t, 3, args...)
			again := execute([]string{"kprobelab", "merge", names[2], names[0], names[1]}, &merged, &mergedErrs)
			require.Equal(t, out.String(), merged.String())
			require.Equal(t, errs.String(), mergedErrs.String())
			require.Equal(t, code, again)
		})
	}
}

// Rule: shards of check can be printed in every form.
func TestShardsOfCheckInAnotherForm(t *testing.T) {
	probes := filepath.Join(t.TempDir(), "probes")
	require.NoError(t, os.WriteFile(probes, []byte("vfs_read\nnosuch\n"), 0o600))
	names := inShards(t, 2, "check", "--json", probes, "-")
	for _, format := range []string{"text", "tsv", "junit", "annotations"} {
		var want, merged bytes.Buffer
		require.Equal(t, exitRefused, execute([]string{"kprobelab", "check", "--format", format, probes, "-"}, &want, &bytes.Buffer{}))
		require.Equal(t, exitRefused, execute(append([]string{"kprobelab", "merge", "--format", format}, names...), &merged, &bytes.Buffer{}))
		require.Equal(t, want.String(), merged.String())
	}
}
