//go:build linux && amd64

package main

import (
	"fmt"
	"maps"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// workload runs one and writes what each of its calls returned.
func workload(name string) {
	do, ok := workloads[name]
	if !ok {
		fmt.Println("there is no such workload")
		os.Exit(2)
	}
	dir := "/tmp/" + name
	runtime.LockOSThread() // a tracer is a thread
	_ = os.RemoveAll(dir)
	_ = os.Mkdir(dir, 0o755)
	do(calls{}, dir+"/")
}

// calls writes what calls returned: the same each time, without the kernel's own numbers.
type calls struct{}

func (calls) err(what string, err error) { fmt.Println(what, err) }

func (c calls) n(what string, n int, err error) { fmt.Println(what, n, err) }

func (c calls) open(name string, flags int) int {
	fd, err := unix.Open(name, flags, 0o644)
	c.err("open "+name, err)
	return fd
}

// raw is a system call by number.
func (c calls) raw(what string, nr uintptr, args ...uintptr) uintptr {
	var a [6]uintptr
	copy(a[:], args)
	r, _, e := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	fmt.Println(what, int(e))
	return r
}

// workloads has each workload by its name.
var workloads = map[string]func(calls, string){}

// The workloads stand in files by what they use.
func init() {
	for _, some := range []map[string]func(calls, string){fileWorkloads, processWorkloads, socketWorkloads, mountWorkloads, kernelWorkloads} {
		maps.Copy(workloads, some)
	}
}
