//go:build linux && amd64

package main

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mounts mounts a file system, uses it, and takes it away.
func mounts(kind, data string) func(calls, string) {
	return func(c calls, dir string) {
		c.err("mkdir", os.Mkdir(dir+"m", 0o755))
		err := unix.Mount("none", dir+"m", kind, 0, data)
		c.err("mount", err)
		if err != nil {
			return
		}
		c.err("remount", unix.Mount("none", dir+"m", kind, unix.MS_REMOUNT|unix.MS_NOATIME, data))
		files(c, dir+"m/f")
		naming(c, dir+"m/")
		l, err := os.ReadDir(dir + "m")
		c.err(fmt.Sprint("readdir ", len(l) > 0), err)
		_, err = os.ReadFile("/proc/self/mountinfo")
		c.err("mountinfo", err)
		c.err("umount", unix.Unmount(dir+"m", 0))
	}
}

// mountWorkloads mount file systems and use them.
var mountWorkloads = map[string]func(calls, string){
	"mount_tmpfs":   mounts("tmpfs", "size=1m"),
	"mount_ramfs":   mounts("ramfs", ""),
	"mount_proc":    mounts("proc", "hidepid=2"),
	"mount_sysfs":   mounts("sysfs", ""),
	"mount_mqueue":  mounts("mqueue", ""),
	"mount_devpts":  mounts("devpts", "newinstance"),
	"mount_huge":    mounts("hugetlbfs", ""),
	"mount_bpf":     mounts("bpf", ""),
	"mount_cgroup2": mounts("cgroup2", ""),
	"mount_debugfs": mounts("debugfs", ""),
	"mount_pstore":  mounts("pstore", ""),
	"mount_configs": mounts("configfs", ""),
	"cgroups": func(c calls, dir string) {
		root := dir + "cg"
		c.err("mkdir", os.Mkdir(root, 0o755))
		c.err("mount", unix.Mount("none", root, "cgroup2", 0, ""))
		b, err := os.ReadFile(root + "/cgroup.controllers")
		c.err("controllers", err)
		for _, k := range strings.Fields(string(b)) {
			c.err("+"+k, os.WriteFile(root+"/cgroup.subtree_control", []byte("+"+k), 0))
		}
		c.err("mkdir", os.Mkdir(root+"/a", 0o755))
		l, err := os.ReadDir(root + "/a")
		c.err("readdir", err)
		for _, e := range l {
			text, err := os.ReadFile(root + "/a/" + e.Name())
			if err == nil && strings.Contains(e.Name(), "max") {
				_ = os.WriteFile(root+"/a/"+e.Name(), text, 0)
			}
		}
		c.err("attach", os.WriteFile(root+"/a/cgroup.procs", []byte("0"), 0))
		files(c, dir+"f")
		m, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		c.err("mmap", err)
		for i := 0; i < len(m); i += 4096 {
			m[i] = 1
		}
		c.err("back", os.WriteFile(root+"/cgroup.procs", []byte("0"), 0))
		c.err("freeze", os.WriteFile(root+"/a/cgroup.freeze", []byte("1"), 0))
		c.err("rmdir", os.Remove(root+"/a"))
		c.err("umount", unix.Unmount(root, unix.MNT_DETACH))
	},
	"new_mounts": func(c calls, dir string) {
		c.err("unshare", unix.Unshare(unix.CLONE_NEWNS))
		fd, err := unix.Fsopen("tmpfs", 0)
		c.err("fsopen", err)
		name := []byte("size\x00")
		value := []byte("1m\x00")
		c.raw("fsconfig", unix.SYS_FSCONFIG, uintptr(fd), 1, uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&value[0])), 0)
		c.raw("create", unix.SYS_FSCONFIG, uintptr(fd), 6, 0, 0, 0)
		m, err := unix.Fsmount(fd, 0, 0)
		c.err("fsmount", err)
		c.err("mkdir", os.Mkdir(dir+"x", 0o755))
		c.err("move", unix.MoveMount(m, "", unix.AT_FDCWD, dir+"x", unix.MOVE_MOUNT_F_EMPTY_PATH))
		c.err("bind", unix.Mount(dir+"x", dir+"x", "", unix.MS_BIND|unix.MS_REC, ""))
		c.err("private", unix.Mount("", dir+"x", "", unix.MS_PRIVATE|unix.MS_REC, ""))
		t, err := unix.OpenTree(unix.AT_FDCWD, dir+"x", unix.OPEN_TREE_CLONE)
		c.err("open_tree", err)
		_ = unix.Close(t)
		c.err("umount", unix.Unmount(dir+"x", unix.MNT_DETACH))
	},
}
