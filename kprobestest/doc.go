// Package kprobestest gives a go test a kernel to probe: a machine with the
// kprobes subsystem on the guest kernel inside this module, or on an image of
// the test's choice, without root.
//
//	func TestReadIsProbed(t *testing.T) {
//		m := kprobestest.New(t, nil)
//		hits := 0
//		m.Kprobe("vfs_read", func(*kprobes.Kprobe, *x86.PtRegs) int { hits++; return 0 }, nil)
//		fd := m.Call("sys_open", "/etc/hostname", 0, 0)
//		m.Call("sys_read", fd, make([]byte, 16), 16)
//		if hits != 1 {
//			t.Errorf("%d hits", hits)
//		}
//	}
//
// When the test ends, a leak check fails it if a probe is still registered, if
// a byte of text is not what it was, or if a hit went wrong. Trace records what
// happened in lines that repeat to the byte, for golden files.
//
// A handler may end the test, as t.Fatal does. The call that it was in does not
// go on, and the machine runs nothing more.
//
// It must not know what is tested: it has no functions of its own to probe,
// and no opinion on what a probe should see. The machine needs cgo on
// linux/amd64; in other builds the package is empty.
package kprobestest
