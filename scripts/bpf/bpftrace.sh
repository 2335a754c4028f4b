# bpftrace's own binary with nine scripts (conformance-bpf-projects.sh).
# shellcheck shell=sh
start() { exec /usr/bin/bpftrace -B none -e "$2"; }

# bpftrace prints how many probes it attaches before it attaches them; on 5.10, 70 take longer under QEMU than a tool is waited for.
# A SIGINT before its end makes it give up. Its own tests have it print a line when all are attached.
export __BPFTRACE_NOTIFY_PROBES_ATTACHED=1
attached() { $bb grep -q __BPFTRACE_NOTIFY_PROBES_ATTACHED /tmp/out; }

one begin 'BEGIN { printf("%d\n", 6 * 7); exit(); }'
one kprobe 'BEGIN { printf("ready\n"); } kprobe:vfs_unlink { @[comm] = count(); }'
one kretprobe 'BEGIN { printf("ready\n"); } kretprobe:vfs_read /comm == "cat"/ { @[retval] = count(); }'
one fentry 'BEGIN { printf("ready\n"); } fentry:vfs_unlink { @[comm] = count(); } fexit:vfs_unlink { @r[retval] = count(); }'
one tracepoint 'BEGIN { printf("ready\n"); } tracepoint:syscalls:sys_enter_openat /comm == "cat" || comm == "rm"/ { printf("%s %s\n", comm, str(args.filename)); }'
one stack 'BEGIN { printf("ready\n"); } kprobe:vfs_unlink { @[kstack(5)] = count(); }'
one interval 'BEGIN { printf("ready\n"); } interval:s:1 { @n++; if (@n == 3) { exit(); } }'
one wildcard 'BEGIN { printf("ready\n"); } kprobe:vfs_* /comm == "cat" || comm == "rm"/ { @[func] = count(); }'
one signal 'BEGIN { printf("ready\n"); } tracepoint:signal:signal_generate /args.sig == 15/ { printf("%s %d\n", args.comm, args.sig); }'
