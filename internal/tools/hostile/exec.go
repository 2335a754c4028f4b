//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"kprobelab/internal/tinyprogram"
)

// Programs on booted kernels: they are root in the guest, and do there what they can against the host.

// target is a dump for exec, that of 6.1 if it is there; "" without one.
func (c *tryOut) target() string {
	for _, name := range c.seeds.dumps {
		if filepath.Base(name) == "6.1.core" {
			return name
		}
	}
	if len(c.seeds.dumps) == 0 {
		return ""
	}
	return c.seeds.dumps[0]
}

// execOn runs a program of the host on the dump, and looks at what came out: no file lies outside of the case's folder "out", and
// none of it is anything but a file or a folder.
func (c *tryOut) execOn(args ...string) {
	dump := c.target()
	if dump == "" {
		return
	}
	victim := c.file("victim", []byte("kept"))
	before, links := c.names(), c.links()
	c.guest = true
	c.exits(6)
	c.run(nil, append([]string{"exec", "--kernel", dump, "--stdin", os.DevNull, "--budget", "400000000", "--timeout", "60s", "--max-output", "1000000"}, args...)...)
	if b, err := os.ReadFile(victim); err != nil || string(b) != "kept" {
		c.found("exec "+quoted(args), "a file beside the folder of --out has changed")
	}
	for name := range c.names() {
		if !before[name] && name != "out" {
			c.found("exec "+quoted(args), fmt.Sprintf("the file %q came out of the guest", name))
		}
	}
	for name, kind := range c.links() {
		if links[name] != kind {
			c.found("exec "+quoted(args), fmt.Sprintf("%q came out of the guest: %s", name, kind))
		}
	}
}

// links are the entries of the folder "out" that are neither files nor folders, with their types.
func (c *tryOut) links() map[string]fs.FileMode {
	all := map[string]fs.FileMode{}
	_ = filepath.WalkDir(filepath.Join(c.dir, "out"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !d.Type().IsRegular() {
			all[name] = d.Type()
		}
		return nil
	})
	return all
}

// names are the files of the case's folder.
func (c *tryOut) names() map[string]bool {
	all := map[string]bool{}
	entries, _ := os.ReadDir(c.dir)
	for _, e := range entries {
		all[e.Name()] = true
	}
	return all
}

// execute writes a program of the case.
func (c *tryOut) execute(name string, b []byte) string {
	path := c.file(name, b)
	_ = os.Chmod(path, 0o700) // #nosec G302 -- it is a program
	return path
}

// oddPrograms are random bytes after an ELF header, headers with random fields, and scripts.
func oddPrograms(c *tryOut) {
	var b []byte
	switch c.rng.IntN(4) {
	case 0:
		b = mutate(c.rng, c.tiny(programCode(c.rng, 3)))
	case 1: // the header's and the program headers' bytes
		b = c.tiny(programCode(c.rng, 3))
		for range 1 + c.rng.IntN(6) {
			at := 4 + c.rng.IntN(64+3*56)
			n := binary.LittleEndian.AppendUint64(nil, odd[c.rng.IntN(len(odd))])
			copy(b[at:], n[:1<<c.rng.IntN(4)])
		}
	case 2:
		b = append([]byte("\x7fELF\x02\x01\x01"), random(c.rng, c.rng.IntN(4000))...)
	default:
		b = append([]byte("#!"), mutateText(c.rng, []byte("/usr/bin/env -S A=b sh -c\n/bin/sh x\n"))...)
	}
	file := c.execute("program", b)
	if c.rng.IntN(3) == 0 {
		c.execOn("--file", file+":/data/x", "--", "/bin/busybox", "cat", "/data/x")
		return
	}
	c.execOn("--", file)
}

func random(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// tiny is a program of that code.
func (c *tryOut) tiny(code []byte) []byte {
	b, err := tinyprogram.Build([]byte("/tmp/o/x\x00../..\x00/proc/self/mem\x00/dev/mem\x00/dev/port\x00/proc/kcore\x00/proc/1/mem\x00"), tinyprogram.Function{Name: "_start", Text: "ud2"})
	if err != nil {
		c.found("", err.Error())
		return nil
	}
	copy(b[tinyprogram.Offset(0):], code)
	return b
}

// rootCalls makes random system calls with random arguments, as root of the guest, some of them with the numbers of the
// supervisor and of init.
func rootCalls(c *tryOut) {
	code := programCode(c.rng, 1+c.rng.IntN(45))
	if c.rng.IntN(2) == 0 { // calls of the mailbox
		for i := 0; i+10 < len(code); i++ {
			if code[i] == 0x48 && code[i+1] == 0xb8 && c.rng.IntN(3) == 0 {
				binary.LittleEndian.PutUint64(code[i+2:], 0x6b700000+uint64(c.rng.IntN(0x18)))
			}
		}
	}
	file := c.execute("program", c.tiny(code))
	args := []string{"--out", "/tmp/o:out"}
	if c.rng.IntN(3) == 0 {
		args = append(args, "--for", "50ms")
	}
	if c.rng.IntN(4) == 0 {
		args = append(args, "--workload", "files,processes", "--ready", "x")
	}
	c.execOn(append(args, "--", file)...)
}

// attacks are lines of the guest's shell; %d is a random number.
var attacks = []string{
	"head -c 65536 /dev/urandom | dd of=/dev/mem bs=4096 seek=$((%d %% 32768)) conv=notrunc",
	"head -c 4096 /dev/urandom | dd of=/dev/mem bs=1 seek=$((%d * 4096)) conv=notrunc",
	"head -c 256 /dev/urandom | dd of=/dev/port bs=1 seek=$((%d %% 65536)) conv=notrunc",
	"head -c 4096 /dev/urandom | dd of=/proc/kcore bs=1 seek=$((%d * 64)) conv=notrunc",
	"head -c 262144 /dev/urandom | dd of=/proc/1/mem bs=4096 seek=$((0x6b700 + %d %% 64)) conv=notrunc",
	"head -c 4096 /dev/urandom | dd of=/proc/1/mem bs=4096 seek=$((0x6b600 + %d %% 8)) conv=notrunc",
	"head -c 4096 /dev/urandom | dd of=/proc/$PPID/mem bs=4096 seek=$((0x400 + %d %% 96)) conv=notrunc",
	"for i in 1 2 3 4 5 6 7 8; do kill -$((%d %% 65)) $PPID; kill -$(( (%d + i) %% 65)) 1; done",
	"for f in /proc/sys/*/*; do echo %d >$f; done",
	"echo %d >/proc/sys/kernel/panic_on_oops; echo c >/proc/sysrq-trigger",
	"for k in b e i f m s u o t; do echo $k >/proc/sysrq-trigger; done",
	"mkdir -p /tmp/o; i=0; while [ $i -lt 200 ]; do (while :; do :; done) & i=$((i+1)); done; echo %d",
	"dd if=/dev/zero of=/tmp/o bs=1M count=$((%d %% 512))",
	"umount -l /tmp; umount -l /proc; umount -l /dev; rm -rf /tmp /lib /bin; echo %d",
	"mount -t tmpfs x /proc; mkdir /proc/1; mount --bind /dev /tmp/o; echo %d",
	"echo 1 >/proc/sys/vm/panic_on_oom; tail /dev/zero; echo %d",
	"exec >&-; exec 2>&-; echo %d; kill -STOP $PPID",
	"reboot -f; halt -f; poweroff -f; echo %d",
	"while :; do echo %d; done",
}

// attackInside runs lines of the guest's shell that damage the guest where it touches the host.
func attackInside(c *tryOut) {
	var lines []string
	for range 1 + c.rng.IntN(3) {
		line := attacks[c.rng.IntN(len(attacks))]
		lines = append(lines, strings.ReplaceAll(strings.ReplaceAll(line, "%d", fmt.Sprint(c.rng.Uint32()>>c.rng.IntN(24))), "%%", "%"))
	}
	c.execOn("--out", "/tmp/o:out", "--", "/bin/busybox", "sh", "-c", strings.Join(lines, "\n"))
}

// oddTrees takes trees with drawn links, devices, names and depths out of the guest, onto links and pipes of the host.
func oddTrees(c *tryOut) {
	names := []string{"a", "b", "..a", "...", "-rf", `a\..\b`, "$(printf 'x\\n\\033[31m')", "$(printf '\\377')", "'*'", strings.Repeat("n", 255), "a/b", "a/b/c", ".."}
	kinds := []string{
		"echo x >%s", "mkdir -p %s", "ln -s /etc/passwd %s", "ln -s ../../../.. %s", "ln -s . %s", "ln -s %[1]s %[1]s", "mkfifo %s", "mknod %s b 7 0", "mknod %s c 1 5",
		"head -c 3000000 /dev/zero >%s", "echo x >%[1]s; chmod 7777 %[1]s", "echo x >%[1]s; chmod 0 %[1]s", "mkdir -p %[1]s; mount -t proc x %[1]s", "mkdir -p %[1]s; mount --bind / %[1]s",
	}
	lines := []string{"mkdir -p /tmp/o", "cd /tmp/o"}
	for range 1 + c.rng.IntN(5) {
		kind := kinds[c.rng.IntN(len(kinds))]
		if c.rng.IntN(3) > 0 {
			kind = kinds[c.rng.IntN(2)]
		}
		name := names[c.rng.IntN(len(names))]
		if !strings.Contains(kind, "[1]") {
			kind = strings.ReplaceAll(kind, "%s", "%[1]s")
		}
		lines = append(lines, fmt.Sprintf(kind, name))
	}
	switch c.rng.IntN(6) {
	case 0:
		_ = os.Symlink(".", filepath.Join(c.dir, "out"))
		defer os.Remove(filepath.Join(c.dir, "out"))
	case 1:
		_ = os.Mkdir(filepath.Join(c.dir, "out"), 0o700)
		link := filepath.Join(c.dir, "out", "a")
		_ = os.Symlink("../victim", link)
		c.execOn("--out", "/tmp/o:out", "--", "/bin/busybox", "sh", "-c", strings.Join(lines, "\n"))
		_ = os.Remove(link)
		return
	}
	from := []string{"/tmp/o", "/tmp/o", "/tmp/o", "/tmp/o/a", "/tmp/../tmp/o/", "/proc/self", "/dev", "/sys/kernel"}[c.rng.IntN(8)]
	c.execOn("--out", from+":out", "--", "/bin/busybox", "sh", "-c", strings.Join(lines, "\n"))
}

// takenAlong gives trees of the host to the guest: loops of links, pipes, devices.
func takenAlong(c *tryOut) {
	dir := filepath.Join(c.dir, "tree")
	_ = os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700)
	for i := range 1 + c.rng.IntN(6) {
		name := filepath.Join(dir, []string{"", "a", "a/b"}[c.rng.IntN(3)], fmt.Sprint(i))
		switch c.rng.IntN(5) {
		case 0:
			_ = os.Symlink([]string{".", "..", "../..", fmt.Sprint(i), "/proc/self/root", "/dev/zero"}[c.rng.IntN(6)], name)
		case 1:
			_ = exec.Command("mkfifo", name).Run()
		case 2:
			_ = os.WriteFile(name, mutate(c.rng, c.seeds.guest), 0o700) // #nosec G306 -- it is a program
		case 3:
			_ = os.WriteFile(name+"\n\x1b[31m", random(c.rng, 100), 0o600)
		default:

			if f, err := os.Create(name); err == nil {
				_ = f.Truncate(int64(1) << (20 + c.rng.IntN(16)))
				_ = f.Close()
			}
		}
	}
	to := []string{"/data", "/tmp/x", "/dev/x", "/proc/x", "/", "/bin/busybox", "/tmp/../x"}[c.rng.IntN(7)]
	c.execOn("--file", dir+":"+to, "--", "/bin/busybox", "find", to)
}
