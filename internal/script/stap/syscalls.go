package stap

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"kprobelab/internal/script"
)

// syscallArgs are the parameters of system calls: a name and how it is printed. d is decimal, u
// without a sign, x hexadecimal, o octal, p a pointer, s a string of the program, b its bytes
// (the next parameter says how many), O the flags of open and what follows them, a what access asks,
// t a pointer to a time, L to a list of strings, N a pointer of which NULL is said so, U 32 bits in hexadecimal; any
// other is the function that makes a text of it, with its parameters: a dot is this one, $3 the third of the call.
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
close|fchdir|fsync|fdatasync|syncfs|dup fd:d
epoll_create1 flags:_epoll_create1_flag_str
inotify_init1 flags:_inotify_init1_flag_str
stat|lstat|newstat|newlstat filename:s buf_uaddr:p
fstat|newfstat|fstatfs filedes:d buf_uaddr:p
newfstatat dfd:D path:s buf_uaddr:p flags:_at_flag_str
statx dfd:D filename:s flags:_at_flag_str mask:_statx_mask_str buf_uaddr:p
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
rt_sigaction sig:_signal_name act_uaddr:p oact_uaddr:p sigsetsize:u
rt_sigprocmask how:_sigprocmask_how_str set_uaddr:_stp_sigset_u oset_uaddr:p sigsetsize:u
rt_sigpending|rt_sigsuspend set_uaddr:p sigsetsize:u
rt_sigtimedwait uthese_uaddr:_stp_sigset_u uinfo_uaddr:N uts_uaddr:t sigsetsize:u
sigaltstack uss_uaddr:p uoss_uaddr:p
ioctl fd:d request:d argp:p
fcntl fd:d cmd:_fcntl_cmd_str arg:p
flock fd:d operation:_flock_cmd_str
pread64|pread fd:d buf_uaddr:p count:u offset:d
pwrite64|pwrite fd:d buf_uaddr:b count:u offset:d
readv|writev fd:d vector_uaddr:p count:u
preadv|pwritev fd:d vector_uaddr:p count:d offset:p
access pathname:s mode:a
faccessat dirfd:D pathname:s mode:a
faccessat2 dirfd:D pathname:s mode:a flags:_faccessat2_flags_str
pipe fildes_uaddr:p
pipe2 fildes_uaddr:p flags:_sys_pipe2_flag_str
select n:d readfds_uaddr:p writefds_uaddr:p exceptfds_uaddr:p timeout_uaddr:_struct_timeval_u(.,1)
pselect6 nfds:d readfds:p writefds:p exceptfds:p timeout:t sigmask:p
ppoll ufds_uaddr:p nfds:u tsp:t sigmask:p sigsetsize:u
sched_yield|pause|getpid|getppid|gettid|getuid|geteuid|getgid|getegid|getpgrp|setsid|sync|vhangup|munlockall|inotify_init|fork|vfork|rt_sigreturn|restart_syscall
shmget key:d size:u shmflg:_stp_shmget_flags_str
shmat shmid:d shmaddr_uaddr:p shmflg:_shmat_flags_str
shmdt shmaddr_uaddr:p
shmctl shmid:d cmd:_semctl_cmd buf_uaddr:p
semget key:_stp_msgget_key_str nsems:d semflg:__sem_flags
semop semid:d tsops_uaddr:p nsops:u
semctl semid:d semnum:d cmd:_semctl_cmd arg:p
msgget key:_stp_msgget_key_str msgflg:__sem_flags
msgsnd msqid:d msgp_uaddr:p msgsz:u msgflg:_stp_msgflg_str
msgrcv msqid:d msgp_uaddr:p msgsz:u msgtyp:d msgflg:_stp_msgflg_str
msgctl msqid:d cmd:_stp_msgctl_cmd_str buf_uaddr:p
dup2 oldfd:d newfd:d
dup3 oldfd:d newfd:d flags:_dup3_flag_str
nanosleep req_uaddr:t rem_uaddr:p
clock_nanosleep clk_id:_get_wc_str flags:_stp_clock_nanosleep_flags_str req_uaddr:t rem_uaddr:p
clock_gettime|clock_getres clk_id:_get_wc_str tp_uaddr:p
clock_settime clk_id:_get_wc_str tp_uaddr:t
gettimeofday tv_uaddr:p tz_uaddr:p
settimeofday tv_uaddr:_struct_timeval_u(.,1) tz_uaddr:_struct_timezone_u
time t_uaddr:p
times buf_uaddr:p
getitimer which:_itimer_which_str value_uaddr:p
setitimer which:_itimer_which_str value_uaddr:_struct_itimerval_u ovalue_uaddr:p
alarm seconds:u
timer_create clockid:_get_wc_str evp_uaddr:p timerid_uaddr:p
timer_settime timerid:d flags:d value_uaddr:_struct_itimerspec_u ovalue_uaddr:p
timer_gettime timerid:d value_uaddr:p
timer_delete|timer_getoverrun timerid:d
timerfd_create clockid:_get_wc_str flags:_stp_timerfd_flags_str
timerfd_settime fd:d flags:_stp_timerfd_flags_str value_uaddr:_struct_itimerspec_u ovalue_uaddr:p
timerfd_gettime fd:d value_uaddr:p
sendfile|sendfile64 out_fd:d in_fd:d offset_uaddr:p count:u
copy_file_range fd_in:d off_in:p fd_out:d off_out:p len:u flags:x
splice fd_in:d off_in:p fd_out:d off_out:p len:u flags:_stp_splice_flags_str
tee fdin:d fdout:d len:u flags:x
socket family:_sock_family_str type:_sock_type_str protocol:_sock_protocol_str(family,.)
socketpair family:_sock_family_str type:_sock_type_str protocol:_sock_protocol_str(family,.) sv_uaddr:p
connect sockfd:d serv_addr_uaddr:_struct_sockaddr_u(.,$3) addrlen:u
accept sockfd:d addr_uaddr:p addrlen_uaddr:p
accept4 sockfd:d addr_uaddr:p addrlen_uaddr:p flags:_sock_flags_str
sendto s:d buf_uaddr:b len:u flags:_msg_flags_str to_uaddr:_struct_sockaddr_u(.,$6) tolen:u
recvfrom s:d buf_uaddr:p len:u flags:_msg_flags_str addr_uaddr:p addrlen_uaddr:p
sendmsg|recvmsg s:d msg_uaddr:p flags:_msg_flags_str
sendmmsg s:d mmsg_uaddr:p vlen:u flags:_msg_flags_str
recvmmsg s:d mmsg_uaddr:p vlen:u flags:_msg_flags_str timeout_uaddr:t
shutdown s:d how:_shutdown_how_str
bind sockfd:d my_addr_uaddr:_struct_sockaddr_u(.,$3) addrlen:d
listen sockfd:d backlog:d
getsockname|getpeername s:d name_uaddr:p namelen_uaddr:p
setsockopt fd:d level:_sockopt_level_str optname:_sockopt_optname_str optval_uaddr:p optlen:u
getsockopt fd:d level:_sockopt_level_str optname:_sockopt_optname_str optval_uaddr:p optlen_uaddr:p
clone clone_flags:__fork_flags stack_start:p parent_tid_uaddr:p child_tid_uaddr:p
clone3 uargs:p size:u
execve filename:s argv_uaddr:L envp_uaddr:L
execveat dirfd:D filename:s argv_uaddr:L envp_uaddr:L flags:_at_flag_str
exit|exit_group status:d
wait4 pid:d status_uaddr:p options:_wait4_opt_str rusage_uaddr:p
waitid which:_waitid_which_str pid:d infop_uaddr:p options:_wait4_opt_str rusage_uaddr:p
kill pid:d sig:_signal_name
tkill tid:d sig:_signal_name
tgkill tgid:d pid:d sig:_signal_name
uname|newuname name_uaddr:p
truncate path:s length:d
ftruncate fd:d length:d
fallocate fd:d mode:_stp_fallocate_mode_str offset:p len:d
getdents|getdents64 fd:d dirp_uaddr:p count:u
getcwd buf_uaddr:p size:u
chdir|chroot|rmdir|swapoff|acct path:s
mkdir pathname:s mode:o
mkdirat dirfd:D pathname:s mode:o
rename|link|symlink oldpath:s newpath:s
renameat olddfd:D oldname:s newdfd:D newname:s
renameat2 olddfd:D oldname:s newdfd:D newname:s flags:_renameat2_flags_str
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
fchownat dirfd:D pathname:s owner:d group:d flags:_at_flag_str
umask mask:o
utime filename:s buf_uaddr:p
utimes filename:s tvp_uaddr:_struct_timeval_u(.,2)
utimensat dfd:D filename:s tsp_uaddr:_struct_timespec_u(.,2) flags:_at_flag_str
mknod pathname:s mode:_mknod_mode_str dev:u
mknodat dirfd:D pathname:s mode:_mknod_mode_str dev:u
mount source:s target:s filesystemtype:s mountflags:_mountflags_str data:p
umount|umount2 target:s flags:_umountflags_str
sysinfo info_uaddr:p
getrlimit resource:_rlimit_resource_str rlim_uaddr:p
setrlimit resource:_rlimit_resource_str rlim_uaddr:_struct_rlimit_u
prlimit64 pid:d resource:_rlimit_resource_str new_rlim_uaddr:_struct_rlimit_u old_rlim_uaddr:p
getrusage who:_rusage_who_str usage_uaddr:p
getpriority which:_priority_which_str who:d
setpriority which:_priority_which_str who:d prio:d
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
arch_prctl code:_stp_arch_prctl_func_str addr:d
ptrace request:d pid:d addr:x data:x
futex futex_uaddr:p op:_futex_op_str val:d
set_robust_list list_head_uaddr:p len:u
get_robust_list pid:d list_head_uaddr:p len_uaddr:p
set_tid_address tidptr_uaddr:p
sched_setaffinity|sched_getaffinity pid:d len:u mask_uaddr:p
sched_setscheduler pid:d policy:_sched_policy_str param_uaddr:p
sched_getscheduler pid:d
sched_setparam|sched_getparam pid:d p_uaddr:p
sched_get_priority_max|sched_get_priority_min policy:_sched_policy_str
sched_rr_get_interval pid:d tp_uaddr:p
epoll_create size:d
epoll_ctl epfd:d op:_opoll_op_str fd:d event_uaddr:p
epoll_wait epfd:d events_uaddr:p maxevents:d timeout:d
epoll_pwait epfd:d events_uaddr:p maxevents:d timeout:d sigmask_uaddr:p sigsetsize:u
eventfd count:u
eventfd2 count:u flags:_eventfd2_flag_str
signalfd ufd:d user_mask_uaddr:p sizemask:u
signalfd4 ufd:d user_mask_uaddr:p sizemask:u flags:_signalfd4_flags_str
inotify_add_watch fd:d path:s mask:_inotify_watch_mask_str
inotify_rm_watch fd:d wd:d
getrandom buf_uaddr:user_string_n_quoted(.,$2) count:u flags:_getrandom_flags_str
memfd_create uname:s flags:_mfd_flags_str
mlock|munlock addr:x len:u
mlock2 addr:p len:u flags:_stp_mlock2_str
mlockall flags:_mlockall_flags_str
personality persona:U
syslog type:d bufp_uaddr:p len:d
sethostname hostname:s len:d
setdomainname domainname:s len:d
reboot magic:_reboot_magic_str magic2:_reboot_magic_str flag:_reboot_flag_str arg_uaddr:p
rseq rseq:p rseq_len:u flags:x sig:x
getcpu cpu_uaddr:p node_uaddr:p tcache_uaddr:p
unshare unshare_flags:__fork_flags
setns fd:d nstype:__fork_flags
getxattr|lgetxattr path:s name_str:s value_uaddr:p size:u
setxattr|lsetxattr path:s name_str:s value_uaddr:_stp_xattr_val_str(.,$4) size:u flags:_stp_xattr_flags_str
listxattr|llistxattr path:s list_uaddr:p size:u
removexattr|lremovexattr path:s name_str:s
readahead fd:d offset:d count:u
fadvise64 fd:d offset:d len:d advice:_fadvice_advice_str
close_range fd:u max_fd:u flags:x
add_key type_uaddr:s description_uaddr:s payload_uaddr:user_string_n_quoted(.,$4) plen:u ringid:d
adjtimex buf_uaddr:N
bpf cmd:_bpf_cmd_str attr_uaddr:p size:u
capget|capset header_uaddr:p data_uaddr:p
clock_adjtime clk_id:_get_wc_str tx_uaddr:N
delete_module name_user:s flags:_module_flags_str
fanotify_init flags:_fanotify_init_flags_str event_f_flags:__open_flags
fanotify_mark fanotify_fd:d flags:_fanotify_mark_flags_str mask:_fanotify_mark_mask_str dirfd:D pathname:s
fgetxattr filedes:d name_str:s value_uaddr:p size:u
finit_module fd:d uargs:s flags:_finit_module_flags_str
flistxattr filedes:d list_uaddr:p size:u
fremovexattr filedes:d name_str:s
fsetxattr filedes:d name_str:s value_uaddr:_stp_xattr_val_str(.,$4) size:u flags:_stp_xattr_flags_str
futimesat dirfd:D filename:s tvp_uaddr:_struct_timeval_u(.,2)
get_mempolicy policy_uaddr:p nmask_uaddr:p maxnode:u addr:x flags:x
init_module umod_uaddr:p len:u uargs:s
io_cancel ctx_id:u iocb_uaddr:p result_uaddr:p
io_destroy ctx:u
io_getevents ctx_id:u min_nr:d nr:d events_uaddr:p timeout_uaddr:t
io_setup maxevents:u ctxp_uaddr:p
io_submit ctx_id:u nr:d iocbpp_uaddr:p
ioperm from:x num:x turn_on:x
ioprio_get which:_stp_ioprio_which_str who:d
ioprio_set which:_stp_ioprio_which_str who:d ioprio:_stp_ioprio_value_str
kcmp pid1:d pid2:d type:_kcmp_type_str idx1:u idx2:u
kexec_file_load kernel_fd:d initrd_fd:d cmdline_len:u cmdline:s flags:_kexec_file_load_flags_str
kexec_load entry:x nr_segments:u segments_uaddr:p flags:_kexec_flags_str
keyctl option:d arg2:x arg3:x arg4:x arg5:x
mbind start:p len:u mode:_mempolicy_mode_str nmask_uaddr:p maxnode:u flags:x
membarrier cmd:_membarrier_cmd_str flags:d
memfd_secret flags:_mfd_flags_str
migrate_pages pid:d maxnode:u old_nodes:p new_nodes:p
modify_ldt func:d ptr_uaddr:p bytecount:u
move_pages pid:d nr_pages:u pages:p nodes:p status:p flags:x
mq_getsetattr mqdes:d u_mqstat_uaddr:p u_omqstat_uaddr:p
mq_notify mqdes:d notification_uaddr:p
mq_open filename:s oflag:x mode:o u_attr_uaddr:p
mq_timedreceive mqdes:d msg_ptr_uaddr:p msg_len:u msg_prio_uaddr:p abs_timeout_uaddr:p
mq_timedsend mqdes:d msg_ptr_uaddr:p msg_len:u msg_prio:u abs_timeout_uaddr:p
mq_unlink u_name:s
name_to_handle_at dfd:D pathname:s handle_uaddr:p mnt_id_uaddr:p flags:_at_flag_str
open_by_handle_at mount_dfd:D handle_uaddr:p flags:__open_flags
perf_event_open attr_uaddr:p pid:d cpu:d group_fd:d flags:_perf_event_open_flags_str
pivot_root new_root_str:s old_root_str:s
pkey_alloc flags:u init_val:_pkey_alloc_init_val_str
pkey_free pkey:d
pkey_mprotect addr:p len:u prot:_mprotect_prot_str pkey:d
preadv2|pwritev2 fd:d vector_uaddr:p count:d offset:p -:- flags:_preadv2_flags_str
process_vm_readv|process_vm_writev pid:d local_iov_uaddr:p liovcnt:u remote_iov_uaddr:p riovcnt:u flags:u
quotactl cmd:x special_str:s id:d addr_uaddr:p
remap_file_pages start:p size:p prot:_mprotect_prot_str pgoff:p flags:_mmap_flags
request_key type_uaddr:s description_uaddr:s callout_info_uaddr:s destringid:d
rt_sigqueueinfo pid:d sig:_signal_name uinfo_uaddr:N
rt_tgsigqueueinfo tgid:d tid:d sig:_signal_name uinfo_uaddr:N
sched_getattr pid:d sched_attr_uaddr:p size:u flags:x
sched_setattr pid:d sched_attr_uaddr:N flags:u
seccomp op:_seccomp_op_str flags:_seccomp_flags_str uargs_uaddr:p
semtimedop semid:d sops_uaddr:p nsops:u timeout_uaddr:t
set_mempolicy mode:_mempolicy_mode_str nmask_uaddr:p maxnode:u
swapon path:s swapflags:_swapon_flags_str
sync_file_range fd:d offset:d nbytes:d flags:_sync_file_range_flags_str
sysfs option:d arg1:x arg2:x
userfaultfd flags:_userfaultfd_flags_str
vmsplice fd:d iov:p nr_segs:u flags:_stp_splice_flags_str
`

// resultFormats are how results are printed that are not decimal: 2 is hexadecimal, 3 octal.
var resultFormats = map[string]int{"mmap": 2, "mremap": 2, "umask": 3}

// calledBy are the kernel's functions of the aliases that have another name, or more than one function.
var calledBy = map[string][]string{
	"stat": {"newstat"}, "lstat": {"newlstat"}, "fstat": {"newfstat"}, "fstatat": {"newfstatat"}, "uname": {"newuname"},
	"pread": {"pread64"}, "pwrite": {"pwrite64"}, "sendfile": {"sendfile64"}, "pipe": {"pipe", "pipe2"}, "getdents": {"getdents", "getdents64"}, "eventfd": {"eventfd", "eventfd2"},
	"epoll_create": {"epoll_create", "epoll_create1"}, "signalfd": {"signalfd", "signalfd4"}, "inotify_init": {"inotify_init", "inotify_init1"},
}

// aliasOf are the aliases of the kernel's functions, where they have another name.
var aliasOf = map[string]string{}

func init() {
	for alias, list := range calledBy {
		for _, fn := range list {
			aliasOf[fn] = alias
		}
	}
}

// namesOf is what an alias sets name to, for functions that are called by more than their alias's name.
var namesOf = map[string]string{
	"pipe2": `"pipe2"`, "eventfd2": `"eventfd2"`, "inotify_init1": `"inotify_init1"`,
	"epoll_create1": `flags ? "epoll_create1" : "epoll_create"`, "signalfd4": `flags ? "signalfd4" : "signalfd"`,
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
		if calledBy[name] != nil && !slices.Contains(calledBy[name], name) {
			continue
		}
		if ok, _ := path.Match(pattern, cmp.Or(aliasOf[name], name)); ok {
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
		one.syscall = cmp.Or(aliasOf[name], name)
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
	var fn string
	for _, prefix := range []string{"__x64_sys_", "sys_", "SyS_"} {
		if len(a.k.Functions(prefix+name)) > 0 {
			fn = prefix + name
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
	alias := cmp.Or(aliasOf[name], name)
	called := cmp.Or(namesOf[name], strconv.Quote(alias))
	fmt.Fprintf(&b, "probe %s.%s = kprobe.function(\"%s\")%s {\n", kind, alias, fn, suffix)
	if ret {
		if strings.Contains(called, "?") {
			called = strconv.Quote(alias)
		}
		format := max(resultFormats[name], 1)
		fmt.Fprintf(&b, " name = %s\n retval = returnval()\n retstr = return_str(%d, retval)\n", called, format)
	} else {
		b.WriteString(cmp.Or(bodies[name], syscallBody(syscallArgs[name])))
		fmt.Fprintf(&b, " name = %s\n", called)
	}
	b.WriteString("}\n")
	a.made[key] = libraryText(b.String()).aliases[0]
	return a.made[key]
}

// bodies are those of calls whose argstr depends on their arguments.
var bodies = map[string]string{
	"pipe": `fildes_uaddr = __syscall_arg(1)
 if (fildes_uaddr) { pipe0 = user_int(fildes_uaddr); pipe1 = user_int(fildes_uaddr + 4); argstr = sprintf("[%d, %d]", pipe0, pipe1) } else argstr = "NULL"
`,
	"pipe2": `fildes_uaddr = __syscall_arg(1)
 flags = (__syscall_arg(2) << 32) >> 32
 flag_str = _sys_pipe2_flag_str(flags)
 if (fildes_uaddr) { pipe0 = user_int(fildes_uaddr); pipe1 = user_int(fildes_uaddr + 4); argstr = sprintf("[%d, %d], %s", pipe0, pipe1, flag_str) } else argstr = "NULL"
`,
	"rt_sigaction": `sig = (__syscall_arg(1) << 32) >> 32
 sig_str = _signal_name(sig)
 act_uaddr = __syscall_arg(2)
 act_str = _struct_sigaction_u(act_uaddr)
 oact_uaddr = __syscall_arg(3)
 sigsetsize = __syscall_arg(4)
 argstr = sprintf("%s, {%s}, %p, %d", sig_str, act_str, oact_uaddr, sigsetsize)
`,
	"mq_open": `filename = user_string_quoted(__syscall_arg(1))
 oflag = __syscall_arg(2) & 0xffffffff
 oflag_str = __open_flags(oflag)
 mode = __syscall_arg(3) & 0xffff
 u_attr_uaddr = __syscall_arg(4)
 argstr = sprintf("%s, %s", filename, oflag_str)
 if (oflag & 0100) argstr .= sprintf(", %#o, %p", mode, u_attr_uaddr)
`,
	"epoll_create1": `flags = (__syscall_arg(1) << 32) >> 32
 argstr = flags ? _epoll_create1_flag_str(flags) : "0"
`,
	"utime": `filename = user_string_quoted(__syscall_arg(1))
 buf_uaddr = __syscall_arg(2)
 if (buf_uaddr) { actime = user_long(buf_uaddr); modtime = user_long(buf_uaddr + 8) }
 argstr = sprintf("%s, [%s, %s]", filename, ctime(actime), ctime(modtime))
`,
	"futex": `futex_uaddr = __syscall_arg(1)
 op = (__syscall_arg(2) << 32) >> 32
 val = (__syscall_arg(3) << 32) >> 32
 utime_uaddr = __syscall_arg(4)
 uaddr2_uaddr = __syscall_arg(5)
 val3 = (__syscall_arg(6) << 32) >> 32
 argstr = sprintf("%p, %s, %d", futex_uaddr, _futex_op_str(op), val)
 if (op == 10) argstr .= sprintf(", %#x", val3)
 else if (op == 0) argstr .= ", " . _struct_timespec_u(utime_uaddr, 1)
 else if (op == 9) argstr .= sprintf(", %s, %#x", _struct_timespec_u(utime_uaddr, 1), val3)
 else if (op == 3) argstr .= sprintf(", %d, %p", utime_uaddr, uaddr2_uaddr)
 else if (op == 4 || op == 12) argstr .= sprintf(", %u, %p, %d", utime_uaddr, uaddr2_uaddr, val3)
 else if (op == 5) argstr .= sprintf(", %u, %p, %s", utime_uaddr, uaddr2_uaddr, _futex_wake_op_str(val3))
 else if (op == 11) argstr .= sprintf(", %s, %p", _struct_timespec_u(utime_uaddr, 1), uaddr2_uaddr)
`,
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
		case "-":
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
			fmt.Fprintf(&b, " %s = %s\n %s = _struct_timespec_u(%s, 1)\n", name, get, text, name)
			formats, args = append(formats, "%s"), append(args, text)
		case "u":
			fmt.Fprintf(&b, " %s = %s\n", name, get)
			formats, args = append(formats, "%u"), append(args, name)
		case "p", "x":
			fmt.Fprintf(&b, " %s = %s\n", name, get)
			formats, args = append(formats, "%#x"), append(args, name)
		case "N":
			text := strings.TrimSuffix(name, "_uaddr") + "_str"
			fmt.Fprintf(&b, " %s = %s\n %s = %s ? sprintf(\"%%p\", %s) : \"NULL\"\n", name, get, text, name, name)
			formats, args = append(formats, "%s"), append(args, text)
		case "U":
			fmt.Fprintf(&b, " %s = %s & 0xffffffff\n", name, get)
			formats, args = append(formats, "%#x"), append(args, name)
		case "L":
			text := map[string]string{"argv_uaddr": "args", "envp_uaddr": "env_str"}[name]
			fmt.Fprintf(&b, " %s = %s\n %s = __strings_of(%s, 0)\n", name, get, text, name)
			formats, args = append(formats, "%s"), append(args, text)
		default:
			fn, with, _ := strings.Cut(strings.TrimSuffix(how, ")"), "(")
			plain := strings.TrimSuffix(name, "_uaddr")
			if plain == name && !flagSets[fn].wide && fn != "__fork_flags" {
				get = fmt.Sprintf("(%s << 32) >> 32", get)
			}
			with = otherParameter.ReplaceAllString(strings.ReplaceAll(cmp.Or(with, "."), ".", name), "(__syscall_arg($1) << 32) >> 32")
			fmt.Fprintf(&b, " %s = %s\n %s_str = %s(%s)\n", name, get, plain, fn, with)
			formats, args = append(formats, "%s"), append(args, plain+"_str")
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

var otherParameter = regexp.MustCompile(`\$(\d)`)

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

// accessModes are what access(2) asks by their bits.
var accessModes = []flag{{4, "R_OK"}, {2, "W_OK"}, {1, "X_OK"}}

func accessModeText(_ System, _ *script.Thread, a *script.Args, dst []byte) []byte {
	if a.Int[0] == 0 {
		return append(dst, "F_OK"...)
	}
	return flagsText(dst, accessModes, a.Int[0])
}
