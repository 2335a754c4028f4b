package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/report"
)

// TestWhatIsNoList: a file that is no list of probes is told in one sentence what it is.
func TestWhatIsNoList(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"source":           {"#include <linux/bpf.h>\n\nSEC(\"kprobe/vfs_read\")\nint f(void *ctx)\n{\n\treturn 0;\n}\n", "the source of a BPF program"},
		"source_no_header": {"/* probes */\n#define P(s) __attribute__((section(s)))\nP(\"fentry/x\") int f(void *c) { return 0; }\n", "a program's source"},
		"source_license":   {"char _license[] __attribute__((section(\"license\"), used)) = \"GPL\";\n", "the source of a BPF program"},
		"rust":             {"fn main() {\n    println!(\"x\");\n}\n", "a program's source"},
		"bpftrace":         {"kprobe:vfs_read { @[comm] = count(); }\n", "a bpftrace script"},
		"bpftrace_filter":  {"tracepoint:syscalls:sys_enter_read\n/args.fd == 0/\n{ exit(); }\n", "a bpftrace script"},
		"stap":             {"probe kernel.function(\"vfs_read\") { exit() }\n", "a SystemTap script"},
		"python":           {"#!/usr/bin/python3\nfrom bcc import BPF\nb = BPF(text=\"\")\n", "in Python"},
		"binary":           {"\x7fELX\x00\x01", "a binary file"},
		"gzip":             {"\x1f\x8b\x08\x00", "compressed"},
		"bitcode":          {"BC\xc0\xde1234", "bitcode"},
		"bpftrace_points":  {"vfs_read\nkretprobe:vfs_read\n", "bpftrace's notation"},
		"bpftrace_tracing": {"tracepoint:syscalls:sys_enter_openat\n", "bpftrace's notation"},
		"section":          {"kprobe.multi/vfs_*\n", "a BPF object's section"},
		"section_sleeps":   {"fentry.s/vfs_open\n", "a BPF object's section"},
		"stap_point":       {"kernel.function(\"vfs_read\").return\n", "a probe point of SystemTap"},
		"stap_module":      {"module(\"ext4\").function(\"ext4_*\")\n", "a probe point of SystemTap"},
		"perf":             {"sudo perf probe --add vfs_read\n", "what stands after perf probe --add"},
		"kallsyms":         {"ffffffff8134cc50 T vfs_read\nffffffff8134d0a0 T vfs_write\n", "a list of addresses"},
		"stack":            {"[   12.345678]  vfs_read+0x10/0x20\n", "a list of addresses"},
		"old_stack":        {"[<ffffffff81234567>] vfs_read+0x10/0x20\n", "a list of addresses"},
		"json":             {"[\"vfs_read\", \"vfs_write\"]\n", "JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := report.ReadProbes(strings.NewReader(c.text))
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	for _, list := range []string{
		"vfs_read\n", "# a list; with { a comment }\nvfs_read\n", "p:a/b vfs_read s=+0(%di):string\n", "vfs_*%return\nkmem_cache_alloc|kmem_cache_alloc_noprof\n",
		"vfs_read:11\n", "ext4:ext4_sync_file\n", "p vfs_read '$arg1'\n", "r16:x vfs_read $retval\n", "probe\n", "import_iovec\n", "vfs_[a-z]*\n",
		"[af]oo_*\n", "kprobe_blacklist_seq_start\n", "# kprobe:vfs_read\nvfs_read\n", "ffffffff8134cc50\n", "f:vfs_read%return vfs_read\n", "t:x sched_switch\n", "iter_to_pipe\n",
	} {
		_, err := report.ReadProbes(strings.NewReader(list))
		require.NoError(t, err, list)
	}
}
