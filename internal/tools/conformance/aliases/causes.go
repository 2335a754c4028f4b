package aliases

import "path"

// cause is a known reason (why) for which a variable of some aliases differs. If variable is "", the alias itself differs.
type cause struct{ alias, variable, why string }

func (c cause) fits(alias, variable string) bool {
	a, _ := path.Match(c.alias, alias)
	v, _ := path.Match(c.variable, variable)
	return a && v
}

const (
	later      = "a system call that stap 4.8 has no alias for"
	structures = "the text of a structure of that system call is not there"
	inside     = "a variable that the tapset's own macros leave behind"
	tasks      = "pid2task needs the kernel's list of tasks"
	addresses  = "the parts of a socket's address; the text of all of it is in argstr"
	widths     = "compat_* is the first place of the text; the function itself takes pointers and size_t"
)

var causes = []cause{
	{"*syscall.clone3", "", later}, {"*syscall.clone3.return", "", later}, {"*syscall.close_range", "", later}, {"*syscall.close_range.return", "", later},
	{"*syscall.rseq", "", later}, {"*syscall.rseq.return", "", later}, {"*syscall.rt_sigreturn", "", later}, {"*syscall.rt_sigreturn.return", "", later},
	{"*syscall.quotactl", "cmd_str", structures}, {"*syscall.sched_getattr", "sched_attr_str", structures}, {"*syscall.sigaltstack", "uss_str", structures},
	{"*syscall.sysinfo", "info_str", structures}, {"*syscall.times", "buf_str", structures},
	{"*syscall.bind", "uaddr_*", addresses}, {"*syscall.connect", "uaddr_*", addresses},
	{"*syscall.clone", "__nr", inside}, {"*", "__*", inside},
	{"*syscall.wait4.return", "status_*", structures}, {"*syscall.ptrace.return", "*", structures},
	{"signal.sys*kill", "task", tasks}, {"signal.sys*kill", "pid_name", tasks},
	{"rt_sigprocmask", "oldset_uaddr", widths}, {"rt_sigprocmask", "sigsetsize", widths},
}
