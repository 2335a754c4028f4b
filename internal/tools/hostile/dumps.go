//go:build linux

package main

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
)

// The parts of a dump that are damaged: its headers and notes, the memory that has the kernel, all of it.
const (
	dumpHead   = 8 << 10
	kernelFrom = 16 << 20
	kernelTo   = 64 << 20
)

// realDump damages the dump of a booted kernel, and asks of it whatever a dump is asked of.
func realDump(c *tryOut) {
	if len(c.seeds.dumps) == 0 {
		return
	}
	file := filepath.Join(c.dir, "dump")
	if err := c.damagedCopy(c.seeds.dumps[c.rng.IntN(len(c.seeds.dumps))], file); err != nil {
		c.found("", err.Error())
		return
	}
	limits := func(args ...string) []string {
		return append([]string{args[0], "--timeout", "60s", "--max-output", "1000000"}, args[1:]...)
	}
	all := [][]string{
		limits("info", file), limits("info", "--json", file), limits("explain", file, "vfs_read"), limits("symbols", file, "vfs_*"), limits("scan", file),
		limits("exec", "--budget", "30000000", "--kprobe", "vfs_read", "--kernel", file, "/bin/busybox", "echo", "hello"),
		limits("run", "--budget", "30000000", "--kretprobe", "ksys_read", "--syscall", "getpid()", file),
		limits("run", "--budget", "30000000", "--call", "snprintf(buf[64], 64, \"%d\", 42)", file),
		limits("bpftrace", "-r", file, "-lv", "fentry:vfs_read"), limits("stap", "-r", file, "-L", `kernel.function("vfs_read")`),
		limits("bpftrace", "-r", file, "--dry-run", "-e", `fentry:vfs_read { print(*args.file); print(kstack); }`),
		limits("probe", file, "-V", "vfs_read"), limits("check", c.file("points", []byte("vfs_read\np:g/e vfs_read a=+0(%di):string\n")), file),
	}
	c.guest = true // a guest may say anything, and end in any way
	c.run(nil, all[c.rng.IntN(len(all))]...)
}

// damagedCopy copies a dump, sometimes in pieces (makedumpfile's flattened form), and damages it in one of its parts.
func (c *tryOut) damagedCopy(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	if c.rng.IntN(4) == 0 {
		err = flatten(out, in)
	} else {
		_, err = io.Copy(out, in)
	}
	if err != nil {
		return err
	}
	st, err := out.Stat()
	if err != nil {
		return err
	}
	size := st.Size()
	start, end := []int64{0, kernelFrom, kernelFrom, 0}[c.rng.IntN(4)], size
	switch c.rng.IntN(3) {
	case 0:
		start, end = 0, dumpHead
	case 1:
		end = kernelTo
	}
	start, end = min(start, size-1), min(max(end, start+1), size)
	for range 1 << c.rng.IntN(14) {
		at := start + c.rng.Int64N(end-start)&^7
		word := binary.LittleEndian.AppendUint64(nil, odd[c.rng.IntN(len(odd))]+uint64(c.rng.IntN(3)))
		if c.rng.IntN(2) == 0 {
			word = binary.LittleEndian.AppendUint64(nil, c.rng.Uint64())
		}
		if _, err := out.WriteAt(word[:1<<c.rng.IntN(4)], at); err != nil {
			return err
		}
	}
	if c.rng.IntN(10) == 0 {
		return out.Truncate(c.rng.Int64N(size))
	}
	return nil
}

// flatten writes the flattened form of a dump.
func flatten(w io.Writer, r io.Reader) error {
	head := make([]byte, 4096)
	copy(head, "makedumpfile\x00")
	if _, err := w.Write(head); err != nil {
		return err
	}
	b := make([]byte, 1<<20)
	for at := uint64(0); ; {
		n, err := io.ReadFull(r, b)
		if n > 0 {
			h := binary.BigEndian.AppendUint64(nil, at)
			h = binary.BigEndian.AppendUint64(h, uint64(n))
			if _, err := w.Write(append(h, b[:n]...)); err != nil {
				return err
			}
			at += uint64(n)
		}
		if err != nil {
			end := make([]byte, 16)
			for i := range end {
				end[i] = 0xff
			}
			_, err = w.Write(end)
			return err
		}
	}
}
