package doctor

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"kprobelab/internal/bounded"
	"kprobelab/internal/mount"
)

var hostNexts = []class{{mount.ErrNoFUSE, nextMount}}

func (f *Facts) lookAtHost() {
	f.Static = static("/proc/self/exe")
	f.Libc = libc("/")
	f.Kind = kind("/", os.Getenv)
	f.Memory = memory("/")
	f.MountErr = mount.Supported()
	f.KVMErr = unix.Access("/dev/kvm", unix.R_OK|unix.W_OK)
	f.NamespaceErr = namespace()
}

// static reports whether an ELF file asks for no interpreter.
func static(file string) bool {
	e, err := elf.Open(file)
	if err != nil {
		return false
	}
	defer e.Close()
	return !slices.ContainsFunc(e.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

var libcVersion = regexp.MustCompile(`GNU C Library[^\n]* version ([0-9]+\.[0-9]+)`)

// libc is the version of the glibc below root, "" if there is none.
func libc(root string) string {
	for _, pattern := range []string{"lib/*-linux-gnu/libc.so.6", "usr/lib/*-linux-gnu/libc.so.6", "lib64/libc.so.6"} {
		names, _ := filepath.Glob(filepath.Join(root, pattern))
		for _, name := range names {
			b, err := bounded.ReadFile(name, bounded.Configuration)
			if m := libcVersion.FindSubmatch(b); err == nil && m != nil {
				return string(m[1])
			}
		}
	}
	return ""
}

// kind tells a machine of WSL2 and a container from others.
func kind(root string, env func(string) string) string {
	read := func(name string) string {
		b, _ := bounded.ReadFile(filepath.Join(root, name), bounded.Configuration)
		return string(b)
	}
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	}
	switch {
	case strings.Contains(strings.ToLower(read("proc/sys/kernel/osrelease")), "microsoft"):
		return "WSL2"
	case there(".dockerenv"):
		return "container (Docker)"
	case there("run/.containerenv"):
		return "container (Podman)"
	case env("KUBERNETES_SERVICE_HOST") != "":
		return "container (Kubernetes)"
	case env("container") != "":
		return "container (" + env("container") + ")"
	}
	return ""
}

// memory returns the bytes that a process can still take: the free memory, or the rest of its control group's limit.
func memory(root string) uint64 {
	b, err := bounded.ReadFile(filepath.Join(root, "proc/meminfo"), bounded.Configuration)
	if err != nil {
		return 0
	}
	var free uint64
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			n, _ := strconv.ParseUint(strings.Fields(rest + " 0")[0], 10, 64)
			free = n << 10
		}
	}
	number := func(name string) (uint64, bool) {
		b, err := bounded.ReadFile(filepath.Join(root, "sys/fs/cgroup", name), bounded.Configuration)
		n, bad := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
		return n, err == nil && bad == nil
	}
	limit, limited := number("memory.max")
	used, known := number("memory.current")
	if limited && known {
		free = min(free, limit-min(used, limit))
	}
	return free
}

// namespace makes a user namespace with a mount namespace in it, for a moment. A system may allow the first,
// and refuse the second. No program is started.
func namespace() error {
	_, err := syscall.ForkExec("/proc/self/nothing", []string{"nothing"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS}})
	if errors.Is(err, syscall.ENOENT) { // of the program: the namespace was made before it
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) {
		return errors.New("user.max_user_namespaces is reached")
	}
	return fmt.Errorf("the system refuses one: %w", err)
}

func freeSpace(folder string) uint64 {
	var st unix.Statfs_t
	if unix.Statfs(folder, &st) != nil {
		return 0
	}
	return uint64(st.Bavail) * uint64(st.Bsize)
}
