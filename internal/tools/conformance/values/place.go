package values

import "fmt"

// place holds the point at which a script runs, the integers that it can read there, and
// statements for this place only.
type place struct {
	point string
	known []integer
	own   []string
}

// u and s are integers of a place, without a sign and with one.
func u(size int, text string) integer { return integer{text: text, size: size} }
func s(size int, text string) integer { return integer{text: text, size: size, signed: true} }

// here is a probe's point, as the program (testdata/init/values.c) gets there.
func here(point string) string { return point + ` /comm == "values"/` }

// task are members of the task that runs: they are the same in each run.
var task = []integer{
	s(4, "curtask->prio"), s(4, "curtask->static_prio"), u(4, "curtask->policy"), s(4, "curtask->exit_signal"), s(4, "curtask->signal->nr_threads"),
	s(4, "curtask->fs->umask"), u(4, "curtask->cred->uid.val"), s(4, "curtask->mm->map_count"), u(4, "curtask->sched_reset_on_fork"), u(4, "curtask->in_execve"),
}

// file are members of an open file's structure.
func file(f string) []integer {
	return []integer{
		u(4, f+"->f_flags"), u(4, f+"->f_mode"), s(8, f+"->f_pos"), u(2, f+"->f_inode->i_mode"), u(4, f+"->f_inode->i_nlink"), u(1, f+"->f_inode->i_blkbits"),
		u(2, f+"->f_inode->i_opflags"), u(4, f+"->f_inode->i_flags"), s(8, f+"->f_inode->i_size"), u(4, f+"->f_inode->i_uid.val"),
	}
}

func with(lists ...[]integer) (all []integer) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// memory are statements that read an address of the program's, as it is and as the program's.
func memory(a string) []string {
	return []string{
		fmt.Sprintf(`printf("[%%s] [%%s]\n", str(%s), str(uptr(%s)));`, a, a), fmt.Sprintf(`print(str(uptr(%s), 5));`, a), fmt.Sprintf(`printf("%%r %%r\n", buf(%s, 6), buf(uptr(%s), 6));`, a, a),
		fmt.Sprintf(`printf("%%d %%d\n", *(int8 *)%s, *(int8 *)uptr(%s));`, a, a), fmt.Sprintf(`print(*(uint16 *)(uptr(%s) + 1)); print(*(uint16 *)(%s + 1));`, a, a),
		fmt.Sprintf(`print(str(kptr(%s)));`, a), fmt.Sprintf(`print(((int32 *)uptr(%s))[1]); print(((int32 *)%s)[1]);`, a, a),
	}
}

var places = []place{
	{point: "BEGIN"},
	{point: "END"},
	{here("kprobe:vfs_open"), with(task, file("((struct file *)arg1)"), []integer{u(2, "((struct path *)arg0)->dentry->d_inode->i_mode"), u(4, "((struct path *)arg0)->dentry->d_name.len")}),
		[]string{`print(str(((struct path *)arg0)->dentry->d_name.name));`, `print(str(uptr(((struct path *)arg0)->dentry->d_name.name)));`}},
	{here("kprobe:vfs_write"), with(task, file("((struct file *)arg0)"), []integer{u(8, "arg2"), s(8, "*(int64 *)arg3"), s(1, "*(int8 *)uptr(arg1 + 6)"), u(2, "*(uint16 *)uptr(arg1 + 5)"), s(4, "*(int32 *)arg1")}),
		memory("arg1")},
	{here("kretprobe:do_sys_openat2"), with(task, []integer{u(8, "retval"), s(8, "(int64)retval"), s(2, "(int16)retval")}), nil},
	{here("fentry:vfs_read"), with(task, file("args.file"), []integer{u(8, "args.count"), s(8, "*args.pos")}), memory("args.buf")},
	{here("fexit:vfs_read"), with(task, file("args.file"), []integer{s(8, "retval"), u(8, "args.count")}), memory("args.buf")},
	{here("tracepoint:syscalls:sys_enter_openat"), with(task, []integer{s(8, "args.dfd"), s(8, "args.flags"), u(2, "args.mode"), s(4, "args.__syscall_nr")}), memory("args.filename")},
	{here("tracepoint:syscalls:sys_exit_mkdir"), with([]integer{s(8, "args.ret"), s(4, "args.__syscall_nr")}, task), []string{`if (args.ret < 0) { print("failed"); }`, `printf("%s\n", strerror(-args.ret));`}},
	{here("tracepoint:syscalls:sys_enter_mkdir"), with([]integer{u(2, "args.mode")}, task), memory("args.pathname")},
	{here("tracepoint:syscalls:sys_enter_lseek"), with([]integer{u(8, "args.fd"), s(8, "args.offset"), u(8, "args.whence")}, task), nil},
	{here("tracepoint:syscalls:sys_exit_lseek"), with([]integer{s(8, "args.ret")}, task), nil},
	{here("tracepoint:syscalls:sys_enter_close"), with([]integer{u(8, "args.fd")}, task), []string{`if (args.fd < 0) { print("negative"); } else { print("not"); }`}},
	{here("tracepoint:syscalls:sys_enter_umask"), with([]integer{s(8, "args.mask")}, task), nil},
	{here("tracepoint:syscalls:sys_enter_write"), with([]integer{u(8, "args.fd"), u(8, "args.count")}, task), memory("args.buf")},
	{here("tracepoint:sched:sched_process_exit"), with([]integer{s(4, "args.prio")}, task[:3]), []string{`print(args.comm);`, `print((args.comm, args.prio));`}},
	{here("rawtracepoint:sched_process_exit"), with([]integer{s(4, "((struct task_struct *)arg0)->prio"), u(4, "((struct task_struct *)arg0)->policy")}, task[:3]),
		[]string{`print(((struct task_struct *)arg0)->comm);`}},
}
