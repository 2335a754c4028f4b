package report

import (
	"bytes"
	"errors"
	"regexp"
)

// Files that users give in place of a list of probes, or of a compiled object.

// notLists recognise files that are no list of probes by their content; the first that matches
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
	{
		regexp.MustCompile(`(?m)^\s*(?:kprobe|kretprobe|fentry|fexit|kfunc|kretfunc|tracepoint|rawtracepoint|uprobe|uretprobe|usdt|watchpoint|asyncwatchpoint|interval|profile|software|hardware|iter):\S`),
		"it has a probe in bpftrace's notation: a list has vfs_read for kprobe:vfs_read, and vfs_read%return for kretprobe:vfs_read; kprobelab bpftrace --dry-run asks about scripts",
	},
	{
		regexp.MustCompile(`(?m)^\s*(?:kprobe|kretprobe|kprobe\.multi|kretprobe\.multi|kprobe\.session|ksyscall|kretsyscall|fentry(?:\.s)?|fexit(?:\.s)?|fmod_ret(?:\.s)?|lsm(?:\.s)?|iter|tp|tracepoint|raw_tp|raw_tracepoint|tp_btf|uprobe|uretprobe|usdt)/\S`),
		"it has the name of a BPF object's section: a list has vfs_read for kprobe/vfs_read, and vfs_read%return for kretprobe/vfs_read; the object itself can be given, too",
	},
	{
		regexp.MustCompile(`(?m)^\s*(?:kernel|module\("[^"]*"\)|kprobe|process(?:\("[^"]*"\))?)\.(?:function|statement|trace|data)\(`),
		"it has a probe point of SystemTap: a list has vfs_read for kernel.function(\"vfs_read\"), and vfs_read%return for its return; kprobelab stap -l asks about points",
	},
	{regexp.MustCompile(`(?m)^\s*(?:sudo\s+)?perf\s+probe\s`), "it has a command: a list has what stands after perf probe --add, or the definition that it writes"},
	{regexp.MustCompile(`(?m)^\s*(?:\[\s*(?:<?[0-9a-f]{8,16}>?|\d+\.\d+)\s*\]\s*[\w.]+|[0-9a-f]{16} [a-zA-Z] \w+)`), "it is a list of addresses, as /proc/kallsyms or a stack in the kernel's log: a list of probes has a name or an address a line"},
	{regexp.MustCompile(`^\s*[\[{]\s*"`), "it is JSON: a list has a probe a line, as vfs_read or p:NAME SYM+OFF"},
}

// noList describes a file that is no list of probes; nil if it may be one.
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
