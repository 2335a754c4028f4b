package stap

import (
	"fmt"
	"strconv"
	"strings"
)

// syscallNumbers are the names of x86-64's system calls in the order of their numbers (the
// kernel's arch/x86/entry/syscalls/syscall_64.tbl); the second list begins at secondNumbers.
const (
	syscallNumbers = `
read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn ioctl pread64 pwrite64 readv
writev access pipe select sched_yield mremap msync mincore madvise shmget shmat shmctl dup dup2 pause nanosleep getitimer alarm setitimer getpid
sendfile socket connect accept sendto recvfrom sendmsg recvmsg shutdown bind listen getsockname getpeername socketpair setsockopt getsockopt clone
fork vfork execve exit wait4 kill uname semget semop semctl shmdt msgget msgsnd msgrcv msgctl fcntl flock fsync fdatasync truncate ftruncate getdents
getcwd chdir fchdir rename mkdir rmdir creat link unlink symlink readlink chmod fchmod chown fchown lchown umask gettimeofday getrlimit getrusage
sysinfo times ptrace getuid syslog getgid setuid setgid geteuid getegid setpgid getppid getpgrp setsid setreuid setregid getgroups setgroups setresuid
getresuid setresgid getresgid getpgid setfsuid setfsgid getsid capget capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend sigaltstack
utime mknod uselib personality ustat statfs fstatfs sysfs getpriority setpriority sched_setparam sched_getparam sched_setscheduler sched_getscheduler
sched_get_priority_max sched_get_priority_min sched_rr_get_interval mlock munlock mlockall munlockall vhangup modify_ldt pivot_root _sysctl prctl
arch_prctl adjtimex setrlimit chroot sync acct settimeofday mount umount2 swapon swapoff reboot sethostname setdomainname iopl ioperm create_module
init_module delete_module get_kernel_syms query_module quotactl nfsservctl getpmsg putpmsg afs_syscall tuxcall security gettid readahead setxattr
lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr tkill time futex
sched_setaffinity sched_getaffinity set_thread_area io_setup io_destroy io_getevents io_submit io_cancel get_thread_area lookup_dcookie epoll_create
epoll_ctl_old epoll_wait_old remap_file_pages getdents64 set_tid_address restart_syscall semtimedop fadvise64 timer_create timer_settime timer_gettime
timer_getoverrun timer_delete clock_settime clock_gettime clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl tgkill utimes vserver mbind
set_mempolicy get_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr kexec_load waitid add_key request_key keyctl
ioprio_set ioprio_get inotify_init inotify_add_watch inotify_rm_watch migrate_pages openat mkdirat mknodat fchownat futimesat newfstatat unlinkat
renameat linkat symlinkat readlinkat fchmodat faccessat pselect6 ppoll unshare set_robust_list get_robust_list splice tee sync_file_range vmsplice
move_pages utimensat epoll_pwait signalfd timerfd_create eventfd fallocate timerfd_settime timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1
dup3 pipe2 inotify_init1 preadv pwritev rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init fanotify_mark prlimit64 name_to_handle_at
open_by_handle_at clock_adjtime syncfs sendmmsg setns getcpu process_vm_readv process_vm_writev kcmp finit_module sched_setattr sched_getattr
renameat2 seccomp getrandom memfd_create kexec_file_load bpf execveat userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect
pkey_alloc pkey_free statx io_pgetevents rseq`
	laterSyscalls = `
pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen fsconfig fsmount fspick pidfd_open clone3 close_range
openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2 mount_setattr quotactl_fd landlock_create_ruleset landlock_add_rule landlock_restrict_self
memfd_secret process_mrelease futex_waitv set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake futex_wait futex_requeue statmount
listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal setxattrat getxattrat listxattrat removexattrat open_tree_attr file_getattr
file_setattr`
	secondNumbers = 424
)

var (
	syscallNames   = map[int64]string{}
	syscallsByName = map[string]int64{}
)

func init() {
	for first, list := range map[int64]string{0: syscallNumbers, secondNumbers: laterSyscalls} {
		for i, name := range strings.Fields(list) {
			syscallNames[first+int64(i)], syscallsByName[name] = name, first+int64(i)
		}
	}
}

// syscallName is "" where no system call has the number.
func syscallName(n int64) string { return syscallNames[n] }

func syscallNumber(name string) int64 {
	if n, ok := syscallsByName[name]; ok {
		return n
	}
	return -1
}

// signalNames are the names of the signals on x86, without SIG (signal(7)). The first is signal 1.
var signalNames = strings.Fields("HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO/POLL PWR SYS")

// realTime is the number of the first real-time signal.
const realTime = 32

func signalName(n int64) string {
	switch {
	case n >= 1 && n < realTime:
		return "SIG" + signalNames[n-1]
	case n == realTime:
		return "SIGRTMIN"
	case n > realTime && n <= 64:
		return fmt.Sprintf("SIGRTMIN+%d", n-realTime)
	}
	return ""
}

// flag is a name of bits.
type flag struct {
	bits int64
	name string
}

// irqFlags are the flags of an interrupt's handler (the kernel's linux/interrupt.h).
var irqFlags = []flag{
	{0x80, "IRQF_SHARED"}, {0x100, "IRQF_PROBE_SHARED"}, {0x200, "IRQF_TIMER"}, {0x400, "IRQF_PERCPU"}, {0x800, "IRQF_NOBALANCING"},
	{0x1000, "IRQF_IRQPOLL"}, {0x2000, "IRQF_ONESHOT"}, {0x4000, "IRQF_NO_SUSPEND"}, {0x8000, "IRQF_FORCE_RESUME"},
	{0x10000, "IRQF_NO_THREAD"}, {0x20000, "IRQF_EARLY_RESUME"}, {0x40000, "IRQF_COND_SUSPEND"},
}

// flagsText appends the names of the flags that are set, | between them, and the rest as a number. A
// name without bits, the first, is that of none.
func flagsText(dst []byte, flags []flag, v int64) []byte {
	from := len(dst)
	for _, f := range flags {
		if v&f.bits != f.bits || f.bits == 0 && v != 0 {
			continue
		}
		v &^= f.bits
		if len(dst) > from {
			dst = append(dst, '|')
		}
		dst = append(dst, f.name...)
	}
	if v != 0 || len(dst) == from {
		if len(dst) > from {
			dst = append(dst, '|')
		}
		dst = strconv.AppendUint(append(dst, "0x"...), uint64(v), 16)
	}
	return dst
}
