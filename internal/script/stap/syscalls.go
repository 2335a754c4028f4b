package stap

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"kprobelab/internal/script"
)

// syscallArgs are the parameters of system calls: a name and how it is printed. d is decimal, u
// without a sign, x hexadecimal, o octal, p a pointer, s a string of the program, b its bytes
// (the next parameter says how many), O the flags of open and what follows them, a what access asks,
// t a pointer to a time; any other is the function of flagSets that has its names.
var syscallArgs = map[string]string{}

func init() {
	for _, line := range strings.Split(strings.TrimSpace(syscallTable), "\n") {
		name, rest, _ := strings.Cut(line, " ")
		for _, n := range strings.Split(name, "|") {
			syscallArgs[n] = rest
		}
	}
}

const syscallTable = `
read fd:d buf_uaddr:p count:u
write fd:d buf_uaddr:b count:u
open filename:s flags:O mode:o
openat dfd:D filename:s flags:O mode:o
creat pathname:s mode:o
close|fchdir|fsync|fdatasync|syncfs|dup|epoll_create1|inotify_init1 fd:d
stat|lstat|newstat|newlstat filename:s buf_uaddr:p
fstat|newfstat|fstatfs filedes:d buf_uaddr:p
newfstatat dfd:D path:s buf_uaddr:p flags:_at_flag_str
statx dfd:D filename:s flags:x mask:x buf_uaddr:p
statfs|ustat path:s buf_uaddr:p
poll ufds_uaddr:p nfds:u timeout:d
lseek fildes:d offset:d whence:_seek_whence_str
mmap start:p len:u prot:_mprotect_prot_str flags:_mmap_flags fd:d offset:d
mprotect start:p len:u prot:_mprotect_prot_str
munmap start:p length:u
mremap old_address:p old_size:d new_size:d flags:_mremap_flags new_address:p
msync start:p length:u flags:_msync_flag_str
madvise start:p length:u advice:_madvice_advice_str
mincore start:p length:u vec_uaddr:p
brk brk:x
rt_sigaction sig:d act_uaddr:p oact_uaddr:p sigsetsize:u
rt_sigprocmask how:d set_uaddr:p oset_uaddr:p sigsetsize:u
rt_sigpending|rt_sigsuspend set_uaddr:p sigsetsize:u
rt_sigtimedwait uthese_uaddr:p uinfo_uaddr:p uts_uaddr:t sigsetsize:u
sigaltstack uss_uaddr:p uoss_uaddr:p
ioctl fd:d request:x argp:x
fcntl fd:d cmd:d arg:x
flock fd:d operation:d
pread64|pread fd:d buf_uaddr:p count:u offset:d
pwrite64|pwrite fd:d buf_uaddr:b count:u offset:d
readv|writev fd:d vector_uaddr:p count:u
preadv|pwritev fd:d vector_uaddr:p count:u offset:d
access pathname:s mode:a
faccessat dirfd:D pathname:s mode:a
faccessat2 dirfd:D pathname:s mode:a flags:x
pipe fildes_uaddr:p
pipe2 fildes_uaddr:p flags:x
select n:d readfds_uaddr:p writefds_uaddr:p exceptfds_uaddr:p timeout_uaddr:p
pselect6 nfds:d readfds:p writefds:p exceptfds:p timeout:t sigmask:p
ppoll ufds_uaddr:p nfds:u tsp:t sigmask:p sigsetsize:u
sched_yield|pause|getpid|getppid|gettid|getuid|geteuid|getgid|getegid|getpgrp|setsid|sync|vhangup|munlockall|inotify_init|fork|vfork|rt_sigreturn|restart_syscall
shmget key:d size:u shmflg:x
shmat shmid:d shmaddr_uaddr:p shmflg:x
shmdt shmaddr_uaddr:p
shmctl shmid:d cmd:d buf_uaddr:p
semget key:d nsems:d semflg:x
semop semid:d tsops_uaddr:p nsops:u
semctl semid:d semnum:d cmd:d arg:x
msgget key:d msgflg:x
msgsnd msqid:d msgp_uaddr:p msgsz:u msgflg:x
msgrcv msqid:d msgp_uaddr:p msgsz:u msgtyp:d msgflg:x
msgctl msqid:d cmd:d buf_uaddr:p
dup2 oldfd:d newfd:d
dup3 oldfd:d newfd:d flags:_dup3_flag_str
nanosleep req_uaddr:t rem_uaddr:p
clock_nanosleep clockid:d flags:x req_uaddr:t rem_uaddr:p
clock_gettime|clock_getres|clock_settime clk_id:d tp_uaddr:p
gettimeofday|settimeofday tv_uaddr:p tz_uaddr:p
time t_uaddr:p
times buf_uaddr:p
getitimer which:d value_uaddr:p
setitimer which:d value_uaddr:p ovalue_uaddr:p
alarm seconds:u
timer_create clockid:d evp_uaddr:p timerid_uaddr:p
timer_settime timerid:d flags:x value_uaddr:p ovalue_uaddr:p
timer_gettime timerid:d value_uaddr:p
timer_delete|timer_getoverrun timerid:d
timerfd_create clockid:d flags:x
timerfd_settime fd:d flags:x value_uaddr:p ovalue_uaddr:p
timerfd_gettime fd:d value_uaddr:p
sendfile|sendfile64 out_fd:d in_fd:d offset_uaddr:p count:u
copy_file_range fd_in:d off_in:p fd_out:d off_out:p len:u flags:x
splice fdin:d offin:p fdout:d offout:p len:u flags:x
tee fdin:d fdout:d len:u flags:x
socket family:d type:x protocol:d
socketpair family:d type:x protocol:d sv_uaddr:p
connect sockfd:d uservaddr_uaddr:p addrlen:u
accept sockfd:d addr_uaddr:p addrlen_uaddr:p
accept4 sockfd:d addr_uaddr:p addrlen_uaddr:p flags:x
sendto s:d buf_uaddr:b len:u flags:x to_uaddr:p tolen:u
recvfrom s:d buf_uaddr:p len:u flags:x addr_uaddr:p addrlen_uaddr:p
sendmsg|recvmsg s:d msg_uaddr:p flags:x
sendmmsg|recvmmsg s:d mmsg_uaddr:p vlen:u flags:x timeout_uaddr:p
shutdown s:d how:d
bind sockfd:d my_addr_uaddr:p addrlen:u
listen sockfd:d backlog:d
getsockname|getpeername s:d name_uaddr:p namelen_uaddr:p
setsockopt fd:d level:d optname:d optval_uaddr:p optlen:u
getsockopt fd:d level:d optname:d optval_uaddr:p optlen_uaddr:p
clone clone_flags:x stack_start:x parent_tid_uaddr:p child_tid_uaddr:p tls:x
clone3 uargs:p size:u
execve filename:s argv_uaddr:p envp_uaddr:p
execveat dirfd:D filename:s argv_uaddr:p envp_uaddr:p flags:x
exit|exit_group status:d
wait4 pid:d status_uaddr:p options:x rusage_uaddr:p
waitid which:d pid:d infop_uaddr:p options:x rusage_uaddr:p
kill pid:d sig:d
tkill tid:d sig:d
tgkill tgid:d pid:d sig:d
uname|newuname name_uaddr:p
truncate path:s length:d
ftruncate fd:d length:d
fallocate fd:d mode:x offset:d len:d
getdents|getdents64 fd:d dirp_uaddr:p count:u
getcwd buf_uaddr:p size:u
chdir|chroot|rmdir|swapoff|acct path:s
mkdir pathname:s mode:o
mkdirat dirfd:D pathname:s mode:o
rename|link|symlink oldpath:s newpath:s
renameat olddfd:D oldname:s newdfd:D newname:s
renameat2 olddfd:D oldname:s newdfd:D newname:s flags:x
linkat olddirfd:D oldpath:s newdirfd:D newpath:s flags:_at_flag_str
symlinkat oldname:s newdfd:D newname:s
unlink pathname:s
unlinkat dfd:D pathname:s flag:_at_flag_str
readlink path:s buf_uaddr:p bufsiz:u
readlinkat dfd:D path:s buf_uaddr:p bufsiz:u
chmod path:s mode:o
fchmod fildes:d mode:o
fchmodat dirfd:D pathname:s mode:o
chown|lchown path:s owner:d group:d
fchown fd:d owner:d group:d
fchownat dirfd:D pathname:s owner:d group:d flags:x
umask mask:o
utime filename:s buf_uaddr:p
utimes filename:s tvp_uaddr:p
utimensat dfd:D filename:s tsp_uaddr:p flags:x
mknod pathname:s mode:o dev:x
mknodat dirfd:D pathname:s mode:o dev:x
mount source:s target:s filesystemtype:s mountflags:x data:p
umount|umount2 target:s flags:x
sysinfo info_uaddr:p
getrlimit|setrlimit resource:d rlim_uaddr:p
prlimit64 pid:d resource:d new_rlim_uaddr:p old_rlim_uaddr:p
getrusage who:d usage_uaddr:p
getpriority which:d who:d
setpriority which:d who:d prio:d
setuid|setfsuid uid:d
setgid|setfsgid gid:d
setreuid ruid:d euid:d
setregid rgid:d egid:d
setresuid ruid:d euid:d suid:d
setresgid rgid:d egid:d sgid:d
getresuid|getresgid a_uaddr:p b_uaddr:p c_uaddr:p
getgroups|setgroups size:d list_uaddr:p
setpgid pid:d pgid:d
getpgid|getsid pid:d
prctl option:d arg2:x arg3:x arg4:x arg5:x
arch_prctl code:x addr:x
ptrace request:d pid:d addr:x data:x
futex uaddr:p op:d val:d utime_uaddr:p uaddr2_uaddr:p val3:d
set_robust_list list_head_uaddr:p len:u
get_robust_list pid:d list_head_uaddr:p len_uaddr:p
set_tid_address tidptr_uaddr:p
sched_setaffinity|sched_getaffinity pid:d len:u mask_uaddr:p
sched_setscheduler pid:d policy:d param_uaddr:p
sched_getscheduler pid:d
sched_setparam|sched_getparam pid:d p_uaddr:p
sched_get_priority_max|sched_get_priority_min policy:d
sched_rr_get_interval pid:d tp_uaddr:p
epoll_create size:d
epoll_ctl epfd:d op:d fd:d event_uaddr:p
epoll_wait epfd:d events_uaddr:p maxevents:d timeout:d
epoll_pwait epfd:d events_uaddr:p maxevents:d timeout:d sigmask_uaddr:p sigsetsize:u
eventfd count:u
eventfd2 count:u flags:x
signalfd ufd:d user_mask_uaddr:p sizemask:u
signalfd4 ufd:d user_mask_uaddr:p sizemask:u flags:x
inotify_add_watch fd:d path:s mask:x
inotify_rm_watch fd:d wd:d
getrandom buf_uaddr:p count:u flags:_getrandom_flags_str
memfd_create uname:s flags:x
mlock|munlock addr:x len:u
mlock2 start:x len:u flags:x
mlockall flags:_mlockall_flags_str
personality persona:x
syslog type:d bufp_uaddr:p len:d
sethostname|setdomainname name:s len:d
reboot magic:x magic2:x flag:x arg:p
rseq rseq:p rseq_len:u flags:x sig:x
getcpu cpu_uaddr:p node_uaddr:p tcache_uaddr:p
unshare unshare_flags:x
setns fd:d nstype:x
getxattr|lgetxattr path:s name:s value_uaddr:p size:u
setxattr|lsetxattr path:s name:s value_uaddr:p size:u flags:x
listxattr|llistxattr path:s list_uaddr:p size:u
removexattr|lremovexattr path:s name:s
readahead fd:d offset:d count:u
fadvise64 fd:d offset:d len:d advice:d
close_range fd:u max_fd:u flags:x
add_key type_uaddr:s description_uaddr:s payload_uaddr:p plen:u ringid:d
adjtimex buf_uaddr:p
bpf cmd:d attr_uaddr:p size:u
capget|capset header_uaddr:p data_uaddr:p
clock_adjtime clk_id:d tx_uaddr:p
delete_module name_user:s flags:x
fanotify_init flags:x event_f_flags:x
fanotify_mark fanotify_fd:d flags:x mask:x dirfd:D pathname:s
fgetxattr filedes:d name_str:s value_uaddr:p size:u
finit_module fd:d uargs:s flags:x
flistxattr filedes:d list_uaddr:p size:u
fremovexattr filedes:d name_str:s
fsetxattr filedes:d name_str:s value_uaddr:p size:u flags:x
futimesat dirfd:D filename:s tvp_uaddr:p
get_mempolicy policy_uaddr:p nmask_uaddr:p maxnode:u addr:x flags:x
init_module umod_uaddr:p len:u uargs:s
io_cancel ctx_id:u iocb_uaddr:p result_uaddr:p
io_destroy ctx:u
io_getevents ctx_id:u min_nr:d nr:d events_uaddr:p timeout_uaddr:p
io_setup maxevents:u ctxp_uaddr:p
io_submit ctx_id:u nr:d iocbpp_uaddr:p
ioperm from:x num:x turn_on:d
ioprio_get which:d who:d
ioprio_set which:d who:d ioprio:x
kcmp pid1:d pid2:d type:d idx1:u idx2:u
kexec_file_load kernel_fd:d initrd_fd:d cmdline_len:u cmdline:s flags:x
kexec_load entry:x nr_segments:u segments_uaddr:p flags:x
keyctl option:d arg2:x arg3:x arg4:x arg5:x
mbind start:x len:u mode:d nmask_uaddr:p maxnode:u flags:x
membarrier cmd:d flags:d
memfd_secret flags:x
migrate_pages pid:d maxnode:u old_nodes:p new_nodes:p
modify_ldt func:d ptr_uaddr:p bytecount:u
move_pages pid:d nr_pages:u pages:p nodes:p status:p flags:x
mq_getsetattr mqdes:d u_mqstat_uaddr:p u_omqstat_uaddr:p
mq_notify mqdes:d notification_uaddr:p
mq_open filename:s oflag:x mode:o u_attr_uaddr:p
mq_timedreceive mqdes:d msg_ptr_uaddr:p msg_len:u msg_prio_uaddr:p abs_timeout_uaddr:p
mq_timedsend mqdes:d msg_ptr_uaddr:p msg_len:u msg_prio:u abs_timeout_uaddr:p
mq_unlink u_name:s
name_to_handle_at dfd:D pathname:s handle_uaddr:p mnt_id_uaddr:p flags:x
open_by_handle_at mount_dfd:D handle_uaddr:p flags:x
perf_event_open attr_uaddr:p pid:d cpu:d group_fd:d flags:x
pivot_root new_root_str:s old_root_str:s
pkey_alloc flags:x init_val:x
pkey_free pkey:d
pkey_mprotect addr:x len:u prot:x pkey:d
preadv2|pwritev2 fd:d vector_uaddr:p count:u offset:d high:d flags:x
process_vm_readv|process_vm_writev pid:d local_iov_uaddr:p liovcnt:u remote_iov_uaddr:p riovcnt:u flags:x
quotactl cmd:x special_str:s id:d addr_uaddr:p
remap_file_pages start:x size:u prot:x pgoff:u flags:x
request_key type_uaddr:s description_uaddr:s callout_info_uaddr:s destringid:d
rt_sigqueueinfo pid:d sig:d uinfo_uaddr:p
rt_tgsigqueueinfo tgid:d tid:d sig:d uinfo_uaddr:p
sched_getattr pid:d sched_attr_uaddr:p size:u flags:x
sched_setattr pid:d sched_attr_uaddr:p flags:x
seccomp op:d flags:x uargs_uaddr:p
semtimedop semid:d sops_uaddr:p nsops:u timeout_uaddr:t
set_mempolicy mode:d nmask_uaddr:p maxnode:u
swapon path:s swapflags:x
sync_file_range fd:d offset:d nbytes:d flags:x
sysfs option:d arg1:x arg2:x
userfaultfd flags:x
vmsplice fd:d iov:p nr_segs:u flags:x
`

// resultFormats are how results are printed that are not decimal: 2 is hexadecimal, 3 octal.
var resultFormats = map[string]int{"mmap": 2, "mremap": 2, "umask": 3}

// renamed are the names that SystemTap has for what the kernel calls otherwise.
var renamed = map[string]string{
	"stat": "newstat", "lstat": "newlstat", "fstat": "newfstat", "uname": "newuname", "umount2": "umount",
	"pread": "pread64", "pwrite": "pwrite64", "sendfile": "sendfile64",
}

// syscallPoint resolves syscall.NAME and nd_syscall.NAME. ok is false for other points.
func (a *analysis) syscallPoint(p *probe, pt *point, c chain, depth int) (n int, ok bool) {
	first := pt.parts[0]
	if first.name != "syscall" && first.name != "nd_syscall" {
		return 0, false
	}
	if len(pt.parts) < 2 {
		a.mismatch(pt, first)
	}
	ret := len(pt.parts) == 3 && pt.parts[2].name == "return"
	if len(pt.parts) > 2 && !ret {
		a.mismatch(pt, pt.parts[2])
	}
	if a.k == nil || a.k.Functions == nil {
		a.fail(first.tok, "this probe point needs a kernel: name one with -r IMAGE")
	}
	pattern := pt.parts[1].name
	var names []string
	for name := range syscallArgs {
		if ok, _ := path.Match(pattern, name); ok && (name == pattern || renamed[name] == "") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	if len(names) == 0 {
		a.fail(pt.parts[1].tok, "no system call %s is in the table of docs/stap.md; probe its function with kernel.function", pattern)
	}
	for _, name := range names {
		al := a.syscallAlias(first.name, name, ret)
		if al == nil {
			continue
		}
		one := c
		one.syscall = name
		if one.alias == "" {
			one.alias = (&point{parts: al.names[0].parts}).String()
			if ret {
				one.alias += ".return"
			}
		}
		next := &point{parts: al.names[0].parts, optional: true, cond: pt.cond}
		a.possible(func() { n += a.alias(p, al, al.names[0], next, nil, one, depth+1) })
	}
	if n == 0 && !c.optional {
		a.none(pt, first)
	}
	return n, true
}

// syscallAlias writes the alias of a system call, nil where the kernel has no function for it.
func (a *analysis) syscallAlias(kind, name string, ret bool) *probe {
	key := fmt.Sprint(kind, ".", name, ".", ret)
	if al, ok := a.made[key]; ok {
		return al
	}
	in := name
	if r := renamed[name]; r != "" {
		in = r
	}
	var fn string
	for _, prefix := range []string{"__x64_sys_", "sys_", "SyS_"} {
		if len(a.k.Functions(prefix+in)) > 0 {
			fn = prefix + in
			break
		}
	}
	if a.made == nil {
		a.made = map[string]*probe{}
	}
	if fn == "" {
		a.made[key] = nil
		return nil
	}
	var b strings.Builder
	suffix := ".call"
	if ret {
		suffix = ".return"
	}
	fmt.Fprintf(&b, "probe %s.%s = kprobe.function(\"%s\")%s {\n name = \"%s\"\n", kind, in, fn, suffix, strings.TrimPrefix(in, "new"))
	if ret {
		format := max(resultFormats[in], 1)
		fmt.Fprintf(&b, " retval = returnval()\n retstr = return_str(%d, retval)\n", format)
	} else {
		b.WriteString(syscallBody(syscallArgs[name]))
	}
	b.WriteString("}\n")
	a.made[key] = libraryText(b.String()).aliases[0]
	return a.made[key]
}

// syscallBody sets the variables of the parameters, and argstr.
func syscallBody(table string) string {
	var b strings.Builder
	var formats, args []string
	list := strings.Fields(table)
	for i, word := range list {
		name, how, _ := strings.Cut(word, ":")
		get := fmt.Sprintf("__syscall_arg(%d)", i+1)
		switch how {
		case "s":
			fmt.Fprintf(&b, " %s = user_string_quoted(%s)\n", name, get)
			formats, args = append(formats, "%s"), append(args, name)
		case "D":
			fmt.Fprintf(&b, " %s = %s\n %s = (%s << 32) >> 32\n %s_str = %s == -100 ? \"AT_FDCWD\" : sprint(%s)\n", name, get, name, name, name, name, name)
			formats, args = append(formats, "%s"), append(args, name+"_str")
		case "d":
			fmt.Fprintf(&b, " %s = (%s << 32) >> 32\n", name, get)
			formats, args = append(formats, "%d"), append(args, name)
		case "b":
			fmt.Fprintf(&b, " %s = %s\n buf_str = user_buffer_quoted(%s, __syscall_arg(%d), 64)\n", name, get, get, i+2)
			formats, args = append(formats, "%s"), append(args, "buf_str")
		case "O":
			fmt.Fprintf(&b, " %s = %s & 0xffffffff\n %s_str = __open_flags(%s)\n", name, get, name, name)
			formats, args = append(formats, "%s"), append(args, name+"_str")
		case "o":
			fmt.Fprintf(&b, " %s = %s & 0xffff\n", name, get)
			formats, args = append(formats, "%#o"), append(args, name)
		case "a":
			fmt.Fprintf(&b, " %s = (%s << 32) >> 32\n %s_str = __access_mode(%s)\n", name, get, name, name)
			formats, args = append(formats, "%s"), append(args, name+"_str")
		case "t":
			text := strings.TrimSuffix(name, "_uaddr") + "_str"
			fmt.Fprintf(&b, " %s = %s\n %s = __timespec(%s)\n", name, get, text, name)
			formats, args = append(formats, "%s"), append(args, text)
		case "u":
			fmt.Fprintf(&b, " %s = %s\n", name, get)
			formats, args = append(formats, "%u"), append(args, name)
		case "p", "x":
			fmt.Fprintf(&b, " %s = %s\n", name, get)
			formats, args = append(formats, "%#x"), append(args, name)
		default:
			fmt.Fprintf(&b, " %s = %s\n %s_str = %s(%s)\n", name, get, name, how, name)
			formats, args = append(formats, "%s"), append(args, name+"_str")
		}
	}
	format := strings.Join(formats, ", ")
	if len(list) == 0 {
		return " argstr = \"\"\n"
	}
	if strings.Contains(table, ":O ") {
		// The mode of open counts where a file is made.
		fmt.Fprintf(&b, " if (flags & 0100) argstr = sprintf(%q, %s)\n", format, strings.Join(args, ", "))
		formats, args = formats[:len(formats)-1], args[:len(args)-1]
		fmt.Fprintf(&b, " else argstr = sprintf(%q, %s)\n", strings.Join(formats, ", "), strings.Join(args, ", "))
		return b.String()
	}
	fmt.Fprintf(&b, " argstr = sprintf(%q, %s)\n", format, strings.Join(args, ", "))
	return b.String()
}

// Where a system call's parameters are in pt_regs, which the functions of kernels since 4.17
// get a pointer to.
var inRegs = [...]uint64{112, 104, 96, 56, 72, 64}

func syscallArg(s System, t *script.Thread, a *script.Args) int64 {
	n := a.Int[0] - 1
	if !strings.HasPrefix(s.Probe().Symbol, "__x64_") {
		return int64(s.Register(passed[n]))
	}
	var b [8]byte
	if !s.Read(s.Register(passed[0])+inRegs[n], b[:], false) {
		t.Fail(a.Near, "the registers of the system call cannot be read")
	}
	return int64(littleEndian(b[:]))
}

func littleEndian(b []byte) (v uint64) {
	for _, one := range slices.Backward(b) {
		v = v<<8 | uint64(one)
	}
	return v
}

// flagSet are the names of a parameter's bits or, where one is chosen, of its values. wide has all 64 bits of it.
type flagSet struct {
	names  []flag
	chosen bool
	wide   bool
}

// flagSets are SystemTap's functions of flags by their names; the numbers are the kernel's (uapi, x86).
var flagSets = map[string]flagSet{
	"_mprotect_prot_str": {wide: true, names: []flag{
		{0, "PROT_NONE"}, {1, "PROT_READ"}, {2, "PROT_WRITE"}, {4, "PROT_EXEC"}, {8, "PROT_SEM"}, {0x1000000, "PROT_GROWSDOWN"}, {0x2000000, "PROT_GROWSUP"},
	}},
	"_mmap_flags": {wide: true, names: []flag{
		{1, "MAP_SHARED"}, {2, "MAP_PRIVATE"}, {0x10, "MAP_FIXED"}, {0x20, "MAP_ANONYMOUS"}, {0x100, "MAP_GROWSDOWN"}, {0x800, "MAP_DENYWRITE"},
		{0x1000, "MAP_EXECUTABLE"}, {0x2000, "MAP_LOCKED"}, {0x4000, "MAP_NORESERVE"}, {0x8000, "MAP_POPULATE"}, {0x10000, "MAP_NONBLOCK"},
		{0x20000, "MAP_STACK"}, {0x40000, "MAP_HUGETLB"}, {0x40, "MAP_32BIT"},
	}},
	"_mremap_flags":        {names: []flag{{1, "MREMAP_MAYMOVE"}, {2, "MREMAP_FIXED"}}},
	"_msync_flag_str":      {names: []flag{{1, "MS_ASYNC"}, {2, "MS_INVALIDATE"}, {4, "MS_SYNC"}}},
	"_mlockall_flags_str":  {names: []flag{{1, "MCL_CURRENT"}, {2, "MCL_FUTURE"}, {4, "MCL_ONFAULT"}}},
	"_getrandom_flags_str": {names: []flag{{1, "GRND_NONBLOCK"}, {2, "GRND_RANDOM"}}},
	"_dup3_flag_str":       {names: openFlags},
	"_at_flag_str": {wide: true, names: []flag{
		{0x100, "AT_SYMLINK_NOFOLLOW"}, {0x200, "AT_REMOVEDIR"}, {0x400, "AT_SYMLINK_FOLLOW"}, {0x800, "AT_NO_AUTOMOUNT"}, {0x1000, "AT_EMPTY_PATH"},
	}},
	"_seek_whence_str": {chosen: true, names: []flag{{0, "SEEK_SET"}, {1, "SEEK_CUR"}, {2, "SEEK_END"}, {3, "SEEK_DATA"}, {4, "SEEK_HOLE"}}},
	"_madvice_advice_str": {chosen: true, names: []flag{
		{0, "MADV_NORMAL"}, {1, "MADV_RANDOM"}, {2, "MADV_SEQUENTIAL"}, {3, "MADV_WILLNEED"}, {4, "MADV_DONTNEED"}, {8, "MADV_FREE"}, {9, "MADV_REMOVE"},
		{10, "MADV_DONTFORK"}, {11, "MADV_DOFORK"}, {12, "MADV_MERGEABLE"}, {13, "MADV_UNMERGEABLE"}, {14, "MADV_HUGEPAGE"}, {15, "MADV_NOHUGEPAGE"},
		{16, "MADV_DONTDUMP"}, {17, "MADV_DODUMP"}, {100, "MADV_HWPOISON"}, {101, "MADV_SOFT_OFFLINE"},
	}},
}

func (f flagSet) text(_ System, _ *script.Thread, a *script.Args, dst []byte) []byte {
	v := a.Int[0]
	if !f.wide {
		v &= 0xffffffff
	}
	if !f.chosen {
		return flagsText(dst, f.names, v)
	}
	for _, one := range f.names {
		if one.bits == v {
			return append(dst, one.name...)
		}
	}
	return hexText(dst, uint64(v))
}

// accessModes are what access(2) asks by their bits.
var accessModes = []flag{{4, "R_OK"}, {2, "W_OK"}, {1, "X_OK"}}

func accessModeText(_ System, _ *script.Thread, a *script.Args, dst []byte) []byte {
	if a.Int[0] == 0 {
		return append(dst, "F_OK"...)
	}
	return flagsText(dst, accessModes, a.Int[0])
}

// timespecText is a time of a program's memory in brackets.
func timespecText(s System, _ *script.Thread, a *script.Args, dst []byte) []byte {
	at := uint64(a.Int[0])
	var b [16]byte
	switch {
	case at == 0:
		return append(dst, "NULL"...)
	case !s.Read(at, b[:], true):
		return hexText(dst, at)
	}
	return fmt.Appendf(dst, "[%d.%09d]", int64(littleEndian(b[:8])), int64(littleEndian(b[8:])))
}

// openFlags are the flags of open(2) by their bits.
var openFlags = []flag{
	{0o100, "O_CREAT"}, {0o200, "O_EXCL"}, {0o400, "O_NOCTTY"}, {0o1000, "O_TRUNC"}, {0o2000, "O_APPEND"}, {0o4000, "O_NONBLOCK"},
	{0o4010000, "O_SYNC"}, {0o10000, "O_DSYNC"}, {0o20000, "O_ASYNC"}, {0o40000, "O_DIRECT"}, {0o100000, "O_LARGEFILE"}, {0o20200000, "O_TMPFILE"},
	{0o200000, "O_DIRECTORY"}, {0o400000, "O_NOFOLLOW"}, {0o1000000, "O_NOATIME"}, {0o2000000, "O_CLOEXEC"}, {0o10000000, "O_PATH"},
}

func openFlagsText(_ System, _ *script.Thread, a *script.Args, dst []byte) []byte {
	v := a.Int[0]
	dst = append(dst, [...]string{"O_RDONLY", "O_WRONLY", "O_RDWR", "0x3"}[v&3]...)
	for _, f := range openFlags {
		if v&f.bits == f.bits {
			v &^= f.bits
			dst = append(append(dst, '|'), f.name...)
		}
	}
	return dst
}
