package stap

import "strings"

// syscallArgs has the parameters of each system call: the variable, and a word for its notation. d is a signed integer of
// 32 bits, i the same printed without its sign, w an unsigned one of 32 bits; l and u have all 64 bits. x and p are
// hexadecimal, U is 32 bits in hexadecimal, o is octal. s is a string of the program, b are its bytes (the next parameter
// is their number), O the flags of open and the parameters after them, a the mode of access, t a pointer to a time, L a
// pointer to a list of strings, N a pointer that is printed as NULL if it is 0. Any other word is the function that prints
// the parameter, with the function's parameters: a dot is this parameter, $3 the third one of the call. /w and /l give the
// width of the number; without them it is the width of d.
//
// Between = and the colon stand the names of the variables for the text and for the text without quotes, if these are not
// the usual ones; - means none. A word with + is a statement.
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
close|fchdir|fsync|fdatasync|syncfs fd:d
dup oldfd:d
epoll_create1 flags:_epoll_create1_flag_str
inotify_init1 flags:_inotify_init1_flag_str
stat|newstat filename_uaddr=filename:s buf_uaddr:p
lstat|newlstat|statfs path:s buf_uaddr:p
fstat|newfstat filedes:d buf_uaddr:p
fstatfs fd:d buf_uaddr:p
newfstatat dirfd:D path:s buf_uaddr:p flags:_at_flag_str
statx dfd:D filename_uaddr=filename:s flags:_at_flag_str/w mask:_statx_mask_str/w buf_uaddr:p
ustat dev:w ubuf_uaddr:p
poll ufds_uaddr:p nfds:w timeout:d
lseek fildes:d offset:d whence:_seek_whence_str/w
mmap start:p length:u prot:_mprotect_prot_str/l flags:_mmap_flags/l fd:d pgoffset:l
mprotect addr:p len:u prot:_mprotect_prot_str/l
munmap start:p length:u
mremap old_address:p old_size:l new_size:l flags:_mremap_flags/l new_address:p
msync start:p length:u flags:_msync_flag_str
madvise start:p length:u advice:_madvice_advice_str
mincore start:p length:u vec_uaddr:p
brk brk:x
rt_sigaction sig:_signal_name act_uaddr:p oact_uaddr:p sigsetsize:u
rt_sigprocmask how:_sigprocmask_how_str set_uaddr:_stp_sigset_u oldset_uaddr:p sigsetsize:u
rt_sigpending set_uaddr:p sigsetsize:u
rt_sigsuspend set_uaddr:_stp_sigset_u sigsetsize:u
rt_sigtimedwait uthese_uaddr:_stp_sigset_u uinfo_uaddr:N uts_uaddr:t sigsetsize:u
sigaltstack uss_uaddr:p uoss_uaddr:p
ioctl fd:d request:d argp:p
fcntl fd:d cmd:_fcntl_cmd_str arg:p
flock fd:d operation=-:_flock_cmd_str
pread64|pread fd:d buf_uaddr:p count:u offset:d
pwrite64|pwrite fd:d buf_uaddr:b count:u offset:d
readv|writev fd:d vector_uaddr:p count:i
preadv|pwritev fd:d vector_uaddr:p count:d offset:p
access pathname:s mode:a
faccessat dirfd:D pathname:s mode:a
faccessat2 dirfd:D pathname:s mode:a flags:_faccessat2_flags_str
pipe fildes_uaddr:p
pipe2 fildes_uaddr:p flags:_sys_pipe2_flag_str
select n:d readfds_uaddr:p writefds_uaddr:p exceptfds_uaddr:p timeout_uaddr:_struct_timeval_u(.,1)
pselect6 nfds:d readfds:p writefds:p exceptfds:p timeout:t sigmask:p
ppoll fds_uaddr:p nfds:w tsp:t sigmask:p sigsetsize:u
sched_yield|pause|getpid|getppid|gettid|getuid|geteuid|getgid|getegid|getpgrp|setsid|sync|vhangup|munlockall|fork|vfork|rt_sigreturn|restart_syscall
inotify_init +flags=0
shmget key:d size:u shmflg:_stp_shmget_flags_str
shmat shmid:d shmaddr_uaddr:p shmflg:_shmat_flags_str
shmdt shmaddr_uaddr:p
shmctl shmid:d cmd:_semctl_cmd buf_uaddr:p
semget key:_stp_msgget_key_str nsems:d semflg:__sem_flags
semop semid:d sops_uaddr:p nsops:w
semctl semid:d semnum:d cmd=cmdstr:_semctl_cmd arg:p
msgget key:_stp_msgget_key_str msgflg:__sem_flags
msgsnd msqid:d msgp_uaddr:p msgsz:u msgflg:_stp_msgflg_str
msgrcv msqid:d msgp_uaddr:p msgsz:u msgtyp:l msgflg:_stp_msgflg_str
msgctl msqid:d cmd:_stp_msgctl_cmd_str buf_uaddr:p
dup2 oldfd:d newfd:d +flags=0 +flags_str="0x0"
dup3 oldfd:d newfd:d flags:_dup3_flag_str
nanosleep req_uaddr:t rem_uaddr:p
clock_nanosleep clk_id:_get_wc_str flags:_stp_clock_nanosleep_flags_str req_uaddr:t rem_uaddr:p
clock_gettime clk_id:_get_wc_str tp_uaddr:p
clock_getres clk_id:_get_wc_str res_uaddr:p
clock_settime clk_id:_get_wc_str tp_uaddr=tp_uaddr_str:t
gettimeofday tv_uaddr:p tz_uaddr:p
settimeofday tv_uaddr:_struct_timeval_u(.,1) tz_uaddr:_struct_timezone_u
time t_uaddr:p
times buf_uaddr:p
getitimer which=-:_itimer_which_str value_uaddr:p
setitimer which:_itimer_which_str value_uaddr:_struct_itimerval_u ovalue_uaddr:p
alarm seconds:w
timer_create clockid:_get_wc_str evp_uaddr:p timerid_uaddr:p
timer_settime timerid:d flags:d value_uaddr:_struct_itimerspec_u ovalue_uaddr:p
timer_gettime timerid:d value_uaddr:p
timer_delete|timer_getoverrun timerid:d
timerfd_create clockid:_get_wc_str flags:_stp_timerfd_flags_str
timerfd_settime fd:d flags:_stp_timerfd_flags_str value_uaddr:_struct_itimerspec_u ovalue_uaddr:p
timerfd_gettime fd:d value_uaddr:p
sendfile|sendfile64 out_fd:d in_fd:d offset_uaddr:p count:u
copy_file_range fd_in:d off_in:p fd_out:d off_out:p len:u flags:U
splice fd_in:d off_in:p fd_out:d off_out:p len:u flags:_stp_splice_flags_str/w
tee fdin:d fdout:d len:u flags:U
socket family:_sock_family_str type:_sock_type_str protocol:_sock_protocol_str(family,.)
socketpair family:_sock_family_str type:_sock_type_str protocol:_sock_protocol_str(family,.) sv_uaddr:p
connect sockfd:d serv_addr_uaddr=-:_struct_sockaddr_u(.,$3) addrlen:w
accept sockfd:d addr_uaddr:p addrlen_uaddr:p
accept4 sockfd:d addr_uaddr:p addrlen_uaddr:p flags:_sock_flags_str
sendto s:d buf_uaddr=buf:b len:u flags:_msg_flags_str/w to_uaddr:_struct_sockaddr_u(.,$6) tolen:w
recvfrom s:d buf_uaddr:p len:u flags:_msg_flags_str/w addr_uaddr:p addrlen_uaddr:p
sendmsg|recvmsg s:d msg_uaddr:p flags:_msg_flags_str/w
sendmmsg s:d mmsg_uaddr:p vlen:w flags:_msg_flags_str/w
recvmmsg s:d mmsg_uaddr:p vlen:w flags:_msg_flags_str/w timeout_uaddr:t
shutdown s:d how:_shutdown_how_str
bind sockfd:d my_addr_uaddr=-:_struct_sockaddr_u(.,$3) addrlen:d
listen sockfd:d backlog:d
getsockname|getpeername s:d name_uaddr:p namelen_uaddr:p
setsockopt fd:d level:_sockopt_level_str optname:_sockopt_optname_str optval_uaddr:p optlen:w
getsockopt fd:d level:_sockopt_level_str optname:_sockopt_optname_str optval_uaddr:p optlen_uaddr:p
clone clone_flags=-:__fork_flags/l stack_start:p parent_tid_uaddr:p child_tid_uaddr:p
clone3 uargs:p size:u
execve =filename,-:s argv_uaddr:L envp_uaddr:L
execveat dirfd:D =filename,-:s argv_uaddr:L envp_uaddr:L flags:_at_flag_str
exit|exit_group status:d
wait4 pid:d status_uaddr:p options:_wait4_opt_str rusage_uaddr:p
waitid which:_waitid_which_str pid:d infop_uaddr:p options:_wait4_opt_str rusage_uaddr:p
kill pid:d sig=sig_name:_signal_name
tkill pid:d sig:_signal_name
tgkill tgid:d pid:d sig:_signal_name
uname|newuname name_uaddr:p
truncate path_uaddr=path:s length:l
ftruncate fd:d length:d
fallocate fd:d mode:_stp_fallocate_mode_str/w offset:p len:l
getdents|getdents64 fd:d dirp_uaddr:p count:w
getcwd buf_uaddr:p size:u
chdir|chroot path:s
rmdir pathname:s
swapoff path_uaddr=path:s
acct filename:s
mkdir pathname_uaddr=pathname:s mode:o
mkdirat dirfd:D =pathname,pahtname_unquoted:s mode:o
rename|link oldpath:s newpath:s
symlink oldpath:s =newpath,-:s
renameat olddfd:D oldname=oldname_str:s newdfd:D newname=newname_str:s
renameat2 olddfd:D oldname=oldname_str:s newdfd:D newname=newname_str:s flags:_renameat2_flags_str/w
linkat olddirfd:D oldpath:s newdirfd:D newpath:s flags:_at_flag_str
symlinkat oldname=oldname_str:s newdfd:D newname=newname_str:s
unlink pathname_uaddr=pathname:s
unlinkat dfd:D pathname=pathname_str:s flag:_at_flag_str/w
readlink path:s buf_uaddr:p bufsiz:i
readlinkat dfd:D path:s buf_uaddr:p bufsiz:i
chmod path:s mode:o
fchmod fildes:d mode:o
fchmodat dirfd:D pathname:s mode:o
chown|lchown path:s owner:d group:d
fchown fd:d owner:d group:d
fchownat dirfd:D pathname:s owner:d group:d flags:_at_flag_str
umask mask:o
utime filename:s buf_uaddr:p
utimes filename_uaddr=filename:s tvp_uaddr=tvp_uaddr_str:_struct_timeval_u(.,2)
utimensat dfd:D filename_uaddr=filename:s tsp_uaddr:_struct_timespec_u(.,2) flags:_at_flag_str
mknod pathname:s mode:_mknod_mode_str/w dev:w
mknodat dirfd:D pathname:s mode:_mknod_mode_str/w dev:w
mount source:s target:s filesystemtype:s mountflags:_mountflags_str/l =data:user_string_n_quoted(.,45)
umount|umount2 target:s flags:_umountflags_str
sysinfo info_uaddr:p
getrlimit resource=-:_rlimit_resource_str rlim_uaddr:p
setrlimit resource:_rlimit_resource_str/w rlim_uaddr:_struct_rlimit_u
prlimit64 pid:d resource:_rlimit_resource_str new_rlim_uaddr:_struct_rlimit_u old_rlim_uaddr:p
getrusage who:_rusage_who_str usage_uaddr:p
getpriority which=-:_priority_which_str who:d
setpriority which:_priority_which_str who:d prio:d
setuid uid:d
setfsuid fsuid:d
setgid gid:d
setfsgid fsgid:d
setreuid ruid:d euid:d
setregid rgid:d egid:d
setresuid ruid:d euid:d suid:d
setresgid rgid:d egid:d sgid:d
getresuid ruid_uaddr:p euid_uaddr:p suid_uaddr:p
getresgid rgid_uaddr:p egid_uaddr:p sgid_uaddr:p
getgroups|setgroups size:d list_uaddr:p
setpgid pid:d pgid:d
getpgid|getsid|sched_getscheduler pid:d
prctl|keyctl option:d arg2:x arg3:x arg4:x arg5:x
arch_prctl code:_stp_arch_prctl_func_str addr:l
ptrace request:l pid:d addr:x data:x
futex futex_uaddr:p op:_futex_op_str val:d
set_robust_list list_head_uaddr:p len:u
get_robust_list pid:d list_head_uaddr:p len_uaddr:p
set_tid_address tidptr_uaddr:p
sched_setaffinity|sched_getaffinity pid:d len:w mask_uaddr:p
sched_setscheduler pid:d policy:_sched_policy_str p_uaddr:p
sched_setparam|sched_getparam pid:d p_uaddr:p
sched_get_priority_max|sched_get_priority_min policy:_sched_policy_str
sched_rr_get_interval pid:d tp_uaddr:p
epoll_create size:d +flags=0
epoll_ctl epfd:d op:_opoll_op_str fd:d event_uaddr:p
epoll_wait epfd:d events_uaddr:p maxevents:d timeout:d
epoll_pwait epfd:d events_uaddr:p maxevents:d timeout:d sigmask_uaddr:p sigsetsize:u
eventfd count:w +flags=0 +flags_str="0x0"
eventfd2 count:u flags:_eventfd2_flag_str
signalfd ufd:d user_mask_uaddr:p sizemask:u
signalfd4 ufd:d user_mask_uaddr:p sizemask:u flags:_signalfd4_flags_str
inotify_add_watch fd:d path_uaddr=path:s mask:_inotify_watch_mask_str/w
inotify_rm_watch fd:d wd:d
getrandom =buf:user_string_quoted count:u flags:_getrandom_flags_str/w
memfd_create uname:s flags:_mfd_flags_str/w
mlock|munlock addr:x len:u
mlock2 addr:p len:u flags:_stp_mlock2_str
mlockall flags:_mlockall_flags_str
personality persona:U
syslog type:d bufp_uaddr:p len:d
sethostname hostname_uaddr=name_str:s len:d
setdomainname domainname_uaddr=domainname_str:s len:d
reboot magic:_reboot_magic_str magic2:_reboot_magic_str flag:_reboot_flag_str/w arg_uaddr:p
rseq rseq:p rseq_len:u flags:x sig:x
getcpu cpu_uaddr:p node_uaddr:p tcache_uaddr:p
unshare unshare_flags:__fork_flags/l
setns fd:d nstype:__fork_flags
getxattr|lgetxattr path:s name_str:s value_uaddr:p size:u
setxattr path_uaddr=path:s name_uaddr=name_str:s value_uaddr:_stp_xattr_val_str(.,$4) size:u flags:_stp_xattr_flags_str
lsetxattr path_uaddr=path:s name_uaddr=name_str:s value_uaddr:_stp_xattr_val_str(.,$4) size:u flags:_stp_xattr_flags_str
listxattr|llistxattr path_uaddr=path:s list_uaddr:p size:u
removexattr path:s name_str:s
lremovexattr path_uaddr=path:s name_uaddr=name_str:s
readahead fd:d offset:l count:u
fadvise64 fd:d offset:l len:l advice:_fadvice_advice_str
close_range fd:u max_fd:u flags:x
add_key type_uaddr=-:s description_uaddr=-:s payload_uaddr=-:user_string_n_quoted(.,$4) plen:u ringid:d
adjtimex buf_uaddr:N
bpf cmd:_bpf_cmd_str attr_uaddr:p size:w
capget|capset header_uaddr:p data_uaddr:p
clock_adjtime clk_id:_get_wc_str tx_uaddr=tx_uaddr_str:N
delete_module name_user:s flags:_module_flags_str/w
fanotify_init flags:_fanotify_init_flags_str/w event_f_flags:__open_flags/w
fanotify_mark fanotify_fd:d flags:_fanotify_mark_flags_str/w mask:_fanotify_mark_mask_str/l dirfd:D pathname:s
fgetxattr filedes:d name_str:s value_uaddr:p size:u
finit_module fd:d uargs:s flags:_finit_module_flags_str
flistxattr filedes:d list_uaddr:p size:u
fremovexattr filedes:d name_uaddr=name_str:s
fsetxattr filedes:d name_uaddr=name_str:s value_uaddr:_stp_xattr_val_str(.,$4) size:u flags:_stp_xattr_flags_str
futimesat dirfd:D filename_uaddr=filename:s tvp_uaddr:_struct_timeval_u(.,2)
get_mempolicy policy_uaddr:p nmask_uaddr:p maxnode:u addr:x flags:_mempolicy_flags_str/l
init_module umod_uaddr:p len:u uargs:s
io_cancel ctx_id:u iocb_uaddr:p result_uaddr:p
io_destroy ctx:u
io_getevents ctx_id:u min_nr:d nr:d events_uaddr:p timeout_uaddr=timestr:t
io_setup maxevents:w ctxp_uaddr:p
io_submit ctx_id:u nr:d iocbpp_uaddr:p
ioperm from:x num:x turn_on:U
ioprio_get which:_stp_ioprio_which_str who:d
ioprio_set which:_stp_ioprio_which_str who:d ioprio:_stp_ioprio_value_str
kcmp pid1:d pid2:d type:_kcmp_type_str idx1:u idx2:u
kexec_file_load kernel_fd:d initrd_fd:d cmdline_len:u cmdline:s flags:_kexec_file_load_flags_str/l
kexec_load entry:x nr_segments:u segments_uaddr:p flags:_kexec_flags_str/l
mbind start:p len:u mode:_mempolicy_mode_str nmask_uaddr:p maxnode:u flags:_mempolicy_flags_str/w
membarrier cmd:_membarrier_cmd_str flags:d
memfd_secret flags:_mfd_flags_str/w
migrate_pages pid:d maxnode:u old_nodes:p new_nodes:p
modify_ldt func:d ptr_uaddr:p bytecount:u
move_pages pid:d nr_pages:u pages:p nodes:p status:p flags:_mempolicy_flags_str
mq_getsetattr mqdes:d u_mqstat_uaddr:p u_omqstat_uaddr:p
mq_notify mqdes:d notification_uaddr:p
mq_open filename:s oflag:U mode:o u_attr_uaddr:p
mq_timedreceive mqdes:d msg_ptr_uaddr:p msg_len:u msg_prio_uaddr:p abs_timeout_uaddr:p
mq_timedsend mqdes:d msg_ptr_uaddr:p msg_len:u msg_prio:w abs_timeout_uaddr:p
mq_unlink u_name_uaddr=u_name:s
name_to_handle_at dfd:D pathname:s handle_uaddr:p mnt_id_uaddr:p flags:_at_flag_str
open_by_handle_at mount_dfd:D handle_uaddr:p flags:__open_flags
perf_event_open attr_uaddr:p pid:d cpu:d group_fd:d flags:_perf_event_open_flags_str/l
pivot_root new_root_str:s old_root_str:s
pkey_alloc flags:u init_val:_pkey_alloc_init_val_str/l
pkey_free pkey:d
pkey_mprotect addr:p len:u prot:_mprotect_prot_str/l pkey:d
preadv2|pwritev2 fd:d vector_uaddr:p count:d offset:p -:- flags:_preadv2_flags_str
process_vm_readv|process_vm_writev pid:d local_iov_uaddr:p liovcnt:u remote_iov_uaddr:p riovcnt:u flags:u
quotactl cmd:U special=special_str:s id:d addr_uaddr:p
remap_file_pages start:p size:p prot:_mprotect_prot_str/l pgoff:p flags:_mmap_flags/l
request_key type_uaddr=type_str:s description_uaddr=description_str:s callout_info_uaddr=-:s destringid:d
rt_sigqueueinfo pid:d sig=sig_name:_signal_name uinfo_uaddr=siginfo_str:N
rt_tgsigqueueinfo tgid:d tid:d sig:_signal_name uinfo_uaddr:N
sched_getattr pid:d sched_attr_uaddr:p size:w flags:U
sched_setattr pid:d sched_attr_uaddr:N flags:w
seccomp op:_seccomp_op_str/w flags:_seccomp_flags_str/w uargs_uaddr:p
semtimedop semid:d sops_uaddr:p nsops:w timeout_uaddr:t
set_mempolicy mode:_mempolicy_mode_str nmask_uaddr:p maxnode:u
swapon path_uaddr=path:s swapflags:_swapon_flags_str
sync_file_range fd:d offset:l nbytes:l flags:_sync_file_range_flags_str/w
sysfs option:d arg1:x arg2:x
userfaultfd flags:_userfaultfd_flags_str
vmsplice fd:d iov:p nr_segs:u flags:_stp_splice_flags_str/w
`
