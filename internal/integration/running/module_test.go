package running

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/errno"
)

// built builds a module of testdata for the kernel, by kbuild and the kernel's own headers, as scripts/kernel-headers.sh leaves
// them. The test is skipped without them.
func built(t *testing.T, k *kernel, name string) []byte {
	release := strings.TrimSpace(k.shell("uname -r").out)
	headers, _ := filepath.Glob("../../../.cache/headers/" + release + "/usr/src/linux-headers-" + release)
	if len(headers) == 0 {
		t.Skip("no headers of " + release + ": scripts/kernel-headers.sh SUITE " + release + " fetches them")
	}
	dir, err := filepath.Abs(headers[0])
	require.NoError(t, err)
	src := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.CopyFS(src, os.DirFS("testdata/modules/"+name)))
	cmd := exec.Command("make", "-s", "-C", dir, "M="+src, "CC=gcc", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules")
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=", "LC_ALL=C")
	log, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("the module does not build here: %v\n%s", err, log)
	}
	code, err := os.ReadFile(filepath.Join(src, name+".ko"))
	require.NoError(t, err)
	return code
}

const folders = "for i in 1 2 3 4 5; do mkdir /tmp/d; rmdir /tmp/d; done"

// TestModules: a module loads at run time, its probes are hit, and it leaves nothing.
func TestModules(t *testing.T) {
	k := boot(t, "6.1")
	code := built(t, k, "planted")
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
