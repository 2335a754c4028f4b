//go:build linux && amd64

package main

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// files does with a file what files allow.
func files(c calls, name string) {
	fd := c.open(name, unix.O_RDWR|unix.O_CREAT)
	b := make([]byte, 4096)
	n, err := unix.Write(fd, b)
	c.n("write", n, err)
	n, err = unix.Pwrite(fd, b[:100], 50)
	c.n("pwrite", n, err)
	n, err = unix.Pread(fd, b, 0)
	c.n("pread", n, err)
	n, err = unix.Writev(fd, [][]byte{b[:10], b[:20]})
	c.n("writev", n, err)
	_, err = unix.Seek(fd, 0, 0)
	c.err("seek", err)
	n, err = unix.Readv(fd, [][]byte{b[:10], b[:20]})
	c.n("readv", n, err)
	c.err("fallocate", unix.Fallocate(fd, 0, 0, 1<<16))
	c.err("punch", unix.Fallocate(fd, 3, 0, 4096))
	c.err("fsync", unix.Fsync(fd))
	c.err("fdatasync", unix.Fdatasync(fd))
	c.err("sync_range", unix.SyncFileRange(fd, 0, 4096, 7))
	c.err("fadvise", unix.Fadvise(fd, 0, 4096, unix.FADV_WILLNEED))
	c.err("truncate", unix.Ftruncate(fd, 100))
	c.err("chmod", unix.Fchmod(fd, 0o600))
	c.err("chown", unix.Fchown(fd, 1, 1))
	c.err("setxattr", unix.Fsetxattr(fd, "user.a", []byte("b"), 0))
	c.err("trusted", unix.Fsetxattr(fd, "trusted.a", []byte("b"), 0))
	n, err = unix.Fgetxattr(fd, "trusted.a", b)
	c.n("getxattr", n, err)
	n, err = unix.Flistxattr(fd, b)
	c.n("listxattr", n, err)
	c.err("removexattr", unix.Fremovexattr(fd, "trusted.a"))
	c.err("flock", unix.Flock(fd, unix.LOCK_EX))
	c.err("lock", unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}))
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
	c.err("lease", err)
	var attr [8]byte
	c.raw("ioctl getflags", unix.SYS_IOCTL, uintptr(fd), 0x80086601, uintptr(unsafe.Pointer(&attr)))
	c.raw("ioctl fiemap", unix.SYS_IOCTL, uintptr(fd), 0xC020660B, uintptr(unsafe.Pointer(&b[0])))
	c.raw("ioctl fionread", unix.SYS_IOCTL, uintptr(fd), 0x541B, uintptr(unsafe.Pointer(&b[0])))
	m, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	c.err("mmap", err)
	if err == nil {
		m[0] = 1
		c.err("msync", unix.Msync(m, unix.MS_SYNC))
		c.err("madvise", unix.Madvise(m, unix.MADV_DONTNEED))
		c.err("munmap", unix.Munmap(m))
	}
	var st unix.Stat_t
	c.err("stat", unix.Fstat(fd, &st))
	var sx unix.Statx_t
	c.err("statx", unix.Statx(unix.AT_FDCWD, name, 0, unix.STATX_ALL, &sx))
	var fs unix.Statfs_t
	c.err("statfs", unix.Fstatfs(fd, &fs))
	c.err("syncfs", unix.Syncfs(fd))
	c.err("utimes", unix.UtimesNano(name, []unix.Timespec{{Sec: 1}, {Sec: 2}}))
	to := c.open(name+".copy", unix.O_RDWR|unix.O_CREAT)
	off := int64(0)
	n, err = unix.CopyFileRange(fd, &off, to, nil, 50, 0)
	c.n("copy_file_range", n, err)
	off = 0
	n, err = unix.Sendfile(to, fd, &off, 50)
	c.n("sendfile", n, err)
	c.raw("ficlone", unix.SYS_IOCTL, uintptr(to), 0x40049409, uintptr(fd))
	c.err("close", unix.Close(to))
	c.err("close", unix.Close(fd))
}

// reads reads a file of the kernel's whole, and seeks in it.
func reads(paths ...string) func(calls, string) {
	return func(c calls, _ string) {
		for _, p := range paths {
			fd, err := unix.Open(p, unix.O_RDONLY, 0)
			c.err("open "+p, err)
			if err != nil {
				continue
			}
			b := make([]byte, 1<<16)
			for range 64 {
				n, err := unix.Read(fd, b)
				if n <= 0 || err != nil {
					c.err("read", err)
					break
				}
			}
			_, err = unix.Seek(fd, 0, 0)
			c.err("seek", err)
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			c.err("poll", err)
			c.err("close", unix.Close(fd))
		}
	}
}

func lists(paths ...string) func(calls, string) {
	return func(c calls, _ string) {
		for _, p := range paths {
			l, err := os.ReadDir(p)
			c.err(fmt.Sprint("readdir ", p, " ", len(l) > 0), err)
			for i, e := range l {
				if i == 20 {
					break
				}
				_, _ = os.Lstat(p + "/" + e.Name())
				_, _ = os.Readlink(p + "/" + e.Name())
			}
		}
	}
}

// naming makes, renames, links and removes files.
func naming(c calls, dir string) {
	c.err("mkdir", unix.Mkdir(dir+"d", 0o755))
	c.err("mknod", unix.Mknod(dir+"null", unix.S_IFCHR|0o600, 0x103))
	c.err("mkfifo", unix.Mkfifo(dir+"fifo", 0o600))
	c.err("symlink", unix.Symlink("f", dir+"s"))
	c.err("link", unix.Link(dir+"s", dir+"l"))
	_, err := os.Readlink(dir + "s")
	c.err("readlink", err)
	c.err("rename", unix.Rename(dir+"l", dir+"d/l"))
	c.err("exchange", unix.Renameat2(unix.AT_FDCWD, dir+"s", unix.AT_FDCWD, dir+"d", unix.RENAME_EXCHANGE))
	c.err("access", unix.Access(dir+"s", unix.R_OK))
	c.err("unlink", unix.Unlink(dir+"fifo"))
	c.err("rmdir", unix.Rmdir(dir+"s"))
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR, 0o600)
	c.err("tmpfile", err)
	if err == nil {
		c.err("close", unix.Close(fd))
	}
	c.err("unlink", unix.Unlink(dir+"null"))
}

// fileWorkloads use files, folders, pipes and devices.
var fileWorkloads = map[string]func(calls, string){
	"tmpfs":  func(c calls, dir string) { files(c, dir+"f") },
	"rootfs": func(c calls, _ string) { files(c, "/file"); _ = os.Remove("/file"); _ = os.Remove("/file.copy") },
	"names":  func(c calls, dir string) { naming(c, dir) },
	"memfd": func(c calls, _ string) {
		fd, err := unix.MemfdCreate("m", unix.MFD_ALLOW_SEALING)
		c.err("memfd", err)
		const fixed = 100 // its name is written
		c.err("dup", unix.Dup2(fd, fixed))
		files(c, fmt.Sprintf("/proc/self/fd/%d", fixed))
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE)
		c.err("seal", err)
	},
	"proc": reads("/proc/self/status", "/proc/self/maps", "/proc/self/smaps", "/proc/self/stat", "/proc/self/io", "/proc/self/limits", "/proc/self/mounts", "/proc/self/cgroup",
		"/proc/self/environ", "/proc/self/cmdline", "/proc/self/auxv", "/proc/self/pagemap", "/proc/self/sched", "/proc/self/wchan", "/proc/self/stack", "/proc/self/numa_maps"),
	"proc_system": reads("/proc/stat", "/proc/meminfo", "/proc/interrupts", "/proc/vmstat", "/proc/slabinfo", "/proc/zoneinfo", "/proc/buddyinfo", "/proc/modules", "/proc/devices",
		"/proc/partitions", "/proc/diskstats", "/proc/filesystems", "/proc/uptime", "/proc/loadavg", "/proc/cpuinfo", "/proc/timer_list", "/proc/swaps", "/proc/locks", "/proc/iomem", "/proc/softirqs", "/proc/crypto", "/proc/key-users", "/proc/keys", "/proc/consoles", "/proc/vmallocinfo", "/proc/misc", "/proc/schedstat"),
	"proc_sys": func(c calls, _ string) {
		for _, p := range []string{"kernel/hostname", "kernel/pid_max", "vm/swappiness", "vm/dirty_ratio", "net/ipv4/ip_forward", "net/core/somaxconn", "fs/file-nr", "kernel/random/uuid", "kernel/sched_rt_period_us", "vm/overcommit_memory", "net/ipv4/tcp_congestion_control", "net/ipv4/tcp_available_congestion_control"} {
			b, err := os.ReadFile("/proc/sys/" + p)
			c.err(p, err)
			if !strings.Contains(p, "uuid") && !strings.Contains(p, "file-nr") {
				err = os.WriteFile("/proc/sys/"+p, b, 0)
				c.err("write "+p, err)
			}
		}
	},
	"sysfs": reads("/sys/kernel/mm/transparent_hugepage/enabled", "/sys/devices/system/cpu/online", "/sys/devices/system/cpu/vulnerabilities/spectre_v2", "/sys/class/net/lo/mtu", "/sys/class/net/lo/address", "/sys/class/net/lo/statistics/rx_bytes",
		"/sys/kernel/uevent_seqnum", "/sys/class/mem/null/dev", "/sys/class/mem/null/uevent", "/sys/devices/system/clocksource/clocksource0/current_clocksource", "/sys/devices/system/node/node0/meminfo", "/sys/power/state", "/sys/kernel/slab/kmalloc-64/objects", "/sys/module/kernel/parameters/panic", "/sys/bus/pci/devices/0000:00:00.0/config", "/sys/class/tty/ttyS0/type", "/sys/firmware/memmap/0/start", "/sys/fs/cgroup/cgroup.controllers"),
	"sysfs_write": func(c calls, _ string) {
		for _, p := range [][2]string{{"/sys/kernel/mm/transparent_hugepage/enabled", "madvise"}, {"/sys/class/mem/null/uevent", "add"}, {"/sys/class/net/lo/mtu", "65536"}, {"/sys/devices/system/clocksource/clocksource0/current_clocksource", "x"}, {"/sys/module/kernel/parameters/panic", "-1"}} {
			c.err(p[0], os.WriteFile(p[0], []byte(p[1]), 0))
		}
	},
	"tracefs": reads("/sys/kernel/tracing/available_events", "/sys/kernel/tracing/trace", "/sys/kernel/tracing/available_tracers", "/sys/kernel/tracing/events/sched/sched_switch/format", "/sys/kernel/tracing/printk_formats", "/sys/kernel/tracing/saved_cmdlines", "/sys/kernel/tracing/trace_clock", "/sys/kernel/tracing/trace_options", "/sys/kernel/tracing/set_event"),
	"lists":   lists("/proc", "/proc/self/fd", "/proc/self/task", "/proc/self/ns", "/proc/net", "/proc/sys/kernel", "/sys/class", "/sys/kernel", "/sys/bus", "/sys/class/mem", "/dev", "/", "/tmp", "/sys/kernel/debug", "/sys/kernel/tracing"),
	"devices": func(c calls, _ string) {
		for _, p := range []string{"null", "zero", "full", "random", "urandom", "kmsg", "mem", "port", "tty", "console", "ttyS0", "ptmx", "cpu_dma_latency", "rtc0", "hpet", "loop-control", "loop0", "net/tun", "fuse", "vga_arbiter", "autofs", "snapshot", "hwrng", "nvram", "input/event0", "input/mice", "vcs", "tty1"} {
			fd, err := unix.Open("/dev/"+p, unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
			c.err(p, err)
			if err != nil {
				continue
			}
			b := make([]byte, 64)
			n, err := unix.Pread(fd, b, 0)
			c.err(fmt.Sprint("read ", n >= 0), err)
			if p == "null" || p == "zero" || p == "full" || p == "random" || p == "urandom" {
				n, err = unix.Write(fd, b)
				c.n("write", n, err)
			}
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLOUT}}, 0)
			c.err("poll", err)
			c.raw("ioctl", unix.SYS_IOCTL, uintptr(fd), 0x5401, uintptr(unsafe.Pointer(&b[0])))
			_, err = unix.Seek(fd, 0, 0)
			c.err("seek", err)
			m, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE)
			c.err("mmap", err)
			if err == nil {
				c.err("munmap", unix.Munmap(m))
			}
			_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_ASYNC|unix.O_NONBLOCK)
			c.err("async", err)
			c.err("close", unix.Close(fd))
		}
	},
	"pty": func(c calls, _ string) {
		fd := c.open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY)
		c.err("unlock", unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
		n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
		c.err("number", err)
		c.err("mkdir", os.MkdirAll("/dev/pts", 0o755))
		c.err("devpts", unix.Mount("devpts", "/dev/pts", "devpts", 0, ""))
		s, err := unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY, 0)
		c.err("open", err)
		if t, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
			c.err("tcsets", unix.IoctlSetTermios(fd, unix.TCSETS, t))
		}
		c.err("winsize", unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 25, Col: 80}))
		b := make([]byte, 100)
		k, err := unix.Write(fd, []byte("hello\n"))
		c.n("write", k, err)
		k, err = unix.Read(s, b)
		c.n("read", k, err)
		k, err = unix.Write(s, []byte("back\n"))
		c.n("write", k, err)
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		c.err("poll", err)
		k, err = unix.Read(fd, b)
		c.err(fmt.Sprint("read ", k > 0), err)
		c.raw("tcflsh", unix.SYS_IOCTL, uintptr(s), unix.TCFLSH, 2)
		c.raw("tcxonc", unix.SYS_IOCTL, uintptr(s), unix.TCXONC, 1)
		c.raw("tcsbrk", unix.SYS_IOCTL, uintptr(s), 0x5409, 1)
		c.raw("fionread", unix.SYS_IOCTL, uintptr(s), 0x541B, uintptr(unsafe.Pointer(&b[0])))
		c.raw("tiocsetd", unix.SYS_IOCTL, uintptr(s), unix.TIOCSETD, uintptr(unsafe.Pointer(new(int32))))
		c.err("close", unix.Close(s))
		c.err("close", unix.Close(fd))
	},
	"pipe": func(c calls, dir string) {
		var p, q [2]int
		c.err("pipe", unix.Pipe(p[:]))
		c.err("pipe", unix.Pipe(q[:]))
		b := make([]byte, 5000)
		n, err := unix.Write(p[1], b)
		c.n("write", n, err)
		k, err := unix.Tee(p[0], q[1], 100, 0)
		c.n("tee", int(k), err)
		fd := c.open(dir+"f", unix.O_RDWR|unix.O_CREAT)
		k, err = unix.Splice(p[0], nil, fd, nil, 1000, 0)
		c.n("splice", int(k), err)
		off := int64(0)
		k, err = unix.Splice(fd, &off, p[1], nil, 100, 0)
		c.n("splice", int(k), err)
		_, err = unix.Vmsplice(p[1], []unix.Iovec{{Base: &b[0], Len: 10}}, 0)
		c.err("vmsplice", err)
		_, err = unix.FcntlInt(uintptr(p[0]), unix.F_SETPIPE_SZ, 1<<16)
		c.err("size", err)
		n, err = unix.Read(p[0], b)
		c.n("read", n, err)
		for _, f := range append(p[:], q[:]...) {
			c.err("close", unix.Close(f))
		}
	},
	"waiting": func(c calls, dir string) {
		e, err := unix.EpollCreate1(0)
		c.err("epoll", err)
		ev, err := unix.Eventfd(1, unix.EFD_NONBLOCK)
		c.err("eventfd", err)
		tm, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, 0)
		c.err("timerfd", err)
		c.err("settime", unix.TimerfdSettime(tm, 0, &unix.ItimerSpec{Value: unix.Timespec{Nsec: 1000000}}, nil))
		sg, err := unix.Signalfd(-1, &unix.Sigset_t{}, 0)
		c.err("signalfd", err)
		in, err := unix.InotifyInit()
		c.err("inotify", err)
		_, err = unix.InotifyAddWatch(in, dir, unix.IN_ALL_EVENTS)
		c.err("watch", err)
		var p [2]int
		c.err("pipe", unix.Pipe(p[:]))
		for _, fd := range []int{ev, tm, sg, in, p[0]} {
			c.err("add", unix.EpollCtl(e, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}))
		}
		files(c, dir+"f")
		time.Sleep(2 * time.Millisecond)
		list := make([]unix.EpollEvent, 10)
		n, err := unix.EpollWait(e, list, 100)
		c.err(fmt.Sprint("wait ", n > 0), err)
		b := make([]byte, 8192)
		for _, fd := range []int{ev, tm, in} {
			n, err := unix.Read(fd, b)
			c.err(fmt.Sprint("read ", n > 0), err)
		}
		var set unix.FdSet
		set.Set(ev)
		_, err = unix.Select(ev+1, &set, nil, nil, &unix.Timeval{Usec: 1000})
		c.err("select", err)
		for _, fd := range []int{ev, tm, sg, in, p[0], p[1], e} {
			_, _ = os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
			c.err("close", unix.Close(fd))
		}
	},
	"fanotify": func(c calls, dir string) {
		fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF, unix.O_RDONLY)
		c.err("init", err)
		c.err("mark", unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN|unix.FAN_CLOSE|unix.FAN_MODIFY, unix.AT_FDCWD, dir))
		c.err("mark mount", unix.FanotifyMark(fd, unix.FAN_MARK_ADD|unix.FAN_MARK_MOUNT, unix.FAN_OPEN, unix.AT_FDCWD, dir))
		f := c.open(dir+"f", unix.O_RDWR|unix.O_CREAT)
		c.err("close", unix.Close(f))
		n, err := unix.Read(fd, make([]byte, 4096))
		c.err(fmt.Sprint("read ", n > 0), err)
		c.err("close", unix.Close(fd))
	},
}
