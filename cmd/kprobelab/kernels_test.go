package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/tinyarchive"
)

// The scripts about kernels have an archive as $MIRROR, with its key in $KEY, and packages of two vendors.
func TestScriptsOnKernels(t *testing.T) {
	if onWasm() {
		t.Skip("a program as WebAssembly has no network")
	}
	guest, err := os.ReadFile("../../testdata/guest.elf")
	require.NoError(t, err)
	runScripts(t, "testdata/kernels", func(e *testscript.Env) error {
		a, stop := tinyarchive.Serve()
		e.Defer(stop)
		deb := func(release string) *tinyarchive.Deb {
			return &tinyarchive.Deb{Name: "linux-image-" + release, Version: "6.1.9-1", Files: []tinyarchive.File{
				{Name: "./boot/vmlinuz-" + release, Data: strings.Repeat(string(guest), 1+1_500_000/len(guest))},
				{Name: "./boot/config-" + release, Data: "CONFIG_X=y\n"},
				{Name: "./lib/modules/" + release + "/a.ko", Data: "module"},
			}}
		}
		a.Suite("bookworm", deb("6.1.0-9-cloud-amd64"), deb("6.1.0-9-amd64"),
			&tinyarchive.Deb{Name: "linux-image-cloud-amd64", Version: "1", Fields: "Depends: linux-image-6.1.0-9-cloud-amd64\n"})
		e.Vars = append(e.Vars, "MIRROR="+a.URL, "KEY="+filepath.Join(e.WorkDir, "key.asc"), "HOME="+e.WorkDir, "XDG_CACHE_HOME="+filepath.Join(e.WorkDir, "cache"), "KPROBELAB_MIRROR=")
		hostile := &tinyarchive.Deb{Name: "evil", Version: "1", Files: []tinyarchive.File{{Name: "../../evil", Data: "x"}}}
		vendor := &tinyarchive.RPM{Name: "kernel-core", Version: "6.9.7", Release: "1.fc40", Format: "zst", Files: []tinyarchive.File{
			{Name: "./lib/modules/6.9.7-1.fc40.x86_64/vmlinuz", Data: string(guest)}}}
		modules := &tinyarchive.RPM{Name: "kernel-modules", Version: "6.9.7", Release: "1.fc40", Format: "gz", Files: []tinyarchive.File{
			{Name: "./lib/modules/6.9.7-1.fc40.x86_64/kernel/m.ko", Data: "m"}}}
		for name, b := range map[string][]byte{
			"key.asc": a.Key.Public(), "other.asc": tinyarchive.NewKey().Public(), "evil.deb": hostile.Bytes(), "cut.rpm": vendor.Bytes()[:3000],
			"core.rpm": vendor.Bytes(), "modules.rpm": modules.Bytes(), "guest.elf": guest,
		} {
			if err := os.WriteFile(filepath.Join(e.WorkDir, name), b, 0o600); err != nil {
				return err
			}
		}
		return nil
	})
}
