//go:build linux && amd64

package main

import (
	"os"
	"os/exec"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"kprobelab/internal/tools/conformance/hazards"
)

// dividesAndExits leaves an exception of the x87 pending, and ends the task (x87_amd64.s).
func dividesAndExits()

// processWorkloads start processes and threads, signal and trace them, and talk among them.
var processWorkloads = map[string]func(calls, string){
	"processes": func(c calls, _ string) {
		out, err := exec.Command("/proc/self/exe", "workload", "none").Output()
		c.err(string(out), err)
		p, err := os.StartProcess("/proc/self/exe", []string{"x", "workload", "none"}, &os.ProcAttr{Sys: &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP}})
		c.err("namespaces", err)
		if err == nil {
			st, err := p.Wait()
			c.err(st.String(), err)
		}
		c.err("priority", unix.Setpriority(unix.PRIO_PROCESS, 0, 1))
		c.err("prctl", unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&[]byte("name\x00")[0])), 0, 0, 0))
		var cpus unix.CPUSet
		c.err("affinity", unix.SchedGetaffinity(0, &cpus))
		c.err("setaffinity", unix.SchedSetaffinity(0, &cpus))
		var u unix.Rusage
		c.err("rusage", unix.Getrusage(0, &u))
		var lim unix.Rlimit
		c.err("rlimit", unix.Getrlimit(unix.RLIMIT_NOFILE, &lim))
		c.err("kill", unix.Kill(unix.Getpid(), 0))
		attr, err := unix.SchedGetAttr(0, 0)
		c.err("getattr", err)
		if err == nil {
			c.err("setattr", unix.SchedSetAttr(0, attr, 0))
		}
		for _, policy := range []uintptr{3, 1, 2, 5, 0} {
			param := [1]int32{}
			if policy == 1 || policy == 2 {
				param[0] = 1
			}
			c.raw("scheduler", unix.SYS_SCHED_SETSCHEDULER, 0, policy, uintptr(unsafe.Pointer(&param)))
			c.raw("yield", unix.SYS_SCHED_YIELD)
			time.Sleep(time.Millisecond)
		}
		c.raw("interval", unix.SYS_SCHED_RR_GET_INTERVAL, 0, uintptr(unsafe.Pointer(&unix.Timespec{})))
	},
	// A task that ends with an exception of the x87 pending.
	hazards.Faulty: func(calls, string) { dividesAndExits() },
	"none":         func(c calls, _ string) { c.err("none", nil) },
	"ptrace": func(c calls, _ string) {
		cmd := exec.Command("/proc/self/exe", "workload", "none")
		cmd.SysProcAttr = &unix.SysProcAttr{Ptrace: true}
		err := cmd.Start()
		c.err("start", err)
		if err != nil {
			return
		}
		var ws unix.WaitStatus
		_, err = unix.Wait4(cmd.Process.Pid, &ws, 0, nil)
		c.err("wait", err)
		var regs unix.PtraceRegs
		c.err("getregs", unix.PtraceGetRegs(cmd.Process.Pid, &regs))
		c.err("setregs", unix.PtraceSetRegs(cmd.Process.Pid, &regs))
		b := make([]byte, 8)
		_, err = unix.PtracePeekData(cmd.Process.Pid, uintptr(regs.Rsp), b)
		c.err("peek", err)
		c.err("step", unix.PtraceSingleStep(cmd.Process.Pid))
		_, err = unix.Wait4(cmd.Process.Pid, &ws, 0, nil)
		c.err("wait", err)
		for _, note := range []uintptr{1, 2, 0x202} {
			buf := make([]byte, 4096)
			iov := unix.Iovec{Base: &buf[0], Len: 4096}
			c.raw("getregset", unix.SYS_PTRACE, 0x4204, uintptr(cmd.Process.Pid), note, uintptr(unsafe.Pointer(&iov)))
			c.raw("setregset", unix.SYS_PTRACE, 0x4205, uintptr(cmd.Process.Pid), note, uintptr(unsafe.Pointer(&iov)))
		}
		c.raw("peekuser", unix.SYS_PTRACE, 3, uintptr(cmd.Process.Pid), 848, uintptr(unsafe.Pointer(&b[0])))
		c.err("detach", unix.PtraceDetach(cmd.Process.Pid))
		_, err = unix.Wait4(cmd.Process.Pid, &ws, 0, nil)
		c.err("wait", err)
	},
	"signals": func(c calls, _ string) {
		t := unix.Itimerval{Value: unix.Timeval{Usec: 1000}}
		c.raw("setitimer", unix.SYS_SETITIMER, 1, uintptr(unsafe.Pointer(&t)), 0)
		var id int32
		for _, clock := range []uintptr{0, 1, 2, 3, 7, 11} {
			ev := [8]uint64{0, 1 << 32} // SIGEV_NONE
			c.raw("timer_create", unix.SYS_TIMER_CREATE, clock, uintptr(unsafe.Pointer(&ev)), uintptr(unsafe.Pointer(&id)))
			it := unix.ItimerSpec{Value: unix.Timespec{Sec: 5}}
			c.raw("timer_settime", unix.SYS_TIMER_SETTIME, uintptr(id), 0, uintptr(unsafe.Pointer(&it)), 0)
			c.raw("timer_gettime", unix.SYS_TIMER_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&it)))
			c.raw("timer_getoverrun", unix.SYS_TIMER_GETOVERRUN, uintptr(id))
			c.raw("timer_delete", unix.SYS_TIMER_DELETE, uintptr(id))
			var ts unix.Timespec
			c.raw("clock_getres", unix.SYS_CLOCK_GETRES, clock, uintptr(unsafe.Pointer(&ts)))
			c.raw("clock_gettime", unix.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)))
			ns := unix.Timespec{Nsec: 100000}
			if clock != 2 && clock != 3 {
				c.raw("clock_nanosleep", unix.SYS_CLOCK_NANOSLEEP, clock, 0, uintptr(unsafe.Pointer(&ns)), 0)
			}
		}
		var tx unix.Timex
		c.raw("clock_adjtime", unix.SYS_CLOCK_ADJTIME, 0, uintptr(unsafe.Pointer(&tx)))
	},
	"ipc": func(c calls, _ string) {
		id := c.raw("shmget", unix.SYS_SHMGET, 0x1234, 4096, 0o1600)
		at := c.raw("shmat", unix.SYS_SHMAT, id, 0, 0)
		c.raw("shmdt", unix.SYS_SHMDT, at)
		var b [512]byte
		c.raw("shmctl", unix.SYS_SHMCTL, id, 2, uintptr(unsafe.Pointer(&b)))
		c.raw("shmrm", unix.SYS_SHMCTL, id, 0, 0)
		id = c.raw("semget", unix.SYS_SEMGET, 0x1234, 2, 0o1600)
		ops := [3]int16{0, 1, 0}
		c.raw("semop", unix.SYS_SEMOP, id, uintptr(unsafe.Pointer(&ops)), 1)
		c.raw("semrm", unix.SYS_SEMCTL, id, 0, 0)
		id = c.raw("msgget", unix.SYS_MSGGET, 0x1234, 0o1600)
		msg := [4]uint64{1, 2, 3, 4}
		c.raw("msgsnd", unix.SYS_MSGSND, id, uintptr(unsafe.Pointer(&msg)), 24, 0)
		c.raw("msgrcv", unix.SYS_MSGRCV, id, uintptr(unsafe.Pointer(&msg)), 24, 0, 0)
		c.raw("msgrm", unix.SYS_MSGCTL, id, 0, 0)
		name := []byte("queue\x00")
		fd := c.raw("mq_open", unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&name[0])), unix.O_CREAT|unix.O_RDWR, 0o600, 0)
		c.raw("mq_timedsend", unix.SYS_MQ_TIMEDSEND, fd, uintptr(unsafe.Pointer(&msg)), 8, 0, 0)
		buf := make([]byte, 8192)
		c.raw("mq_timedreceive", unix.SYS_MQ_TIMEDRECEIVE, fd, uintptr(unsafe.Pointer(&buf[0])), 8192, 0, 0)
		c.raw("mq_unlink", unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(&name[0])))
		c.err("close", unix.Close(int(fd)))
	},
	"cpu": func(c calls, _ string) {
		c.err("off", os.WriteFile("/sys/devices/system/cpu/cpu1/online", []byte("0"), 0))
		c.err("on", os.WriteFile("/sys/devices/system/cpu/cpu1/online", []byte("1"), 0))
	},
	"threads": func(c calls, _ string) {
		done := make(chan bool)
		for range 8 {
			go func() {
				for range 50 {
					time.Sleep(100 * time.Microsecond)
				}
				done <- true
			}()
		}
		for range 8 {
			<-done
		}
		c.raw("membarrier", unix.SYS_MEMBARRIER, 1, 0)
		c.raw("futex wake", unix.SYS_FUTEX, uintptr(unsafe.Pointer(new(uint32))), 1, 1, 0, 0, 0)
		c.raw("rseq", unix.SYS_RSEQ, 0, 0, 0, 0)
	},
}
