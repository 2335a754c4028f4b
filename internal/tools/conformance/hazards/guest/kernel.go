//go:build linux && amd64

package main

import (
	"fmt"
	"os"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelWorkloads use memory, keys, BPF, perf events and other parts of the kernel.
var kernelWorkloads = map[string]func(calls, string){
	"memory": func(c calls, _ string) {
		m, err := unix.Mmap(-1, 0, 4<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		c.err("mmap", err)
		for i := 0; i < len(m); i += 4096 {
			m[i] = 1
		}
		c.err("mprotect", unix.Mprotect(m[:8192], unix.PROT_READ))
		c.err("mlock", unix.Mlock(m[:8192]))
		c.err("munlock", unix.Munlock(m[:8192]))
		for _, a := range []int{unix.MADV_HUGEPAGE, unix.MADV_COLD, unix.MADV_PAGEOUT, unix.MADV_FREE, unix.MADV_MERGEABLE, unix.MADV_DONTNEED, unix.MADV_POPULATE_WRITE} {
			c.err("madvise", unix.Madvise(m[8192:], a))
		}
		b := make([]byte, len(m)/4096)
		c.raw("mincore", unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), uintptr(unsafe.Pointer(&b[0])))
		c.raw("mbind", unix.SYS_MBIND, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), 1, uintptr(unsafe.Pointer(new(uint64))), 64, 0)
		c.raw("get_mempolicy", unix.SYS_GET_MEMPOLICY, 0, 0, 0, 0, 0)
		c.raw("migrate", unix.SYS_MIGRATE_PAGES, 0, 64, uintptr(unsafe.Pointer(new(uint64))), uintptr(unsafe.Pointer(new(uint64))))
		c.err("munmap", unix.Munmap(m))
		c.err("drop", os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0))
		c.err("compact", os.WriteFile("/proc/sys/vm/compact_memory", []byte("1"), 0))
		h, err := unix.Mmap(-1, 0, 2<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_HUGETLB)
		c.err("hugetlb", err)
		if err == nil {
			c.err("munmap", unix.Munmap(h))
		}
	},
	"uffd": func(c calls, _ string) {
		fd := c.raw("userfaultfd", unix.SYS_USERFAULTFD, unix.O_NONBLOCK)
		api := [3]uint64{0xAA}
		c.raw("api", unix.SYS_IOCTL, fd, 0xC018AA3F, uintptr(unsafe.Pointer(&api)))
		c.err("close", unix.Close(int(fd)))
		b := make([]byte, 8)
		local, remote := unix.Iovec{Base: &b[0], Len: 8}, unix.RemoteIovec{Base: uintptr(unsafe.Pointer(&b[0])), Len: 8}
		_, err := unix.ProcessVMReadv(unix.Getpid(), []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
		c.err("readv", err)
	},
	"uring": func(c calls, _ string) {
		var p [120]byte
		fd := c.raw("setup", unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&p)))
		c.raw("enter", unix.SYS_IO_URING_ENTER, fd, 0, 0, 0, 0)
		c.err("close", unix.Close(int(fd)))
		var ctx uint64
		c.raw("io_setup", unix.SYS_IO_SETUP, 4, uintptr(unsafe.Pointer(&ctx)))
		c.raw("io_destroy", unix.SYS_IO_DESTROY, uintptr(ctx))
	},
	"keys": func(c calls, _ string) {
		id, err := unix.AddKey("user", "k", []byte("payload"), unix.KEY_SPEC_PROCESS_KEYRING)
		c.err("add", err)
		b := make([]byte, 100)
		n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, b, 0)
		c.n("read", n, err)
		_, err = unix.KeyctlString(unix.KEYCTL_DESCRIBE, id)
		c.err("describe", err)
		_, err = unix.KeyctlInt(unix.KEYCTL_UPDATE, id, 0, 0, 0)
		c.err("update", err)
		_, err = unix.KeyctlInt(unix.KEYCTL_REVOKE, id, 0, 0, 0)
		c.err("revoke", err)
		_, err = unix.AddKey("keyring", "r", nil, unix.KEY_SPEC_PROCESS_KEYRING)
		c.err("keyring", err)
		_, err = unix.AddKey("logon", "a:b", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		c.err("logon", err)
	},
	"bpf": func(c calls, _ string) {
		type create struct{ kind, key, value, entries, flags uint32 }
		for kind := uint32(1); kind <= 30; kind++ {
			a := create{kind, 4, 8, 16, 0}
			fd, _, e := unix.Syscall(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&a)), 72)
			c.n("map", int(kind), nil)
			fmt.Println(int(e))
			if e != 0 {
				continue
			}
			key, value := uint32(1), [8]byte{}
			u := [4]uint64{uint64(fd), uint64(uintptr(unsafe.Pointer(&key))), uint64(uintptr(unsafe.Pointer(&value))), 0}
			for _, cmd := range []uintptr{2, 1, 4, 3} {
				c.raw("op", unix.SYS_BPF, cmd, uintptr(unsafe.Pointer(&u)), 72)
			}
			_, _ = os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
			c.err("close", unix.Close(int(fd)))
		}
		prog := [2]uint64{0x00000000000000b7, 0x95}
		license := []byte("GPL\x00")
		for kind := uint32(1); kind <= 31; kind++ {
			a := [16]uint64{uint64(kind) | 2<<32, uint64(uintptr(unsafe.Pointer(&prog))), uint64(uintptr(unsafe.Pointer(&license[0])))}
			fd, _, e := unix.Syscall(unix.SYS_BPF, 5, uintptr(unsafe.Pointer(&a)), 72)
			fmt.Println("prog", kind, int(e))
			if e == 0 {
				data := make([]byte, 64)
				t := [8]uint64{uint64(fd), 64 << 0, uint64(uintptr(unsafe.Pointer(&data[0])))}
				t[0] = uint64(fd)
				c.raw("test", unix.SYS_BPF, 10, uintptr(unsafe.Pointer(&t)), 72)
				c.err("close", unix.Close(int(fd)))
			}
		}
	},
	"perf": func(c calls, _ string) {
		for _, a := range [][2]uint64{{1, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 9}, {2, 300}, {0, 0}, {5, 0}} {
			attr := unix.PerfEventAttr{Type: uint32(a[0]), Config: a[1], Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
			fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, 0)
			c.err(fmt.Sprint("open ", a), err)
			if err != nil {
				continue
			}
			for _, io := range []uint{unix.PERF_EVENT_IOC_ENABLE, unix.PERF_EVENT_IOC_RESET, unix.PERF_EVENT_IOC_DISABLE} {
				c.err("ioctl", unix.IoctlSetInt(fd, io, 0))
			}
			n, err := unix.Read(fd, make([]byte, 8))
			c.n("read", n, err)
			m, err := unix.Mmap(fd, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			c.err("mmap", err)
			if err == nil {
				c.err("munmap", unix.Munmap(m))
			}
			c.err("close", unix.Close(fd))
		}
	},
	"algorithms": func(c calls, _ string) {
		for _, a := range [][2]string{{"hash", "sha256"}, {"hash", "crc32c"}, {"hash", "md5"}, {"skcipher", "cbc(aes)"}, {"rng", "stdrng"}, {"hash", "hmac(sha1)"}} {
			s, err := unix.Socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)
			c.err("socket", err)
			if err != nil {
				return
			}
			c.err(a[1], unix.Bind(s, &unix.SockaddrALG{Type: a[0], Name: a[1]}))
			o, _, e := unix.Syscall6(unix.SYS_ACCEPT4, uintptr(s), 0, 0, 0, 0, 0)
			fmt.Println("accept", int(e))
			n, err := unix.Write(int(o), []byte("hello"))
			c.n("write", n, err)
			n, err = unix.Read(int(o), make([]byte, 32))
			c.n("read", n, err)
			_ = unix.Close(int(o))
			_ = unix.Close(s)
		}
	},
	"events": func(c calls, _ string) {
		for _, e := range []string{"sched/sched_switch", "syscalls/sys_enter_getpid", "kmem/kmalloc", "irq/irq_handler_entry"} {
			c.err(e, os.WriteFile(tracing+"events/"+e+"/enable", []byte("1"), 0))
			_ = unix.Getpid()
			c.err("filter", os.WriteFile(tracing+"events/"+e+"/filter", []byte("common_pid == 1"), 0))
			c.err("trigger", os.WriteFile(tracing+"events/"+e+"/trigger", []byte("traceoff if common_pid == 1"), 0))
			c.err("trigger", os.WriteFile(tracing+"events/"+e+"/trigger", []byte("!traceoff"), 0))
			c.err("filter", os.WriteFile(tracing+"events/"+e+"/filter", []byte("0"), 0))
			c.err("off", os.WriteFile(tracing+"events/"+e+"/enable", []byte("0"), 0))
		}
		c.err("clock", os.WriteFile(tracing+"trace_clock", []byte("local"), 0))
		c.err("instance", os.Mkdir(tracing+"instances/x", 0o755))
		c.err("instance", os.Remove(tracing+"instances/x"))
	},
	"random": func(c calls, _ string) {
		b := make([]byte, 300)
		n, err := unix.Getrandom(b, 0)
		c.n("getrandom", n, err)
		var u unix.Utsname
		c.err("uname", unix.Uname(&u))
		c.err("hostname", unix.Sethostname([]byte("x")))
		var i unix.Sysinfo_t
		c.err("sysinfo", unix.Sysinfo(&i))
		_, err = unix.Klogctl(unix.SYSLOG_ACTION_SIZE_BUFFER, nil)
		c.err("syslog", err)
	},
	"modules": func(c calls, dir string) {
		f := c.open(dir+"m", unix.O_RDWR|unix.O_CREAT)
		c.err("finit", unix.FinitModule(f, "", 0))
		c.err("delete", unix.DeleteModule("nothing", 0))
		c.err("script", os.WriteFile(dir+"s", []byte("#!/nothing\n"), 0o755))
		c.err("exec", exec.Command(dir+"s").Run())
		c.err("elf", os.WriteFile(dir+"e", []byte("\x7fELF"), 0o755))
		c.err("exec", exec.Command(dir+"e").Run())
		c.err("swapon", func() error {
			_, _, e := unix.Syscall(unix.SYS_SWAPON, uintptr(unsafe.Pointer(&[]byte(dir + "m\x00")[0])), 0, 0)
			return e
		}())
	},
}
