package running

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/errno"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/kernels"
	"kprobelab/kprobestest"
	"kprobelab/x86"
)

// built builds the modules of a folder for the kernel, by kbuild and the kernel's own headers, as scripts/kernel-headers.sh
// leaves them, and returns a function that reads one. The test is skipped without them.
func built(t *testing.T, k *kernel, folder string) func(name string) []byte {
	release := strings.TrimSpace(k.shell("uname -r").out)
	headers, _ := filepath.Glob("../../../.cache/headers/" + release + "/usr/src/linux-headers-" + release)
	if len(headers) == 0 {
		t.Skip("no headers of " + release + ": scripts/kernel-headers.sh SUITE " + release + " fetches them")
	}
	dir, err := filepath.Abs(headers[0])
	require.NoError(t, err)
	src := filepath.Join(t.TempDir(), "modules")
	require.NoError(t, os.CopyFS(src, os.DirFS(folder)))
	cmd := exec.Command("make", "-s", "-C", dir, "M="+src, "CC=gcc", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules")
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=", "LC_ALL=C")
	log, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("the module does not build here: %v\n%s", err, log)
	}
	return func(name string) []byte {
		code, err := os.ReadFile(filepath.Join(src, name+".ko"))
		require.NoError(t, err)
		return code
	}
}

const folders = "for i in 1 2 3 4 5; do mkdir /tmp/d; rmdir /tmp/d; done"

// TestModules: a module loads at run time, its probes are hit, and it leaves nothing.
func TestModules(t *testing.T) {
	k := boot(t, "6.1")
	code := built(t, k, "testdata/modules/planted")("planted")
	ctx := context.Background()
	m, err := k.Load(ctx, "planted.ko", code, "")
	require.NoError(t, err)
	var places []string
	for _, p := range m.Probes {
		places = append(places, strings.Split(p.Place, "+")[0])
	}
	require.ElementsMatch(t, []string{"vfs_mkdir", "vfs_rmdir"}, places)
	r, err := k.Run(ctx, &booted.Session{Program: sh(folders, nil)})
	require.NoError(t, err)
	require.Zero(t, r.Code)
	_, err = k.Load(ctx, "planted.ko", code, "")
	require.ErrorIs(t, err, errno.EEXIST)
	require.EqualError(t, err, "the kernel does not load the module planted: file exists")
	j, err := m.Unload(ctx)
	require.NoError(t, err)
	require.True(t, j.Clean(), "%+v", j)
	require.Contains(t, j.Log[len(j.Log)-1], "planted: 5 hits")
	require.Equal(t, map[string][4]uint64{"vfs_mkdir": {5, 0, 0, 0}, "vfs_rmdir": {5, 5, 0, 0}}, hits(j))
	require.Empty(t, j.Untold)
	_, err = m.Unload(ctx)
	require.ErrorIs(t, err, errno.ENOENT)

	// The same with a probe that is left, and its next hit.
	k.restore()
	m, err = k.Load(ctx, "planted.ko", code, "forgets=1")
	require.NoError(t, err)
	j, err = m.Unload(ctx)
	require.NoError(t, err)
	require.False(t, j.Clean())
	require.Len(t, j.Left, 1)
	require.Contains(t, j.Left[0].Place, "vfs_mkdir+0x0")
	require.Contains(t, strings.Join(j.Changed, " "), "vfs_mkdir+0x")
	r, err = k.Run(ctx, &booted.Session{Program: sh(folders, nil)})
	if err == nil { // the program was killed, or the kernel panicked
		require.NotZero(t, r.Code)
	}
	require.Contains(t, strings.Join(r.Trouble, "\n"), "BUG: unable to handle page fault for address: ffffffffc0")
	require.Contains(t, m.Judge().Ran, "the kernel used memory of planted at planted+0x")
}

// hits are the counts of a judgement's probes, by function.
func hits(j *booted.Judgement) map[string][4]uint64 {
	all := map[string][4]uint64{}
	for _, p := range j.Probes {
		all[strings.Split(p.Place, "+")[0]] = [4]uint64{p.Hits, p.Returns, p.Missed, p.Exhausted}
	}
	return all
}

// TestJudgementsOfModules: what a module has taken and has not given back is told, and nothing of one that gave all back.
func TestJudgementsOfModules(t *testing.T) {
	k := boot(t, "6.1")
	code := built(t, k, "testdata/modules/planted")("planted")
	for _, c := range []struct {
		name, parameters string
		// after follows the calls before the module is unloaded: time for the optimizer's worker, or none.
		after            string
		hits             map[string][4]uint64
		left             int
		slots, optimized int
		memory           []string
	}{
		{"out_of_line", "at=5", "sleep 0.2", map[string][4]uint64{"vfs_mkdir": {5, 0, 0, 0}, "vfs_rmdir": {5, 5, 0, 0}}, 0, 0, 0, nil},
		{"out_of_line_left", "at=5 forgets=1", "sleep 0.2", map[string][4]uint64{"vfs_mkdir": {5, 0, 0, 0}, "vfs_rmdir": {5, 5, 0, 0}}, 1, 1, 1, nil},
		{"unloaded_at_once", "at=5", "sleep 0.2; echo 1 >/sys/kernel/rcu_expedited", map[string][4]uint64{"vfs_mkdir": {5, 0, 0, 0}, "vfs_rmdir": {5, 5, 0, 0}}, 0, 0, 0, nil},
		{"missed", "misses=1", "sleep 0.2", map[string][4]uint64{"vfs_mkdir": {5, 0, 0, 0}, "vfs_rmdir": {5, 5, 0, 0}, "kstrtoint": {0, 0, 5, 0}}, 0, 0, 0, nil},
		{"memory", "leaks=1", "sleep 0.2", map[string][4]uint64{"vfs_mkdir": {5, 0, 0, 0}, "vfs_rmdir": {5, 5, 0, 0}}, 0, 0, 0, []string{"kmalloc_trace 64", "vmalloc 5000", "__alloc_percpu 4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.name != "out_of_line_left" {
				t.Skip("one case is enough for make test")
			}
			k.restore()
			ctx := context.Background()
			m, err := k.Load(ctx, "planted.ko", code, c.parameters)
			require.NoError(t, err)
			_, err = k.Run(ctx, &booted.Session{Program: sh(folders+"; "+c.after, nil)})
			require.NoError(t, err)
			j, err := m.Unload(ctx)
			require.NoError(t, err)
			require.Equal(t, c.hits, hits(j))
			require.Len(t, j.Left, c.left)
			require.Equal(t, [2]int{c.slots, c.optimized}, [2]int{j.Slots, j.OptimizedSlots})
			var memory []string
			for _, a := range j.Memory {
				memory = append(memory, fmt.Sprintf("%s %d", a.By, a.Size))
			}
			require.ElementsMatch(t, c.memory, memory)
			require.Equal(t, c.left == 0 && c.memory == nil, j.Clean(), "%+v", j)
			require.Empty(t, j.Faults)
		})
	}
}

// TestFaultsOfModules: each fault has its name.
func TestFaultsOfModules(t *testing.T) {
	k := boot(t, "6.1")
	code := built(t, k, "../../../testdata/modules")
	for name, want := range map[string]string{
		"forgets_probe": "", "forgets_return": "", "init_fails": "",
		"sleeps": "sleeps", "unregisters_inside": "sleeps unregisters-inside", "registers_twice": "registered-twice", "blacklisted": "blacklisted", "frees_first": "freed-data",
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "sleeps" && name != "init_fails" {
				t.Skip("two faults are enough for make test")
			}
			k.restore()
			ctx := context.Background()
			m, err := k.Load(ctx, name+".ko", code(name), "")
			var j *booted.Judgement
			if err != nil {
				require.Contains(t, []string{"blacklisted", "init_fails"}, name, err)
				j = m.Judge()
			} else {
				_, err := k.Run(ctx, &booted.Session{Program: sh("hostname first", nil)})
				require.NoError(t, err)
				j, err = m.Unload(ctx)
				require.NoError(t, err)
			}
			var rules []string
			for _, f := range j.Faults {
				rules = append(rules, f.Rule)
			}
			slices.Sort(rules)
			require.Equal(t, want, strings.Join(rules, " "), "%+v", j.Faults)
			left := map[string]int{"forgets_probe": 1, "forgets_return": 1, "init_fails": 2}[name]
			require.Len(t, j.Left, left)
			require.False(t, j.Clean() && name != "blacklisted", "%+v", j)
		})
	}
}

// TestModprobe: a module of the kernel's package stays loaded, is loaded once, and leaves no file in the guest's memory.
func TestModprobe(t *testing.T) {
	k := boot(t, "6.1")
	code := built(t, k, "testdata/modules/planted")("planted")
	for range 2 {
		require.NoError(t, k.Modprobe(t.Context(), "planted", code, ""))
	}
	require.Equal(t, ended{out: "planted\n"}, k.shell("cut -d' ' -f1 /proc/modules; ls /lib/modules/kprobelab"))
	var refused *booted.ModuleError
	require.ErrorAs(t, k.Modprobe(t.Context(), "cut", code[:len(code)/2], ""), &refused)
	require.Equal(t, errno.ENOEXEC, refused.Errno)
}

// TestAPairOfThePackagesModule: veth of the kernel's own package makes a pair, and what one end sends the other receives.
func TestAPairOfThePackagesModule(t *testing.T) {
	store, err := kernels.Open(&kernels.Options{Offline: true})
	require.NoError(t, err)
	for _, name := range []string{"6.1", "5.10", "newest"} {
		t.Run(name, func(t *testing.T) {
			k := boot(t, name)
			loaded := 0
			err := store.ModuleFiles(t.Context(), k.Image.Release(), []string{"veth"}, func(name string, code []byte) error {
				loaded++
				return k.Modprobe(t.Context(), name, code, "")
			})
			if errors.Is(err, kernels.ErrKernel) || errors.Is(err, kernels.ErrOffline) {
				t.Skip("the package of the dump's kernel is not kept here (kprobelab exec --modprobe veth fetches it; CI has that of 6.1)")
			}
			require.NoError(t, err)
			require.NotZero(t, loaded)
			end := k.shell("cd /sys/class/net && echo veth*; cat veth0/operstate veth1/operstate")
			require.Equal(t, ended{out: "veth0 veth1\nup\nup\n"}, end)
			end = k.shell("n=/sys/class/net/veth1/statistics/rx_packets; before=$(cat $n); arping -c 2 -w 3 -I veth0 10.0.0.2 >/dev/null; expr $(cat $n) - $before")
			received, err := strconv.Atoi(strings.TrimSpace(end.out))
			require.NoError(t, err, end)
			require.GreaterOrEqual(t, received, 2)
		})
	}
}

// TestExecutedInstructions: each execution of a named instruction is seen once, on all processors, and after a restore.
func TestExecutedInstructions(t *testing.T) {
	for _, name := range []string{"6.1", "6.1.smp2", "5.10", "newest"} {
		t.Run(name, func(t *testing.T) {
			k := boot(t, name)
			at := k.Image.Lookup("__x64_sys_sethostname")
			require.Len(t, at, 1)
			for range 2 {
				var seen []uint64
				end := k.Machine.OnExecuted(func(regs *x86.PtRegs) { seen = append(seen, regs.IP) })
				require.True(t, k.Machine.ShowExecuted(at[0].Addr))
				require.Equal(t, ended{0, "", ""}, k.shell("hostname first; hostname second; hostname third"))
				require.Equal(t, slices.Repeat([]uint64{uint64(at[0].Addr)}, 3), seen)
				k.restore()
				end()
			}
			require.Equal(t, ended{0, "", ""}, k.shell("hostname first"))
		})
	}
}

// TestModulesThatAreRefused: the errno is the kernel's, and its log says why.
func TestModulesThatAreRefused(t *testing.T) {
	k := boot(t, "6.1")
	for name, c := range map[string]struct {
		code []byte
		err  errno.Errno
		log  string
	}{
		"another_kernels": {kprobelab.GuestModule(), errno.ENOEXEC, ""}, "no_module": {[]byte("text"), errno.ENOEXEC, ""}, "empty": {nil, errno.EINVAL, ""},
	} {
		_, err := k.Load(context.Background(), name+".ko.xz", c.code, "")
		require.ErrorIs(t, err, c.err, name)
		var m *booted.ModuleError
		require.ErrorAs(t, err, &m, name)
		require.Equal(t, name, m.Name)
		require.Contains(t, strings.Join(m.Log, "\n"), c.log, name)
		require.Equal(t, ended{0, "still here\n", ""}, k.shell("echo still here"), name)
	}
}

// TestModulesInATest: a test of one's own loads a module, works beside it, and gets its judgement.
func TestModulesInATest(t *testing.T) {
	k := boot(t, "6.1")
	file := filepath.Join(t.TempDir(), "planted.ko")
	require.NoError(t, os.WriteFile(file, built(t, k, "testdata/modules/planted")("planted"), 0o600))
	m := kprobestest.New(t, &kprobestest.Options{Image: runs.File(t, "6.1")})
	for want, parameters := range map[bool]string{true: "", false: "leaks=1"} {
		j := m.Module(file, parameters, func() {
			_, code := m.Exec("/bin/busybox", "sh", "-c", folders)
			require.Zero(t, code)
		})
		require.Equal(t, want, j.Clean(), "%+v", j)
		require.Equal(t, map[string][4]uint64{"vfs_mkdir": {5, 0, 0, 0}, "vfs_rmdir": {5, 5, 0, 0}}, hits(j))
	}
}
