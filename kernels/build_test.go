package kernels_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/internal/tinyarchive"
	"kprobelab/kernels"
)

// headersOf puts packages into the archive whose kbuild copies a .c file into a module, and has errors as gcc has them.
func headersOf(w *world, release, common string) {
	kbuild := "modules:\n\tcase $(M) in *\\ *) exit 1;; esac\n\t! grep error $(M)/*.c >&2\n\tfor f in $(M)/*.c; do cp $$f $${f%.c}.ko; done\n\ttest -e " +
		"$(COMMON)/Kconfig\n"
	place := "./usr/src/linux-headers-" + release
	w.Suite("bookworm",
		&tinyarchive.Deb{Name: "linux-headers-" + release, Version: "6.1.5-1", Fields: "Depends: " + common + " (= 6.1.5-1), linux-kbuild-6.1, gcc-12\n", Files: []file{
			{Name: place + "/Makefile", Data: "COMMON = /usr/src/" + common + "\nKBUILD_OUTPUT=/usr/src/x\n" + kbuild}, {Name: place + "/.kernelvariables", Data: "CC = $(X)gcc-99\n"},
		}},
		&tinyarchive.Deb{Name: common, Version: "6.1.5-1", Files: []file{{Name: "./usr/src/" + common + "/Kconfig"}}},
		&tinyarchive.Deb{Name: "linux-kbuild-6.1", Version: "6.1.5-1", Files: []file{{Name: "./usr/lib/linux-kbuild-6.1/tools/none"}}},
	)
}

// TestModulesAreBuilt: a module is built with the headers of the kernel's packages; its folder stays as it is.
func TestModulesAreBuilt(t *testing.T) {
	haveBuildTools(t)
	const release = "6.1.0-9-cloud-amd64"
	w := newWorld(t)
	headersOf(w, release, "linux-headers-6.1.0-9-common")
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "Makefile"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "probe.c"), []byte("code"), 0o600))
	require.NoError(t, os.Symlink("probe.c", filepath.Join(folder, "link")))
	for range 2 {
		name, code, err := w.open(t).BuildModule(t.Context(), release, folder)
		require.NoError(t, err)
		require.Equal(t, "probe.ko", name)
		require.Equal(t, "code", string(code))
	}
	require.Equal(t, 1, w.Asked("pool/linux-kbuild-6.1_6.1.5-1_amd64.deb"), "headers are kept")
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 3)
	_, err = w.open(t, func(o *kernels.Options) { o.Offline = true }).Headers(t.Context(), "6.1.0-10-cloud-amd64")
	require.ErrorIs(t, err, kernels.ErrOffline)
	_, err = w.open(t).Headers(t.Context(), "6.1.0-10-cloud-amd64")
	require.ErrorContains(t, err, "Debian has no headers of 6.1.0-10-cloud-amd64")
	_, err = w.open(t).Headers(t.Context(), "../x")
	require.ErrorIs(t, err, kernels.ErrKernel)
}

// TestModulesThatAreNotBuilt: what is wrong is one sentence, and nothing of the copy is left.
func TestModulesThatAreNotBuilt(t *testing.T) {
	haveBuildTools(t)
	const release = "6.1.0-9-cloud-amd64"
	for name, c := range map[string]struct {
		files map[string]string
		large string
		want  string
	}{
		"no_rules":     {map[string]string{"a.c": ""}, "", "has no Makefile and no Kbuild"},
		"error_in_it":  {map[string]string{"Kbuild": "", "a.c": "warning: x\na.c:5:1: error: unknown type\n"}, "", "make: exit status 2: a.c:5:1: error: unknown type"},
		"two_modules":  {map[string]string{"Makefile": "", "a.c": "", "b.c": ""}, "", "one module is needed, and these are built: [a.ko b.ko]"},
		"much":         {map[string]string{"Makefile": ""}, "disk", "has more than 64 MiB"},
		"no_such_name": {nil, "", "is no folder"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			headersOf(w, release, "linux-headers-6.1.0-9-common")
			t.Setenv("TMPDIR", t.TempDir())
			folder := filepath.Join(t.TempDir(), "module")
			if c.files != nil {
				require.NoError(t, os.Mkdir(folder, 0o700))
			}
			for file, text := range c.files {
				require.NoError(t, os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600))
			}
			if c.large != "" {
				require.NoError(t, os.WriteFile(filepath.Join(folder, c.large), nil, 0o600))
				require.NoError(t, os.Truncate(filepath.Join(folder, c.large), bounded.ModuleSources+1))
			}
			_, _, err := w.open(t).BuildModule(t.Context(), release, folder)
			require.ErrorIs(t, err, kernels.ErrBuild)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			left, err := os.ReadDir(os.Getenv("TMPDIR"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
	t.Setenv("PATH", "")
	_, _, err := newWorld(t).open(t).BuildModule(t.Context(), release, t.TempDir())
	require.ErrorContains(t, err, "make is not on PATH")
}

func haveBuildTools(t *testing.T) {
	t.Helper()
	for _, program := range []string{"make", "gcc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("no " + program + " here")
		}
	}
}
