package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// sanitized calls twice three times; with an argument it reads past the end of its memory.
const sanitized = `#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) int twice(int n) { return 2 * n; }
__attribute__((noinline)) int past(char *p, int n) { return p[n]; }
int main(int argc, char **argv)
{
	char *p = malloc(10);
	int sum = 0;
	memset(p, 1, 10);
	for (int i = 0; i < 3; i++)
		sum += twice(i);
	if (argc > 1)
		sum += past(p, 10);
	printf("sum %d\n", sum);
	free(p);
	return 0;
}
`

// Sanitizers reserve address space of terabytes, and ask the system for much that other programs do not.
func TestSanitizedProgramsHaveUprobes(t *testing.T) {
	for _, kind := range []string{"address", "undefined", "thread", "leak"} {
		t.Run(kind, func(t *testing.T) {
			prog := filepath.Join(t.TempDir(), "sanitized")
			require.NoError(t, os.WriteFile(prog+".c", []byte(sanitized), 0o600))
			if text, err := exec.Command("gcc", "-g", "-O1", "-fsanitize="+kind, prog+".c", "-o", prog).CombinedOutput(); err != nil {
				t.Skipf("no gcc with -fsanitize=%s: %v\n%s", kind, err, text)
			}
			args := []string{"kprobelab", "uprobe", "--uprobe", prog + ":twice", "--stats", "--env", "ASAN_OPTIONS=detect_leaks=0", "--env", "LSAN_OPTIONS=detect_leaks=0"}
			needs, err := exec.Command("ldd", prog).Output()
			if err != nil {
				t.Skipf("no ldd: %v", err)
			}
			for _, file := range regexp.MustCompile(`/\S+`).FindAllString(string(needs), -1) {
				args = append(args, "--file", file)
			}
			var out, errs bytes.Buffer
			require.Equal(t, exitOK, execute(append(args, prog), &out, &errs), "%s%s", &out, &errs)
			require.Regexp(t, `(?m)^sum 6$`, out.String())
			require.Regexp(t, `(?m)/sanitized twice +3$`, out.String())
			require.Regexp(t, `(?s)(: twice: \(0x[0-9a-f]+\)\n.*){3}`, out.String())
			if kind != "address" {
				return
			}
			out.Reset()
			require.NotZero(t, execute(append(args, prog, "past"), &out, &errs))
			require.Contains(t, errs.String(), "ERROR: AddressSanitizer: heap-buffer-overflow")
			require.Regexp(t, `in past .*sanitized\.c:5`, errs.String())
			require.Regexp(t, `(?m)/sanitized twice +3$`, out.String())
		})
	}
}
