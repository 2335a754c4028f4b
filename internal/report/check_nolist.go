package report

import (
	"bytes"
	"errors"
	"regexp"
)

// What people give in the place of a list of probes, or of a compiled object.

// notLists tell files that are no list of probes by what stands in them; the first that matches
// counts.
var notLists = []struct {
	has *regexp.Regexp
	why string
}{
	{regexp.MustCompile(`\x00`), "it is a binary file and no BPF object, which is an ELF file; a list of probes is text"},
	{regexp.MustCompile(`(?m)^#!.*\bbpftrace\b|^\s*(?:[a-z]+:)+[^\s{]*(?:\s*,\s*(?:[a-z]+:)+[^\s{]*)*\s*(?:/[^{]*/\s*)?\{`), "it is a bpftrace script: kprobelab bpftrace runs it"},
	{regexp.MustCompile(`(?m)^#!.*\bstap\b|^\s*probe\s+[a-z_]+[.(][^{]*\{`), "it is a SystemTap script: kprobelab stap runs it"},
	{regexp.MustCompile(`(?m)^#!.*\bpython|^\s*(?:from\s+bcc\s+)?import\s+\w`), "it is a program in Python: check takes a list of its probes, or a compiled object"},
	{
		regexp.MustCompile(`(?m)^\s*#\s*include\s*[<"]|\bSEC\("|^\s*char\s+\w*license\w*\[\]`),
		"it is the source of a BPF program: check takes what clang makes of it (clang -target bpf -O2 -g -c -o tool.bpf.o tool.bpf.c)",
	},
	{regexp.MustCompile(`(?m)^\s*(?:/\*|//)|[;{]\s*$|^\s*\}`), "it is a program's source: check takes a compiled BPF object, or a list with a probe a line"},
	{regexp.MustCompile(`^\s*[\[{]\s*"`), "it is JSON: a list has a probe a line, as vfs_read or p:NAME SYM+OFF"},
}

// noList says what a file is that is no list of probes; nil where it may be one.
func noList(b []byte) error {
	if bytes.HasPrefix(b, []byte("\x1f\x8b")) || bytes.HasPrefix(b, []byte("\x28\xb5\x2f\xfd")) || bytes.HasPrefix(b, []byte("BC\xc0\xde")) {
		return errors.New("it is compressed, or LLVM's bitcode: check takes a BPF object, or a list with a probe a line")
	}
	for i := range notLists {
		if notLists[i].has.Match(b) {
			return errors.New(notLists[i].why)
		}
	}
	return nil
}
