package stap

import (
	"strconv"
	"strings"

	"kprobelab/internal/script"
)

// flagSet has the names of a parameter's bits, or the names of its values. wide: all 64 bits of the parameter count.
// signed: its sign counts. decimal: a value without a name is printed in decimal, not in hexadecimal.
type flagSet struct {
	names                         []flag
	chosen, wide, signed, decimal bool
}

// flagSets are SystemTap's functions of flags by their names.
var flagSets = readFlagSets(flagTable)

// flagParts are the lists of names for functions that use more than one list.
var flagParts = readFlagSets(flagPartTable)

// flagTable has a line for each list of names. A line begins with the function and the kind: "or" for bits, "one" for
// values (with 64 after it if the upper half of the parameter counts), "int" for signed values, "decimal" for signed
// values that are printed in decimal. The names follow in the order in which SystemTap 4.8 looks for them. The numbers
// are the kernel's (uapi, x86).
const flagTable = `
_at_flag_str or64 AT_SYMLINK_NOFOLLOW=0x100 AT_REMOVEDIR=0x200 AT_SYMLINK_FOLLOW=0x400 AT_NO_AUTOMOUNT=0x800 AT_EMPTY_PATH=0x1000
_bpf_cmd_str int BPF_MAP_CREATE=0 BPF_MAP_LOOKUP_ELEM=1 BPF_MAP_UPDATE_ELEM=2 BPF_MAP_DELETE_ELEM=3 BPF_MAP_GET_NEXT_KEY=4 BPF_PROG_LOAD=5
_epoll_create1_flag_str or EPOLL_CLOEXEC=0x80000
_eventfd2_flag_str or EFD_NONBLOCK=0x800 EFD_CLOEXEC=0x80000 EFD_SEMAPHORE=1
_faccessat2_flags_str or AT_SYMLINK_NOFOLLOW=0x100 AT_EACCESS=0x200
_fadvice_advice_str one POSIX_FADV_NORMAL=0 POSIX_FADV_RANDOM=1 POSIX_FADV_SEQUENTIAL=2 POSIX_FADV_WILLNEED=3 POSIX_FADV_DONTNEED=4 POSIX_FADV_NOREUSE=5
_fcntl_cmd_str one F_DUPFD=0 F_GETFD=1 F_SETFD=2 F_GETFL=3 F_SETFL=4 F_GETLK=5 F_SETLK=6 F_SETLKW=7 F_SETOWN=8 F_GETOWN=9 F_SETSIG=0xa F_GETSIG=0xb F_GETLK64=0xc F_SETLK64=0xd F_SETLKW64=0xe F_SETOWN_EX=0xf F_GETOWN_EX=0x10 F_GETOWNER_UIDS=0x11 F_SETLEASE=0x400 F_GETLEASE=0x401 F_DUPFD_CLOEXEC=0x406 F_NOTIFY=0x402 F_SETPIPE_SZ=0x407 F_GETPIPE_SZ=0x408
_finit_module_flags_str or MODULE_INIT_IGNORE_MODVERSIONS=1 MODULE_INIT_IGNORE_VERMAGIC=2
_flock_cmd_str or LOCK_SH=1 LOCK_EX=2 LOCK_NB=4 LOCK_UN=8 LOCK_MAND=0x20 LOCK_READ=0x40 LOCK_WRITE=0x80 LOCK_RW=0xc0
_futex_op_str one FUTEX_WAIT=0 FUTEX_WAKE=1 FUTEX_FD=2 FUTEX_REQUEUE=3 FUTEX_CMP_REQUEUE=4 FUTEX_WAKE_OP=5 FUTEX_LOCK_PI=6 FUTEX_UNLOCK_PI=7 FUTEX_TRYLOCK_PI=8 FUTEX_WAIT_BITSET=9 FUTEX_WAKE_BITSET=0xa FUTEX_WAIT_REQUEUE_PI=0xb FUTEX_CMP_REQUEUE_PI=0xc FUTEX_WAIT_PRIVATE=0x80 FUTEX_WAKE_PRIVATE=0x81 FUTEX_REQUEUE_PRIVATE=0x83 FUTEX_CMP_REQUEUE_PRIVATE=0x84 FUTEX_WAKE_OP_PRIVATE=0x85 FUTEX_LOCK_PI_PRIVATE=0x86 FUTEX_UNLOCK_PI_PRIVATE=0x87 FUTEX_TRYLOCK_PI_PRIVATE=0x88 FUTEX_WAIT_BITSET_PRIVATE=0x89 FUTEX_WAKE_BITSET_PRIVATE=0x8a FUTEX_WAIT_REQUEUE_PI_PRIVATE=0x8b FUTEX_CMP_REQUEUE_PI_PRIVATE=0x8c
_get_wc_str one CLOCK_REALTIME=0 CLOCK_MONOTONIC=1 CLOCK_PROCESS_CPUTIME_ID=2 CLOCK_THREAD_CPUTIME_ID=3 CLOCK_MONOTONIC_RAW=4 CLOCK_REALTIME_COARSE=5 CLOCK_MONOTONIC_COARSE=6 CLOCK_BOOTTIME=7 CLOCK_REALTIME_ALARM=8 CLOCK_BOOTTIME_ALARM=9 CLOCK_SGI_CYCLE=0xa CLOCK_TAI=0xb
_getrandom_flags_str or GRND_NONBLOCK=1 GRND_RANDOM=2
_inotify_init1_flag_str or IN_NONBLOCK=0x800 IN_CLOEXEC=0x80000
_inotify_watch_mask_str or IN_ACCESS=1 IN_MODIFY=2 IN_ATTRIB=4 IN_CLOSE_WRITE=8 IN_CLOSE_NOWRITE=0x10 IN_OPEN=0x20 IN_MOVED_FROM=0x40 IN_MOVED_TO=0x80 IN_CREATE=0x100 IN_DELETE=0x200 IN_DELETE_SELF=0x400 IN_MOVE_SELF=0x800 IN_UNMOUNT=0x2000 IN_Q_OVERFLOW=0x4000 IN_IGNORED=0x8000 IN_ONLYDIR=0x1000000 IN_DONT_FOLLOW=0x2000000 IN_EXCL_UNLINK=0x4000000 IN_MASK_ADD=0x20000000 IN_ISDIR=0x40000000 IN_ONESHOT=0x80000000
_itimer_which_str one ITIMER_REAL=0 ITIMER_VIRTUAL=1 ITIMER_PROF=2
_kcmp_type_str one KCMP_FILE=0 KCMP_VM=1 KCMP_FILES=2 KCMP_FS=3 KCMP_SIGHAND=4 KCMP_IO=5 KCMP_SYSVSEM=6 KCMP_TYPES=8
_madvice_advice_str one MADV_NORMAL=0 MADV_RANDOM=1 MADV_SEQUENTIAL=2 MADV_WILLNEED=3 MADV_DONTNEED=4 MADV_FREE=8 MADV_REMOVE=9 MADV_DONTFORK=0xa MADV_DOFORK=0xb MADV_MERGEABLE=0xc MADV_UNMERGEABLE=0xd MADV_HUGEPAGE=0xe MADV_NOHUGEPAGE=0xf MADV_DONTDUMP=0x10 MADV_DODUMP=0x11 MADV_HWPOISON=0x64 MADV_SOFT_OFFLINE=0x65
_membarrier_cmd_str one MEMBARRIER_CMD_QUERY=0 MEMBARRIER_CMD_SHARED=1
_mempolicy_flags_str or64 MPOL_F_NODE=1 MPOL_F_ADDR=2 MPOL_F_MEMS_ALLOWED=4
_mfd_flags_str or MFD_CLOEXEC=1 MFD_ALLOW_SEALING=2 O_CLOEXEC=0x80000
_mlockall_flags_str or MCL_CURRENT=1 MCL_FUTURE=2 MCL_ONFAULT=4
_mmap_flags or64 MAP_SHARED=1 MAP_PRIVATE=2 MAP_FIXED=0x10 MAP_ANONYMOUS=0x20 MAP_GROWSDOWN=0x100 MAP_DENYWRITE=0x800 MAP_EXECUTABLE=0x1000 MAP_LOCKED=0x2000 MAP_NORESERVE=0x4000 MAP_POPULATE=0x8000 MAP_NONBLOCK=0x10000 MAP_STACK=0x20000 MAP_HUGETLB=0x40000 MAP_32BIT=0x40
_module_flags_str or O_TRUNC=0x200 O_NONBLOCK=0x800
_mountflags_str or64 MS_RDONLY=1 MS_NOSUID=2 MS_NODEV=4 MS_NOEXEC=8 MS_SYNCHRONOUS=0x10 MS_REMOUNT=0x20 MS_MANDLOCK=0x40 MS_DIRSYNC=0x80 MS_NOATIME=0x400 MS_NODIRATIME=0x800 MS_BIND=0x1000 MS_MOVE=0x2000 MS_REC=0x4000 MS_SILENT=0x8000 MS_POSIXACL=0x10000 MS_UNBINDABLE=0x20000 MS_PRIVATE=0x40000 MS_SLAVE=0x80000 MS_SHARED=0x100000 MS_RELATIME=0x200000 MS_KERNMOUNT=0x400000 MS_I_VERSION=0x800000 MS_STRICTATIME=0x1000000
_mprotect_prot_str or64 PROT_NONE=0 PROT_READ=1 PROT_WRITE=2 PROT_EXEC=4 PROT_SEM=8 PROT_GROWSDOWN=0x1000000 PROT_GROWSUP=0x2000000
_mremap_flags or MREMAP_MAYMOVE=1 MREMAP_FIXED=2
_msg_flags_str or MSG_OOB=1 MSG_PEEK=2 MSG_DONTROUTE=4 MSG_CTRUNC=8 MSG_PROBE=0x10 MSG_TRUNC=0x20 MSG_DONTWAIT=0x40 MSG_EOR=0x80 MSG_WAITALL=0x100 MSG_FIN=0x200 MSG_SYN=0x400 MSG_CONFIRM=0x800 MSG_RST=0x1000 MSG_ERRQUEUE=0x2000 MSG_NOSIGNAL=0x4000 MSG_MORE=0x8000 MSG_WAITFORONE=0x10000 MSG_SENDPAGE_NOTLAST=0x20000 MSG_FASTOPEN=0x20000000 MSG_CMSG_CLOEXEC=0x40000000
_msync_flag_str or MS_ASYNC=1 MS_INVALIDATE=2 MS_SYNC=4
_opoll_op_str one EPOLL_CTL_ADD=1 EPOLL_CTL_MOD=3 EPOLL_CTL_DEL=2
_perf_event_open_flags_str or64 PERF_FLAG_FD_NO_GROUP=1 PERF_FLAG_FD_OUTPUT=2 PERF_FLAG_PID_CGROUP=4 PERF_FLAG_FD_CLOEXEC=8
_preadv2_flags_str or RWF_HIPRI=1
_priority_which_str one PRIO_PROCESS=0 PRIO_PGRP=1 PRIO_USER=2
_reboot_flag_str one LINUX_REBOOT_CMD_RESTART=0x1234567 LINUX_REBOOT_CMD_HALT=0xcdef0123 LINUX_REBOOT_CMD_CAD_ON=0x89abcdef LINUX_REBOOT_CMD_CAD_OFF=0 LINUX_REBOOT_CMD_POWER_OFF=0x4321fedc LINUX_REBOOT_CMD_RESTART2=0xa1b2c3d4 LINUX_REBOOT_CMD_SW_SUSPEND=0xd000fce2 LINUX_REBOOT_CMD_KEXEC=0x45584543
_reboot_magic_str one LINUX_REBOOT_MAGIC1=0xfee1dead LINUX_REBOOT_MAGIC2=0x28121969 LINUX_REBOOT_MAGIC2A=0x5121996 LINUX_REBOOT_MAGIC2B=0x16041998 LINUX_REBOOT_MAGIC2C=0x20112000
_renameat2_flags_str or RENAME_NOREPLACE=1 RENAME_EXCHANGE=2 RENAME_WHITEOUT=4
_rlimit_resource_str one RLIM_INFINITY=0xffffffff RLIMIT_CPU=0 RLIMIT_FSIZE=1 RLIMIT_DATA=2 RLIMIT_STACK=3 RLIMIT_CORE=4 RLIMIT_RSS=5 RLIMIT_NPROC=6 RLIMIT_NOFILE=7 RLIMIT_MEMLOCK=8 RLIMIT_AS=9 RLIMIT_LOCKS=0xa RLIMIT_SIGPENDING=0xb RLIMIT_MSGQUEUE=0xc RLIMIT_NICE=0xd RLIMIT_RTPRIO=0xe RLIMIT_RTTIME=0xf RLIM_NLIMITS=0x10
_rusage_who_str one RUSAGE_SELF=0 RUSAGE_CHILDREN=0xffffffff RUSAGE_BOTH=0xfffffffe RUSAGE_THREAD=1
_stp_ioprio_which_str decimal IOPRIO_WHO_PROCESS=1 IOPRIO_WHO_PGRP=2 IOPRIO_WHO_USER=3
_seccomp_flags_str one SECCOMP_FILTER_FLAG_TSYNC=1
_seccomp_op_str one SECCOMP_SET_MODE_STRICT=0 SECCOMP_SET_MODE_FILTER=1
_seek_whence_str one SEEK_SET=0 SEEK_CUR=1 SEEK_END=2 SEEK_DATA=3 SEEK_HOLE=4
_shmat_flags_str or64 SHM_RDONLY=0x1000 SHM_RND=0x2000 SHM_REMAP=0x4000 SHM_EXEC=0x8000
_shutdown_how_str one SHUT_RD=0 SHUT_WR=1 SHUT_RDWR=2
_signal_name one SIG_0=0 SIGHUP=1 SIGINT=2 SIGQUIT=3 SIGILL=4 SIGTRAP=5 SIGABRT=6 SIGBUS=7 SIGFPE=8 SIGKILL=9 SIGUSR1=0xa SIGSEGV=0xb SIGPIPE=0xd SIGUSR2=0xc SIGALRM=0xe SIGTERM=0xf SIGCHLD=0x11 SIGCONT=0x12 SIGSTOP=0x13 SIGTSTP=0x14 SIGTTIN=0x15 SIGTTOU=0x16 SIGURG=0x17 SIGXCPU=0x18 SIGXFSZ=0x19 SIGVTALRM=0x1a SIGPROF=0x1b SIGWINCH=0x1c SIGIO/SIGPOLL=0x1d SIGPWR=0x1e SIGSYS=0x1f TRACESYSGOOD=0x85
_signalfd4_flags_str or SFD_NONBLOCK=0x800 SFD_CLOEXEC=0x80000
_sigprocmask_how_str one64 SIG_BLOCK=0 SIG_UNBLOCK=1 SIG_SETMASK=2
_sock_family_str one PF_UNSPEC=0 PF_LOCAL=1 PF_INET=2 PF_AX25=3 PF_IPX=4 PF_APPLETALK=5 PF_NETROM=6 PF_BRIDGE=7 PF_ATMPVC=8 PF_X25=9 PF_INET6=0xa PF_ROSE=0xb PF_DECnet=0xc PF_NETBEUI=0xd PF_SECURITY=0xe PF_KEY=0xf PF_NETLINK=0x10 PF_PACKET=0x11 PF_ASH=0x12 PF_ECONET=0x13 PF_ATMSVC=0x14 PF_RDS=0x15 PF_SNA=0x16 PF_IRDA=0x17 PF_PPPOX=0x18 PF_WANPIPE=0x19 PF_LLC=0x1a PF_IB=0x1b PF_CAN=0x1d PF_TIPC=0x1e PF_BLUETOOTH=0x1f PF_IUCV=0x20 PF_RXRPC=0x21 PF_ISDN=0x22 PF_PHONET=0x23 PF_IEEE802154=0x24 PF_CAIF=0x25 PF_ALG=0x26 PF_NFC=0x27 PF_VSOCK=0x28
_sock_flags_str or SOCK_CLOEXEC=0x80000 SOCK_NONBLOCK=0x800
_sockopt_level_str one64 SOL_IP=0 SOL_SOCKET=1 SOL_TCP=6 SOL_UDP=0x11 SOL_IPV6=0x29 SOL_ICMPV6=0x3a SOL_SCTP=0x84 SOL_UDPLITE=0x88 SOL_RAW=0xff SOL_IPX=0x100 SOL_AX25=0x101 SOL_ATALK=0x102 SOL_NETROM=0x103 SOL_ROSE=0x104 SOL_DECNET=0x105 SOL_X25=0x106 SOL_PACKET=0x107 SOL_ATM=0x108 SOL_AAL=0x109 SOL_IRDA=0x10a SOL_NETBEUI=0x10b SOL_LLC=0x10c SOL_DCCP=0x10d SOL_NETLINK=0x10e SOL_TIPC=0x10f SOL_RXRPC=0x110 SOL_PPPOL2TP=0x111 SOL_BLUETOOTH=0x112 SOL_PNPIPE=0x113 SOL_RDS=0x114 SOL_IUCV=0x115 SOL_CAIF=0x116 SOL_ALG=0x117 SOL_NFC=0x118
_sockopt_optname_str one64 SO_DEBUG=1 SO_REUSEADDR=2 SO_TYPE=3 SO_ERROR=4 SO_DONTROUTE=5 SO_BROADCAST=6 SO_SNDBUF=7 SO_RCVBUF=8 SO_SNDBUFFORCE=0x20 SO_RCVBUFFORCE=0x21 SO_KEEPALIVE=9 SO_OOBINLINE=0xa SO_NO_CHECK=0xb SO_PRIORITY=0xc SO_LINGER=0xd SO_BSDCOMPAT=0xe SO_REUSEPORT=0xf SO_PASSCRED=0x10 SO_PEERCRED=0x11 SO_RCVLOWAT=0x12 SO_SNDLOWAT=0x13 SO_SECURITY_AUTHENTICATION=0x16 SO_SECURITY_ENCRYPTION_TRANSPORT=0x17 SO_SECURITY_ENCRYPTION_NETWORK=0x18 SO_BINDTODEVICE=0x19 SO_ATTACH_FILTER=0x1a SO_DETACH_FILTER=0x1b SO_PEERNAME=0x1c SO_TIMESTAMP_OLD=0x1d SO_ACCEPTCONN=0x1e SO_PEERSEC=0x1f SO_PASSSEC=0x22 SO_TIMESTAMPNS_OLD=0x23 SO_MARK=0x24 SO_TIMESTAMPING_OLD=0x25 SO_PROTOCOL=0x26 SO_DOMAIN=0x27 SO_RXQ_OVFL=0x28 SO_WIFI_STATUS=0x29 SO_PEEK_OFF=0x2a SO_NOFCS=0x2b SO_LOCK_FILTER=0x2c SO_SELECT_ERR_QUEUE=0x2d SO_BUSY_POLL=0x2e SO_MAX_PACING_RATE=0x2f SO_BPF_EXTENSIONS=0x30 SO_INCOMING_CPU=0x31 SO_ATTACH_BPF=0x32 SO_ATTACH_REUSEPORT_CBPF=0x33 SO_ATTACH_REUSEPORT_EBPF=0x34 SO_CNX_ADVICE=0x35 SCM_TIMESTAMPING_OPT_STATS=0x36 SO_MEMINFO=0x37 SO_INCOMING_NAPI_ID=0x38 SO_COOKIE=0x39 SCM_TIMESTAMPING_PKTINFO=0x3a SO_PEERGROUPS=0x3b SO_ZEROCOPY=0x3c SO_TXTIME=0x3d SO_BINDTOIFINDEX=0x3e SO_TIMESTAMP_NEW=0x3f SO_TIMESTAMPNS_NEW=0x40 SO_TIMESTAMPING_NEW=0x41 SO_RCVTIMEO_NEW=0x42 SO_SNDTIMEO_NEW=0x43
_statx_mask_str int AT_STATX_SYNC_TYPE=0x6000 AT_STATX_SYNC_AS_STAT=0 AT_STATX_FORCE_SYNC=0x2000 AT_STATX_DONT_SYNC=0x4000
_stp_arch_prctl_func_str decimal ARCH_SET_FS=0x1002 ARCH_GET_FS=0x1003 ARCH_SET_GS=0x1001 ARCH_GET_GS=0x1004
_stp_clock_nanosleep_flags_str one TIMER_ABSTIME=1
_stp_fallocate_mode_str or FALLOC_FL_KEEP_SIZE=1 FALLOC_FL_PUNCH_HOLE=2 FALLOC_FL_NO_HIDE_STALE=4 FALLOC_FL_COLLAPSE_RANGE=8 FALLOC_FL_ZERO_RANGE=0x10
_stp_keyctl_cmd_str decimal KEYCTL_GET_KEYRING_ID=0 KEYCTL_JOIN_SESSION_KEYRING=1 KEYCTL_UPDATE=2 KEYCTL_REVOKE=3 KEYCTL_CHOWN=4 KEYCTL_SETPERM=5 KEYCTL_DESCRIBE=6 KEYCTL_CLEAR=7 KEYCTL_LINK=8 KEYCTL_UNLINK=9 KEYCTL_SEARCH=0xa KEYCTL_READ=0xb KEYCTL_INSTANTIATE=0xc KEYCTL_NEGATE=0xd KEYCTL_SET_REQKEY_KEYRING=0xe KEYCTL_SET_TIMEOUT=0xf KEYCTL_ASSUME_AUTHORITY=0x10 KEYCTL_GET_SECURITY=0x11 KEYCTL_SESSION_TO_PARENT=0x12 KEYCTL_REJECT=0x13 KEYCTL_INSTANTIATE_IOV=0x14 KEYCTL_INVALIDATE=0x15 KEYCTL_GET_PERSISTENT=0x16
_stp_mlock2_str or MLOCK_ONFAULT=1
_stp_msgflg_str or MSG_NOERROR=0x1000 MSG_EXCEPT=0x2000 IPC_NOWAIT=0x800
_stp_splice_flags_str or SPLICE_F_MOVE=1 SPLICE_F_NONBLOCK=2 SPLICE_F_MORE=4 SPLICE_F_GIFT=8
_stp_timerfd_flags_str or TFD_TIMER_ABSTIME=1 TFD_TIMER_CANCEL_ON_SET=2 TFD_CLOEXEC=0x80000 TFD_NONBLOCK=0x800
_stp_xattr_flags_str or XATTR_CREATE=1 XATTR_REPLACE=2
_sync_file_range_flags_str or SYNC_FILE_RANGE_WAIT_BEFORE=1 SYNC_FILE_RANGE_WRITE=2 SYNC_FILE_RANGE_WAIT_AFTER=4
_sys_pipe2_flag_str or O_NONBLOCK=0x800 O_CLOEXEC=0x80000 O_DIRECT=0x4000
_umountflags_str or MNT_FORCE=1 MNT_DETACH=2 MNT_EXPIRE=4 UMOUNT_NOFOLLOW=8
_userfaultfd_flags_str or O_NONBLOCK=0x800 O_CLOEXEC=0x80000
_wait4_opt_str or WNOHANG=1 WEXITED=4 WSTOPPED=2 WCONTINUED=8 WNOWAIT=0x1000000 __WNOTHREAD=0x20000000 __WALL=0x40000000 __WCLONE=0x80000000
_waitid_which_str one P_ALL=0 P_PID=1 P_PGID=2
_fanotify_mark_flags_str or FAN_MARK_ADD=1 FAN_MARK_REMOVE=2 FAN_MARK_FLUSH=0x80 FAN_MARK_DONT_FOLLOW=4 FAN_MARK_ONLYDIR=8 FAN_MARK_MOUNT=0x10 FAN_MARK_IGNORED_MASK=0x20 FAN_MARK_IGNORED_SURV_MODIFY=0x40
_fanotify_mark_mask_str or FAN_ACCESS=1 FAN_MODIFY=2 FAN_CLOSE_WRITE=8 FAN_CLOSE_NOWRITE=0x10 FAN_OPEN=0x20 FAN_Q_OVERFLOW=0x4000 FAN_OPEN_PERM=0x10000 FAN_ACCESS_PERM=0x20000 FAN_ONDIR=0x40000000 FAN_EVENT_ON_CHILD=0x8000000
_kexec_file_load_flags_str or KEXEC_FILE_UNLOAD=1 KEXEC_FILE_ON_CRASH=2 KEXEC_FILE_NO_INITRAMFS=4
_kexec_flags_str or KEXEC_ON_CRASH=1 KEXEC_PRESERVE_CONTEXT=2 KEXEC_ARCH_DEFAULT=0 KEXEC_ARCH_386=0x30000 KEXEC_ARCH_X86_64=0x3e0000
_pkey_alloc_init_val_str or PKEY_DISABLE_ACCESS=1 PKEY_DISABLE_WRITE=2
`

const flagPartTable = `
clone_flags or64 CLONE_VM=0x100 CLONE_FS=0x200 CLONE_FILES=0x400 CLONE_SIGHAND=0x800 CLONE_PTRACE=0x2000 CLONE_VFORK=0x4000 CLONE_PARENT=0x8000 CLONE_THREAD=0x10000 CLONE_NEWNS=0x20000 CLONE_SYSVSEM=0x40000 CLONE_SETTLS=0x80000 CLONE_PARENT_SETTID=0x100000 CLONE_CHILD_CLEARTID=0x200000 CLONE_DETACHED=0x400000 CLONE_UNTRACED=0x800000 CLONE_CHILD_SETTID=0x1000000 CLONE_NEWUTS=0x4000000 CLONE_NEWIPC=0x8000000 CLONE_NEWUSER=0x10000000 CLONE_NEWPID=0x20000000 CLONE_NEWNET=0x40000000 CLONE_IO=0x80000000
msgctl_name one IPC_INFO=3 IPC_STAT=2 IPC_RMID=0 IPC_SET=1 MSG_INFO=0xc MSG_STAT=0xb
sched_policy_name one SCHED_OTHER=0 SCHED_FIFO=1 SCHED_RR=2 SCHED_BATCH=3 SCHED_IDLE=5 SCHED_DEADLINE=6
semctl_name one IPC_INFO=3 SEM_INFO=0x13 SEM_STAT=0x12 GETALL=0xd GETVAL=0xc GETPID=0xb GETNCNT=0xe GETZCNT=0xf IPC_STAT=2 SETVAL=0x10 SETALL=0x11 IPC_RMID=0 IPC_SET=1
fanotify_class one FAN_CLASS_NOTIF=0 FAN_CLASS_CONTENT=4 FAN_CLASS_PRE_CONTENT=8
fanotify_init or FAN_CLOEXEC=1 FAN_NONBLOCK=2 FAN_UNLIMITED_QUEUE=0x10 FAN_UNLIMITED_MARKS=0x20
mempolicy one MPOL_DEFAULT=0 MPOL_PREFERRED=1 MPOL_BIND=2 MPOL_INTERLEAVE=3 MPOL_LOCAL=4
mempolicy_flags one MPOL_F_STATIC_NODES=0x8000 MPOL_F_RELATIVE_NODES=0x4000
sa_handler one64 SIG_DFL=0 SIG_IGN=1
sa_flags or64 SA_NOCLDSTOP=1 SA_NOCLDWAIT=2 SA_RESETHAND=0x80000000 SA_ONSTACK=0x8000000 SA_RESTART=0x10000000 SA_NODEFER=0x40000000 SA_SIGINFO=4 SA_RESTORER=0x4000000
swapon or SWAP_FLAG_PREFER=0x8000 SWAP_FLAG_DISCARD=0x10000 SWAP_FLAG_DISCARD_ONCE=0x20000 SWAP_FLAG_DISCARD_PAGES=0x40000
ioprio_class one IOPRIO_CLASS_NONE=0 IOPRIO_CLASS_RT=1 IOPRIO_CLASS_BE=2 IOPRIO_CLASS_IDLE=3
futex_wake_op one FUTEX_OP_SET=0 FUTEX_OP_ADD=1 FUTEX_OP_OR=2 FUTEX_OP_ANDN=3 FUTEX_OP_XOR=4
futex_wake_cmp one FUTEX_OP_CMP_EQ=0 FUTEX_OP_CMP_NE=1 FUTEX_OP_CMP_LT=2 FUTEX_OP_CMP_LE=3 FUTEX_OP_CMP_GT=4 FUTEX_OP_CMP_GE=5
socket_type one SOCK_STREAM=1 SOCK_DGRAM=2 SOCK_RAW=3 SOCK_RDM=4 SOCK_SEQPACKET=5 SOCK_DCCP=6 SOCK_PACKET=0xa
shmget or IPC_CREAT=0x200 IPC_EXCL=0x400 SHM_HUGETLB=0x800 SHM_NORESERVE=0x1000
file_type one S_IFIFO=0x1000 S_IFCHR=0x2000 S_IFBLK=0x6000 S_IFREG=0x8000 S_IFSOCK=0xc000
protocol one IPPROTO_IP=0 IPPROTO_ICMP=1 IPPROTO_IGMP=2 IPPROTO_IPIP=4 IPPROTO_TCP=6 IPPROTO_EGP=8 IPPROTO_PUP=0xc IPPROTO_UDP=0x11 IPPROTO_IDP=0x16 IPPROTO_TP=0x1d IPPROTO_DCCP=0x21 IPPROTO_IPV6=0x29 IPPROTO_RSVP=0x2e IPPROTO_GRE=0x2f IPPROTO_ESP=0x32 IPPROTO_AH=0x33 IPPROTO_MTP=0x5c IPPROTO_ENCAP=0x62 IPPROTO_PIM=0x67 IPPROTO_COMP=0x6c IPPROTO_SCTP=0x84 IPPROTO_UDPLITE=0x88 IPPROTO_RAW=0xff
`

func readFlagSets(table string) map[string]flagSet {
	sets := map[string]flagSet{}
	for _, line := range strings.Split(strings.TrimSpace(table), "\n") {
		words := strings.Fields(line)
		kind, wide := strings.CutSuffix(words[1], "64")
		set := flagSet{chosen: kind != "or", wide: wide, signed: kind == "int" || kind == "decimal", decimal: kind == "decimal"}
		for _, word := range words[2:] {
			name, number, _ := strings.Cut(word, "=")
			bits, err := strconv.ParseInt(number, 0, 64)
			if err != nil {
				panic("stap: " + err.Error())
			}
			set.names = append(set.names, flag{bits, name})
		}
		sets[words[0]] = set
	}
	return sets
}

func (f flagSet) text(dst []byte, v int64) []byte {
	switch {
	case f.signed:
		v = int64(int32(v))
	case !f.wide:
		v &= 0xffffffff
	}
	name := f.name(v)
	switch {
	case !f.chosen:
		return flagsText(dst, f.names, v)
	case name != "":
		return append(dst, name...)
	case f.decimal:
		return strconv.AppendInt(dst, v, 10)
	}
	return hexText(dst, uint64(v))
}

// name returns the name of a value, "" if it has none.
func (f flagSet) name(v int64) string {
	for _, one := range f.names {
		if one.bits == v {
			return one.name
		}
	}
	return ""
}

// flagFunctions are all functions of one parameter that have names of flags.
func flagFunctions() map[string]func(dst []byte, v int64) []byte {
	all := map[string]func(dst []byte, v int64) []byte{
		"_dup3_flag_str":        func(dst []byte, v int64) []byte { return flagsText(dst, openFlags, v&0xffffffff) },
		"_sock_type_str":        socketTypeText,
		"_msg_flags_str":        messageFlagsText,
		"__fork_flags":          cloneFlagsText,
		"__sem_flags":           semaphoreFlagsText,
		"_semctl_cmd":           func(dst []byte, v int64) []byte { return ipcCommandText(dst, flagParts["semctl_name"], v) },
		"_stp_msgctl_cmd_str":   func(dst []byte, v int64) []byte { return ipcCommandText(dst, flagParts["msgctl_name"], v) },
		"_sched_policy_str":     policyText,
		"_mknod_mode_str":       fileModeText,
		"_stp_shmget_flags_str": sharedMemoryFlagsText,
		"_dfd_str":              folderText,
		"_stp_msgget_key_str":   keyText,
		"_stp_ioprio_value_str": priorityText,
		"_futex_wake_op_str":    wakeOpText,

		"_fanotify_init_flags_str": notifyFlagsText,
		"_mempolicy_mode_str":      memoryPolicyText,
		"_swapon_flags_str":        swapFlagsText,
	}
	for name, set := range flagSets {
		if all[name] == nil {
			all[name] = set.text
		}
	}
	return all
}

// joined appends a name to a sum, with | between two names.
func joined(dst []byte, from int, text string) []byte {
	if len(dst) > from {
		dst = append(dst, '|')
	}
	return append(dst, text...)
}

const sockCloexec, sockNonblock = 0x80000, 0x800

// socketTypeText prints the type of a socket, and the flags in it.
func socketTypeText(dst []byte, v int64) []byte {
	from, kind, flags := len(dst), v&0xf, v&0xfffffff0
	if name := flagParts["socket_type"].name(kind); name != "" {
		dst, kind = append(dst, name...), 0
	}
	for _, f := range []flag{{sockCloexec, "SOCK_CLOEXEC"}, {sockNonblock, "SOCK_NONBLOCK"}} {
		if flags&f.bits != 0 {
			dst, flags = joined(dst, from, f.name), flags&^f.bits
		}
	}
	if rest := kind | flags; rest != 0 || len(dst) == from {
		dst = hexText(joined(dst, from, ""), uint64(rest))
	}
	return dst
}

// messageFlagsText leaves out the bit that the kernel sets for 32-bit programs.
func messageFlagsText(dst []byte, v int64) []byte {
	const compat = 0x80000000
	return flagSets["_msg_flags_str"].text(dst, v&^compat)
}

// cloneFlagsText prints the flags of clone(2), and after them the signal that the parent gets when the child exits.
func cloneFlagsText(dst []byte, v int64) []byte {
	dst = flagParts["clone_flags"].text(dst, v&^0xff)
	if signal := v & 0xff; signal != 0 {
		dst = flagSets["_signal_name"].text(append(dst, '|'), signal)
	}
	return dst
}

// modeBits are a file's permissions.
const modeBits = 0o777

func octalText(dst []byte, v int64) []byte { return strconv.AppendUint(append(dst, '0'), uint64(v), 8) }

func semaphoreFlagsText(dst []byte, v int64) []byte {
	from, mode := len(dst), v&modeBits
	if v &^= modeBits; v != 0 {
		dst = flagsText(dst, []flag{{0o1000, "IPC_CREAT"}, {0o2000, "IPC_EXCL"}}, v)
	}
	if mode != 0 {
		dst = octalText(joined(dst, from, ""), mode)
	}
	return dst
}

func sharedMemoryFlagsText(dst []byte, v int64) []byte {
	dst = flagParts["shmget"].text(dst, v&^modeBits)
	if mode := v & modeBits; mode != 0 {
		dst = octalText(append(dst, '|'), mode)
	}
	return dst
}

// ipcCommandText prints a command of IPC. One bit of it says that its structure is the new one.
func ipcCommandText(dst []byte, names flagSet, v int64) []byte {
	const ipc64 = 0x100
	if v&ipc64 != 0 {
		dst, v = append(dst, "IPC_64|"...), v&^ipc64
	}
	return names.text(dst, v)
}

func policyText(dst []byte, v int64) []byte {
	const resetOnFork = 0x40000000
	if int32(v) > 0 && v&resetOnFork != 0 {
		dst, v = append(dst, "SCHED_RESET_ON_FORK|"...), v&^resetOnFork
	}
	return flagParts["sched_policy_name"].text(dst, v)
}

func fileModeText(dst []byte, v int64) []byte {
	const fileType = 0o170000
	name := flagParts["file_type"].name(v & fileType)
	if name == "" {
		return octalText(dst, v)
	}
	return octalText(append(append(dst, name...), '|'), v&^fileType)
}

// folderText is the folder from which a path is looked up.
func folderText(dst []byte, v int64) []byte {
	if v == -100 {
		return append(dst, "AT_FDCWD"...)
	}
	return strconv.AppendInt(dst, v, 10)
}

func keyText(dst []byte, v int64) []byte {
	if v == 0 {
		return append(dst, "IPC_PRIVATE"...)
	}
	return strconv.AppendInt(dst, v, 10)
}

// priorityText is a priority of reading and writing: its class, and the number in it.
func priorityText(dst []byte, v int64) []byte {
	const shift, data = 13, 1<<13 - 1
	dst = flagParts["ioprio_class"].text(dst, v>>shift&7)
	return strconv.AppendInt(append(dst, '|'), v&data, 10)
}

// wakeOpText prints the operation and the comparison that FUTEX_WAKE_OP makes with the second word (futex(2)).
func wakeOpText(dst []byte, v int64) []byte {
	const shift = 8 << 28
	e := int32(v)
	dst = append(dst, '{')
	if v&shift != 0 {
		dst = append(dst, "FUTEX_OP_OPARG_SHIFT|"...)
	}
	dst = flagParts["futex_wake_op"].text(dst, int64(e>>28&7))
	dst = strconv.AppendInt(append(dst, ", "...), int64(e<<8>>20), 10)
	dst = flagParts["futex_wake_cmp"].text(append(dst, ", "...), int64(e>>24&15))
	dst = strconv.AppendInt(append(dst, ", "...), int64(e<<20>>20), 10)
	return append(dst, '}')
}

// notifyFlagsText is the class of a group that is told of files, and the other flags.
func notifyFlagsText(dst []byte, v int64) []byte {
	const class = 0xc
	dst = flagParts["fanotify_class"].text(dst, v&class)
	if rest := v & 0xffffffff &^ class; rest != 0 {
		dst = flagParts["fanotify_init"].text(append(dst, '|'), rest)
	}
	return dst
}

func memoryPolicyText(dst []byte, v int64) []byte {
	const flags = 0xe000
	v &= 0xffffffff
	if of := v & flags; of != 0 && v != 0xffffffff {
		dst, v = append(flagParts["mempolicy_flags"].text(dst, of), '|'), v&^flags
	}
	return flagParts["mempolicy"].text(dst, v)
}

// swapFlagsText ends with the priority, where there is one.
func swapFlagsText(dst []byte, v int64) []byte {
	const prefer, priority = 0x8000, 0x7fff
	dst = flagParts["swapon"].text(dst, v&^priority)
	if v&prefer != 0 {
		dst = strconv.AppendInt(append(dst, '|'), v&priority, 10)
	}
	return dst
}

// protocolText is a protocol of a family that has names of them.
func protocolText(dst []byte, family, v int64) []byte {
	const inet, inet6 = 2, 10
	if family == inet || family == inet6 {
		if name := flagParts["protocol"].name(v); name != "" {
			return append(dst, name...)
		}
	}
	return strconv.AppendInt(dst, v, 10)
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
