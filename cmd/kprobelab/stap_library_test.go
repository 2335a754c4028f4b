package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"kprobelab/internal/integration/dumps/runs"
)

// The library's functions about tasks find the task that runs and its memory in each kernel's own lists.
func TestStapLibraryReadsTheKernelsTasks(t *testing.T) {
	const script = `
global n
probe syscall.openat { if (!n++) {
  me = task_current()
  println(pid2task(pid()) == me, pid2task(1) == task_parent(me), pid2task(4000000), " ", pid2execname(1), " ", pid2execname(2))
  println(task_ancestry(me, 0), pstrace(me) == sprintf(" busybox(%d)", pid()))
  println(cmdline_str(), "|", cmdline_arg(1), "|", cmdline_args(1, 2, ","), "|", env_var("HOME"), "|", env_var("HOM"))
  println(task_open_file_handles(me), " ", task_max_file_handles(me), " ", task_rlimit(me, "RLIMIT_NOFILE") == task_rlimit_nofile(me))
  println(fullpath_struct_path(task_cwd_path(me)), " ", fullpath_struct_file(me, current_exe_file()), " ", inode_path(@cast(current_exe_file(), "file")->f_inode))
  println(ns_pid() == pid(), ns_tid() == tid(), ns_ppid(), " ", proc_mem_size() == proc_mem_size_pid(pid()), proc_mem_size() > 100, proc_mem_size_pid(2))
  println(modname(addr()), " ", inode_name(@cast(current_exe_file(), "file")->f_inode))
} }`
	for _, name := range []string{"5.10", "6.1", "6.12", "newest"} {
		t.Run(name, func(t *testing.T) {
			lines := says(t, "stap", "-r", runs.File(t, name), "-D", "MAXACTION=4000", "-c", "/bin/busybox cat /etc/hostname", "-e", script)
			assert.Equal(t, strings.TrimSpace(`
110 init kthreadd
swapper/0=>init=>busybox1
/bin/busybox cat /etc/hostname|cat|cat,/etc/hostname|/|
3 64 1
/ /bin/busybox /bin/busybox
111 110
kernel busybox
kprobelab`), strings.TrimSpace(strings.Join(lines, "")))
		})
	}
}
