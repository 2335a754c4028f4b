package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/debian"
	"kprobelab/internal/download"
	"kprobelab/internal/qemu"
	"kprobelab/kernels"
)

// whole is a machine on which all works.
func whole() *Facts {
	return &Facts{
		System: "linux", Arch: "amd64", Static: true, Libc: "2.36", Engine: "Unicorn 2.1.1", Unicorn: true, CPUs: 2, Memory: 8 << 30,
		Folder: "/home/u/.cache/kprobelab", Free: 20 << 30, Kernels: 1, Dumps: 1, Headers: 1, Mirror: "http://deb.debian.org/debian", QEMU: "10.0.2", Shell: true,
	}
}

// Each thing that can be missing: the line that says so, its state and next command, and the jobs that it keeps from.
func TestWhatIsMissing(t *testing.T) {
	denied := &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrPermission}
	noFetch := fmt.Errorf("%w: %w, and qemu: %w", qemu.ErrNone, errors.New("not in $PATH"), kernels.ErrOffline)
	for name, c := range map[string]struct {
		change func(f *Facts)
		check  string
		state  State
		what   string
		next   string
		cannot string
	}{
		"engine_fails":         {func(f *Facts) { f.EngineErr = errors.New("no memory") }, "engine", Missing, "does not run the guest kernel: no memory", nextEngine, "run, exec, mount"},
		"engine_in_go":         {func(f *Facts) { f.Engine, f.Unicorn = "Go", false }, "engine", Short, "booted kernels run slower than on Unicorn", nextEngine, ""},
		"old_glibc":            {func(f *Facts) { f.Libc = "2.31" }, "program", Short, "glibc 2.31 is older than 2.34", "make build-nocgo", ""},
		"no_glibc":             {func(f *Facts) { f.Libc = "" }, "program", OK, "linux/amd64, static", "", ""},
		"dynamic":              {func(f *Facts) { f.Static = false }, "program", OK, "with the system's glibc 2.36", "", ""},
		"one_cpu":              {func(f *Facts) { f.CPUs = 1 }, "machine", OK, "1 CPU", "", ""},
		"wsl2":                 {func(f *Facts) { f.Kind, f.Running = "WSL2", denied }, "image", Short, "WSL2 has no image", nextImage, ""},
		"container":            {func(f *Facts) { f.Kind, f.Running = "container (Docker)", denied }, "image", Short, "a container has no image", nextImage, ""},
		"closed_boot":          {func(f *Facts) { f.Running = denied }, "image", Short, "permission denied", nextImage, ""},
		"little_memory":        {func(f *Facts) { f.Memory = 300 << 20 }, "memory", Short, "300 MiB free", "more memory", ""},
		"no_home":              {func(f *Facts) { f.FolderErr = errors.New("HOME is not set") }, "folder", Missing, "HOME is not set", nextFolder, "kernels fetch, boot, exec --build"},
		"no_home_and_no_dump":  {func(f *Facts) { f.FolderErr, f.Dumps = errors.New("HOME is not set"), 0 }, "folder", Missing, "HOME is not set", nextFolder, "kernels fetch, boot, exec, exec --build"},
		"little_room":          {func(f *Facts) { f.Free = 5 << 20 }, "folder", Short, "5 MiB free", "kernels remove", ""},
		"no_dump":              {func(f *Facts) { f.Dumps = 0 }, "kernels", Later, "1 kept, 0 of them booted", "kprobelab kernels boot 6.12", ""},
		"no_dump_no_network":   {func(f *Facts) { f.Dumps, f.NetworkErr = 0, errors.New("none") }, "kernels", Missing, "0 of them booted", nextImport, "kernels fetch"},
		"no_network":           {func(f *Facts) { f.NetworkErr = errors.New("network is unreachable") }, "network", Missing, "network is unreachable", "kernels import", "kernels fetch"},
		"offline":              {func(f *Facts) { f.Offline = true }, "network", OK, "not asked", "", ""},
		"no_mirror":            {func(f *Facts) { f.MirrorErr = kernels.ErrMirror }, "network", Missing, "no mirror of Debian's", "KPROBELAB_MIRROR", "kernels fetch"},
		"no_keys":              {func(f *Facts) { f.KeysErr = debian.ErrKeys }, "keys", Missing, "no keys", "debian-archive-keyring", "kernels fetch"},
		"qemu_can_be_fetched":  {func(f *Facts) { f.QEMUErr, f.Dumps = noFetch, 0 }, "qemu", Later, "fetched when it is needed", "kprobelab kernels qemu", ""},
		"no_qemu_no_network":   {func(f *Facts) { f.QEMUErr, f.NetworkErr = noFetch, errors.New("none") }, "qemu", Missing, "none can be fetched", "kernels import", "kernels fetch, boot"},
		"no_qemu_no_shell":     {func(f *Facts) { f.QEMUErr, f.Shell = noFetch, false }, "qemu", Missing, "no /bin/sh", "KPROBELAB_QEMU", "boot"},
		"no_kvm":               {func(f *Facts) { f.KVMErr = fs.ErrNotExist }, "kvm", OK, "nothing here needs it", "", ""},
		"no_fuse":              {func(f *Facts) { f.MountErr = errors.New("cannot mount: /dev/fuse is not there") }, "mount", Missing, "/dev/fuse is not there", "kprobelab run -e", "mount"},
		"no_user_namespace":    {func(f *Facts) { f.NamespaceErr = syscall.EPERM }, "userns", OK, "no command needs them", "", ""},
		"no_compiler":          {func(f *Facts) { f.Missing = []string{"gcc", "make"} }, "compiler", Missing, "gcc and make cannot be found", "apt-get install gcc make", "exec --build"},
		"headers_come":         {func(f *Facts) { f.Headers = 0 }, "headers", Later, "fetched when", "", ""},
		"no_headers_no_keys":   {func(f *Facts) { f.Headers, f.KeysErr = 0, debian.ErrKeys }, "headers", Missing, "none can be fetched", nextKeys, "kernels fetch, exec --build"},
		"no_headers_no_mirror": {func(f *Facts) { f.Headers, f.NetworkErr = 0, errors.New("none") }, "headers", Missing, "none can be fetched", "kernels import", "kernels fetch, exec --build"},
	} {
		t.Run(name, func(t *testing.T) {
			f := whole()
			c.change(f)
			r := f.Report()
			found := false
			for _, is := range r.Checks {
				if is.Name != c.check {
					continue
				}
				found = true
				require.Equal(t, c.state, is.State)
				require.Contains(t, is.What, c.what)
				require.Contains(t, is.Next, c.next)
				require.Equal(t, c.next == "", is.Next == "")
			}
			require.True(t, found)
			var cannot []string
			for _, a := range r.Abilities {
				require.Equal(t, a.Can, len(a.Lacks) == 0)
				if !a.Can {
					cannot = append(cannot, a.Commands[0])
				}
			}
			require.Equal(t, c.cannot, strings.Join(cannot, ", "))
			require.Equal(t, f.EngineErr == nil, r.Works)
		})
	}
}

// Whatever is missing has a next command, and nothing is said of a machine on which all works.
func TestEveryMissingThingHasANextCommand(t *testing.T) {
	bad := errors.New("bad")
	f := &Facts{System: "linux", Arch: "amd64", EngineErr: bad, Libc: "2.28", Running: bad, FolderErr: bad, MirrorErr: kernels.ErrMirror, QEMUErr: bad, KVMErr: bad, MountErr: bad, NamespaceErr: bad, Missing: []string{"gcc"}}
	for _, c := range f.Report().Checks {
		if c.State != OK {
			require.NotEmpty(t, c.Next, c.Name)
		}
	}
	for _, c := range whole().Report().Checks {
		require.Equal(t, OK, c.State, c.Name)
		require.Empty(t, c.Next, c.Name)
	}
}

// The report as it is printed.
func TestReportAsText(t *testing.T) {
	f := whole()
	f.MountErr, f.Dumps = errors.New("cannot mount: /dev/fuse\x1b is not there"), 0
	var b strings.Builder
	require.NoError(t, f.Report().WriteText(&b))
	require.Equal(t, `ok       program   linux/amd64, static
ok       engine    Unicorn 2.1.1
ok       machine   2 CPUs
ok       memory    8192 MiB free
ok       image     the running kernel's image can be read
ok       folder    /home/u/.cache/kprobelab, 20 GiB free
later    kernels   1 kept, 0 of them booted
                    next: kprobelab kernels boot 6.12
ok       network   http://deb.debian.org/debian answers
ok       keys      the signatures of the archive can be checked
ok       qemu      QEMU 10.0.2
ok       kvm       /dev/kvm is there; nothing here needs it
missing  mount     cannot mount: /dev/fuse\u001b is not there
                    next: `+nextMount+`
ok       userns    user namespaces can be made; no command needs them
ok       compiler  gcc and make
ok       headers   of 1 kernels

this machine can
  probe functions and programs    run, explain, check, scan, stap, bpftrace, uprobe  yes
  fetch kernels                   kernels fetch                                      yes
  boot kernels                    boot, kernels boot                                 yes
  run programs on booted kernels  exec, run DUMP                                     yes
  build modules                   exec --build                                       yes
  mount tracing files             mount                                              no: mount
`, b.String())
}

// An error of a first run has a next command; the first cause counts.
func TestNextAfterErrors(t *testing.T) {
	for want, err := range map[string]error{
		nextRoom:    &fs.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC},
		nextFolder:  fmt.Errorf("%w: mkdir /x: permission denied", kernels.ErrFolder),
		nextQEMU:    fmt.Errorf("%w: not in $PATH, and %w", qemu.ErrNone, download.ErrAnswer),
		nextNetwork: fmt.Errorf("x: %w", download.ErrAnswer),
		nextKeys:    debian.ErrKeys,
		nextMirror:  kernels.ErrMirror,
		nextOffline: kernels.ErrOffline,
		nextMemory:  fmt.Errorf("/x does not fit into the guest's memory: %w", errno.ENOSPC),
		"":          errors.New("another"),
	} {
		require.Equal(t, want, Next(err))
	}
	require.Empty(t, Next(nil))
	require.Empty(t, Next(errno.EROFS), "a folder of the guest's")
	require.Empty(t, Next(&fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}), "the output is the user's own")
}
