package booted

import (
	"errors"
	"io/fs"

	"kprobelab/errno"
	"kprobelab/hostfiles"
)

// mounts lists the file systems that tools look for and that init does not mount. If the kernel does not have a kind,
// it is left out.
var mounts = []struct{ kind, at, data string }{
	{"bpf", "/sys/fs/bpf", ""},
	{"cgroup2", "/sys/fs/cgroup", ""},
	{"securityfs", "/sys/kernel/security", ""},
	{"configfs", "/sys/kernel/config", ""},
	{"devpts", "/dev/pts", "mode=620,ptmxmode=666"},
	{"tmpfs", "/dev/shm", "mode=1777"},
	{"tmpfs", "/run", "mode=755"},
	{"mqueue", "/dev/mqueue", ""},
}

// utc is the time zone file of UTC (tzfile(5), version 2). Without a file, programs look for one whenever they print a
// time, and a tool that prints files which are opened has itself to print without end.
var utc = func() []byte {
	zone := append([]byte("TZif2"), make([]byte, 15+16)...)
	zone = append(zone, "\x00\x00\x00\x01\x00\x00\x00\x04"+"\x00\x00\x00\x00\x00\x00"+"UTC\x00"...)
	return append(append(append([]byte(nil), zone...), zone...), "\nUTC0\n"...)
}()

// usual lists the files that tools look for. A file that the guest has already stays.
var usual = []hostfiles.File{
	{Path: "/root", Mode: fs.ModeDir | 0o700},
	{Path: "/var/tmp", Mode: fs.ModeDir | 0o777},
	{Path: "/var/log", Mode: fs.ModeDir | 0o755},
	{Path: "/etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n")},
	{Path: "/etc/group", Mode: 0o644, Data: []byte("root:x:0:\nnogroup:x:65534:\n")},
	{Path: "/etc/hostname", Mode: 0o644, Data: []byte("kprobelab\n")},
	{Path: "/etc/hosts", Mode: 0o644, Data: []byte("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n127.0.1.1\tkprobelab\n")},
	{Path: "/etc/nsswitch.conf", Mode: 0o644, Data: []byte("passwd: files\ngroup: files\nhosts: files\n")},
	{Path: "/etc/localtime", Mode: 0o644, Data: utc},
	{Path: "/dev/fd", Mode: fs.ModeSymlink, Link: "/proc/self/fd"},
	{Path: "/dev/stdin", Mode: fs.ModeSymlink, Link: "/proc/self/fd/0"},
	{Path: "/dev/stdout", Mode: fs.ModeSymlink, Link: "/proc/self/fd/1"},
	{Path: "/dev/stderr", Mode: fs.ModeSymlink, Link: "/proc/self/fd/2"},
	{Path: "/etc/mtab", Mode: fs.ModeSymlink, Link: "/proc/self/mounts"},
}

// busybox has commands by their names, where a guest has it.
const busybox = "/bin/busybox"

// commands are the links to it that a guest without a shell gets.
var commands = []string{
	"sh", "cat", "chmod", "cp", "date", "dd", "echo", "env", "false", "find", "grep", "head", "hostname", "id", "kill", "ln", "ls", "mkdir", "mktemp",
	"mount", "mv", "ping", "ps", "pwd", "readlink", "rm", "rmdir", "sed", "sleep", "sort", "stat", "sync", "tail", "test", "touch", "tr", "true",
	"umount", "uname", "uniq", "wc", "which", "xargs", "awk", "cut", "dmesg", "ip", "nc", "seq", "tee", "time", "timeout", "id", "whoami", "clear",
}

// Prepare mounts the file systems that tools look for, puts files there (Put), and makes the other files that
// tools look for, as far as the kernel, the guest and these files have not got them: bpffs, cgroup2,
// securityfs, /dev/fd, /var/tmp, /etc/passwd and others, with busybox its commands. Existing files stay as they
// are.
func (k *Kernel) Prepare(files []hostfiles.File) error {
	if _, err := k.toInit(); err != nil {
		return err
	}
	for _, m := range mounts {
		if err := k.mount(m.kind, m.at, m.data); err != nil {
			return err
		}
	}
	if err := k.Put(files); err != nil {
		return err
	}
	list := usual
	if _, err := k.stat(busybox, 0); err == nil {
		for _, name := range commands {
			list = append(list[:len(list):len(list)], hostfiles.File{Path: "/bin/" + name, Mode: fs.ModeSymlink, Link: busybox})
		}
	}
	for _, f := range list {
		if _, err := k.stat(f.Path, noFollow); err == nil {
			continue
		}
		if err := k.Put([]hostfiles.File{f}); err != nil {
			return err
		}
	}
	_, err := k.asks("fchmodat", atCurrent, "/var/tmp", 0o1777)
	return err
}

// mount mounts a file system at a folder that has none of that kind.
func (k *Kernel) mount(kind, at, data string) error {
	// A folder of sysfs is there if the kernel has the file system.
	if _, err := k.asks("mkdirat", atCurrent, at, 0o755); err != nil && !errors.Is(err, errno.EEXIST) && !refused(err) {
		return err
	}
	before, err := k.stat(at, 0)
	if err != nil {
		return nil
	}
	if parent, err := k.stat(at+"/..", 0); err == nil && parent.dev != before.dev {
		return nil
	}
	if _, err := k.asks("mount", kind, at, kind, 0, data); err != nil && !refused(err) {
		return err
	}
	return nil
}

// refused reports whether an error is the kernel's, and not the machine's.
func refused(err error) bool {
	var e errno.Errno
	return errors.As(err, &e)
}
