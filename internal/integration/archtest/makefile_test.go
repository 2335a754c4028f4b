package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever the name of a file, make passes it on as one word, and its shell executes nothing of it.
func TestNamesOfImagesInMake(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make here")
	}
	for name, image := range map[string]string{
		"plain": "vmlinuz", "space": "a b", "apostrophe": "it's", "two": "''", "quote": `a"b`, "command": "$$(touch hit)", "semicolon": "a;touch hit", "end_of_word": "';touch hit;'",
		"backquotes": "`touch hit`", "backslash": `a\`, "star": "*", "option": "--help", "ampersand": "a&touch hit&",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			// The stub is the go that make runs: it writes down the words that it got.
			require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\n[ \"$1\" = run ] || exit 0\nfor w; do printf '%s\\n' \"$w\"; done >\"$STUB\"\n"), 0o700))
			words := filepath.Join(dir, "words")
			cmd := exec.Command("make", "--no-print-directory", "-s", "-f", mustAbs(t, "../../../Makefile"), "-o", "build", "hostile", "DURATION=1s", "SEED=1", "IMAGE="+image)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "STUB="+words, "MAKEFLAGS=", "MAKELEVEL=0")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			text, err := os.ReadFile(words)
			require.NoError(t, err, string(out))
			list := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
			require.Equal(t, strings.ReplaceAll(image, "$$", "$"), list[len(list)-1])
			require.Equal(t, "bin/kprobelab", list[len(list)-2])
			require.NoFileExists(t, filepath.Join(dir, "hit"))
		})
	}
}

// The tag unicorn is in the flags of every go that make runs, once, beside the caller's own tags and flags.
func TestTagsOfMake(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make here")
	}
	for flags, want := range map[string]string{
		"": "-tags=unicorn", "-p=1": "-tags=unicorn -p=1", "-tags=unicorn": "-tags=unicorn", "-tags=unicorn -p=1": "-tags=unicorn -p=1",
		"-tags=other": "-tags=unicorn,other", "-p=1 -tags=unicorn,other -v": "-tags=unicorn,other -p=1 -v", "-tags=other,unicorn": "-tags=other,unicorn",
	} {
		cmd := exec.Command("make", "--no-print-directory", "-s", "-f", mustAbs(t, "../../../Makefile"), "env")
		cmd.Env = append(os.Environ(), "GOFLAGS="+flags, "MAKEFLAGS=", "MAKELEVEL=0")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), "\nexport GOFLAGS=\""+want+"\"\n", "GOFLAGS=%q", flags)
	}
}

func mustAbs(t *testing.T, name string) string {
	t.Helper()
	abs, err := filepath.Abs(name)
	require.NoError(t, err)
	return abs
}
