//go:build linux

package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// stressLength is the time for which the users of a mount work on it.
const stressLength = 15 * time.Second

// stress mounts the tracing files, lets several users do random things with them,
// and looks whether the program then ends as it should.
func stress(c *tryOut) {
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Geteuid() != 0 {
		c.tally.count("mounts (skipped: they need root and /dev/fuse)", 1)
		return
	}
	dir := filepath.Join(c.dir, "t")
	_ = os.Mkdir(dir, 0o700)
	cmd := exec.Command(c.program, "mount", "--timeout", "5s", "--budget", "3000000", dir)
	cmd.Stderr = &keep{}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.found("mount", err.Error())
		return
	}
	began := time.Now()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		_ = cmd.Wait()
		c.found("mount", "it says nothing: "+cmd.Stderr.(*keep).b.String())
		return
	}
	dead := time.AfterFunc(c.o.patience(), func() { _ = cmd.Process.Kill() })
	c.tally.count("file operations", work(dir, c.rng, stressLength))
	_ = cmd.Process.Signal(unix.SIGTERM)
	err = cmd.Wait()
	if !dead.Stop() {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
	}
	c.tally.ran(c.kind, time.Since(began), busy(cmd), usage(cmd), "kprobelab mount")
	var none keep
	if what := c.judge(cmd, err, time.Since(began), &none, cmd.Stderr.(*keep)); what != "" {
		c.found("mount", what)
	}
}

// work lets four users do random things, and returns how many.
func work(dir string, rng *rand.Rand, length time.Duration) int {
	var n atomic.Int64
	var wg sync.WaitGroup
	end := time.Now().Add(length)
	for range 4 {
		u := &user{dir: dir, rng: newRand(rng.Uint64())}
		wg.Go(func() {
			for time.Now().Before(end) {
				u.operate()
				n.Add(1)
			}
		})
	}
	wg.Wait()
	return int(n.Load())
}

type user struct {
	dir string
	rng *rand.Rand
}

var mountFiles = []string{
	"kprobe_events", "dynamic_events", "trace", "trace_pipe", "trace_marker", "trace_options", "trace_clock", "tracing_on", "buffer_size_kb", "buffer_total_size_kb", "snapshot", "error_log",
	"current_tracer", "set_ftrace_filter", "set_ftrace_notrace", "kprobe_profile", "available_events", "set_event", "saved_cmdlines", "README", "events/enable", "events/kprobes/enable",
	"events/kprobes/e1/enable", "events/kprobes/e1/filter", "events/kprobes/e1/trigger", "events/kprobes/e1/format", "events/kprobes/e1/id", "per_cpu/cpu0/trace_pipe_raw",
	"per_cpu/cpu1/snapshot", "per_cpu/cpu0/buffer_size_kb", "per_cpu/cpu0/stats", "instances/i1/trace", "instances/i2/events/kprobes/e1/enable", "instances/i1/buffer_size_kb",
	"instances/i1/snapshot", "kprobelab/call", "kprobelab/kallsyms", "kprobelab/root/tmp/a", "kprobelab/root/dev/null", "kprobes/enabled", "debug/kprobes-optimization", "stack_trace", "nosuch", "", ".",
}

var mountTexts = []string{
	"p:e1 gcd a=%di b=%si", "r:e1 vfs_read $retval", "p:e2 snprintf +0(%dx):string", "p:e1 gcd+0x5", "-:e1", "-:*", "p:\x1b[31m gcd", "p:e3 gcd $comm %ax:x8[64]", "0", "1", "2", "-1", "4096", "999999999", "18446744073709551616",
	"a > 3", "a ~ \"*x*\" || b == 1", "((((a > 1))))", "traceoff:1 if a > 2", "snapshot", "stacktrace:5", "!traceoff", "disable_event:kprobes:e2", "function", "nop", "vfs_*", "!vfs_*", "gcd:traceon", "local", "mono", "stacktrace", "nostacktrace",
	"gcd(12, 18)", "sys_open(\"/etc/hostname\", 0, 0)", "spin(100000000)", "snprintf(buf[64], 64, \"%s\", \"x\")", "gcd(", "",
}

// operate does one thing; that it fails is no finding.
func (u *user) operate() {
	name := filepath.Join(u.dir, mountFiles[u.rng.IntN(len(mountFiles))])
	switch u.rng.IntN(20) {
	case 0:
		_ = unix.Mkdir(filepath.Join(u.dir, "instances", fmt.Sprintf("i%d", u.rng.IntN(4))), 0o700)
	case 1:
		_ = unix.Rmdir(filepath.Join(u.dir, "instances", fmt.Sprintf("i%d", u.rng.IntN(4))))
	case 2:
		_ = unix.Unlink(name)
	case 3:
		_ = unix.Symlink("/etc", name+"x")
	case 4:
		_ = unix.Truncate(name, int64(odd[u.rng.IntN(len(odd))]))
	case 5:
		_ = unix.Rename(name, name+"y")
	case 6:
		_, _ = os.ReadDir(name)
	case 7:
		_ = unix.Chmod(name, u.rng.Uint32()&0o7777)
	case 8:
		_ = unix.Chown(name, int(u.rng.Int32()), int(u.rng.Int32()))
	case 9:
		_ = unix.Setxattr(name, "user.x", make([]byte, u.rng.IntN(70_000)), 0)
		_, _ = unix.Listxattr(name, make([]byte, 256))
	case 10:
		_ = unix.Link(name, name+"l")
		_ = unix.Mknod(name+"n", unix.S_IFIFO|0o600, 0)
	case 11:
		_ = unix.UtimesNano(name, []unix.Timespec{{Sec: u.rng.Int64()}, {Sec: -1}})
	default:
		u.use(name)
	}
}

// use opens a file, reads and writes at odd places, and closes it.
func (u *user) use(name string) {
	flags := []int{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR, unix.O_WRONLY | unix.O_TRUNC, unix.O_WRONLY | unix.O_APPEND, unix.O_RDWR | unix.O_CREAT}
	fd, err := unix.Open(name, flags[u.rng.IntN(len(flags))]|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	b := make([]byte, 1<<u.rng.IntN(21))
	for range 1 + u.rng.IntN(4) {
		switch u.rng.IntN(8) {
		case 0:
			_, _ = unix.Read(fd, b)
		case 1:
			_, _ = unix.Pread(fd, b, int64(odd[u.rng.IntN(len(odd))]>>1))
		case 2:
			_, _ = unix.Write(fd, []byte(mountTexts[u.rng.IntN(len(mountTexts))]+"\n"))
		case 3:
			_, _ = unix.Pwrite(fd, mutateText(u.rng, []byte(mountTexts[u.rng.IntN(len(mountTexts))])), int64(u.rng.IntN(1<<20)))
		case 4:
			if mapped, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE); err == nil {
				_ = unix.Munmap(mapped)
			}
		case 5:
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLOUT}}, 0)
		case 6:
			_, _ = unix.Write(fd, b)
		case 7:
			_ = unix.Fallocate(fd, 0, int64(odd[u.rng.IntN(len(odd))]>>1), int64(odd[u.rng.IntN(len(odd))]>>1))
			_, _ = unix.Seek(fd, int64(odd[u.rng.IntN(len(odd))]), u.rng.IntN(5))
			_ = unix.Fsync(fd)
		}
	}
}
