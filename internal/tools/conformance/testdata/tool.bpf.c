// SPDX-License-Identifier: GPL-2.0-only
// A tool's programs, for kprobelab check and make conformance: probes that
// attach everywhere, and ones that some kernels refuse, each for its own rule.
// They do nothing. No header is needed: clang -O2 -target bpf -c.

#define SEC(name) __attribute__((section(name), used))

#define PROGRAM(name, section) \
	SEC(section) int name(void *ctx) { return 0; }

PROGRAM(read_entry, "kprobe/vfs_read")
PROGRAM(read_return, "kretprobe/vfs_read")
PROGRAM(gcd_inside, "kprobe/gcd+0x5")
PROGRAM(middle, "kprobe/vfs_read+0x1")
PROGRAM(connect_entry, "kprobe/tcp_v4_connect")
PROGRAM(connect_return, "kretprobe/tcp_v4_connect")
PROGRAM(not_entry, "kretprobe/gcd+0x5")

// Inlined, renamed or split between releases.
PROGRAM(io_start, "kprobe/blk_account_io_start")
PROGRAM(io_done, "kprobe/blk_account_io_done")
PROGRAM(switched, "kprobe/finish_task_switch")
PROGRAM(switched_clone, "kprobe/finish_task_switch.isra.0")
PROGRAM(open_old, "kprobe/do_sys_open")
PROGRAM(nowhere, "kprobe/no_kernel_has_this")

// Several functions have the name.
PROGRAM(several, "kprobe/name_show")

// No ftrace site; blacklisted; not for return probes.
PROGRAM(notrace, "kprobe/native_write_cr4")
PROGRAM(blacklisted, "kprobe/do_int3")
PROGRAM(switch_return, "kretprobe/__switch_to")

// Behind the architecture's wrapper of system calls.
PROGRAM(openat_entry, "ksyscall/openat")
PROGRAM(close_return, "kretsyscall/close")

// Links to many functions.
PROGRAM(many, "kprobe.multi/vfs_*")
PROGRAM(many_return, "kretprobe.multi/tcp_v4_c*")
PROGRAM(one_of_many, "kprobe.multi/vfs_read")
PROGRAM(none_of_many, "kprobe.multi/no_kernel_has_this_*")

SEC("license") char LICENSE[] = "GPL";
