package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/debian"
)

const root = "../../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(text)
}

// The image fetches kernels by what is in it: the program reads the mirrors, and their key is the file that dist.sh puts there.
func TestImageHasMirrorsAndTheirKeys(t *testing.T) {
	list, err := debian.ReadSources(filepath.Join(root, "packaging", "debian.sources"))
	require.NoError(t, err)
	m := debian.Debian(list)
	script := read(t, "scripts/dist.sh")
	for _, s := range []*debian.Source{m.Main, m.Security} {
		require.NotNil(t, s)
		require.Len(t, s.Keys, 1)
		require.Contains(t, script, "\nkeys="+s.Keys[0]+"\n")
		require.True(t, strings.HasPrefix(s.URI, "http://"), "the image has no certificates: %s", s.URI)
	}
	require.Contains(t, script, `"$keys=${keys#/}" packaging/debian.sources=etc/apt/sources.list.d/debian.sources`)
}

// A program whose modules are not described would be given away without their licences.
func TestEverySystemThatIsBuiltIsDescribed(t *testing.T) {
	script := read(t, "scripts/dist.sh")
	built := map[string]bool{"linux/amd64": true}
	for _, m := range regexp.MustCompile(`(?m)^build (\w+) (\w+)$`).FindAllStringSubmatch(script, -1) {
		built[m[1]+"/"+m[2]] = true
	}
	described := map[string]bool{}
	for _, s := range systems {
		described[s.os+"/"+s.arch] = true
		require.Contains(t, script, s.os+"-"+s.arch, "it is built and not packed")
		require.Contains(t, read(t, "scripts/dist-test.sh"), s.os+"-"+s.arch, "it is packed and not tried")
		require.Contains(t, read(t, "docs/release.md"), s.os+"-"+s.arch)
	}
	require.Equal(t, built, described)
}

// The packages have files that dist.sh makes, under names that it sets.
func TestFilesOfThePackages(t *testing.T) {
	script := read(t, "scripts/dist.sh")
	text := read(t, "packaging/nfpm.yaml")
	for _, name := range regexp.MustCompile(`\$\{(\w+)\}`).FindAllStringSubmatch(text, -1) {
		require.Contains(t, script, name[1]+"=")
	}
	sources := regexp.MustCompile(`src: "\$\{DIST_WORK\}/([^"]+)"`).FindAllStringSubmatch(text, -1)
	require.Len(t, sources, strings.Count(text, "src:"))
	for _, name := range sources {
		if name[1] != "linux-amd64/kprobelab" && name[1] != "sbom.spdx.json" { // the linker and dist describe make these
			require.Contains(t, script, `>"$work/`+name[1]+`"`)
		}
	}
}

// The shell reads each script whole.
func TestScriptsAreRead(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh here")
	}
	for _, name := range []string{"dist.sh", "dist-sources.sh", "dist-roots.sh", "dist-test.sh", "unicorn.sh"} {
		out, err := exec.Command(sh, "-n", filepath.Join(root, "scripts", name)).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
	}
}

// A static program with Unicorn, as the command is: each archive in it has a source in an exact version, and the text of its licences.
func TestStaticArchivesHaveSources(t *testing.T) {
	if testing.Short() {
		t.Skip("links a program with all of Unicorn")
	}
	for _, tool := range []string{"gcc", "dpkg-query"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s here", tool)
		}
	}
	unicorn, err := filepath.Abs(filepath.Join(root, ".deps", "unicorn"))
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(unicorn, "lib", "libunicorn.a")); err != nil {
		t.Skip("there is no Unicorn in .deps: make deps")
	}
	dir := t.TempDir()
	// The archive of .deps in the place of the one that scripts/unicorn.sh builds.
	built := filepath.Join(dir, "unicorn")
	require.NoError(t, os.Mkdir(built, 0o700))
	require.NoError(t, os.Symlink(filepath.Join(unicorn, "lib"), filepath.Join(built, "lib")))
	for _, name := range []string{"source", "copyright"} {
		require.NoError(t, os.WriteFile(filepath.Join(built, name), []byte(unicornModule+" v0.0.0-2025\n"), 0o600))
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	program := "#include <unicorn/unicorn.h>\nint main(void) { uc_engine *uc; return uc_open(UC_ARCH_X86, UC_MODE_64, &uc); }\n"
	require.NoError(t, os.WriteFile(file("main.c"), []byte(program), 0o600))
	for _, args := range [][]string{
		{"-I" + unicorn + "/include", "-c", "main.c"},
		{"-static", "-Wl,-Map=map", "-o", "program", "main.o", "-L" + unicorn + "/lib", "-lunicorn", "-lpthread", "-lm"},
	} {
		cmd := exec.Command("gcc", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	var list strings.Builder
	require.NoError(t, printArchives(&list, file("map"), built, nil))
	require.NoError(t, os.WriteFile(file("list"), []byte(list.String()), 0o600))
	parts, err := withStatic([]*part{{name: unicornModule, version: "v0.0.0-2025"}}, file("list"), built)
	require.NoError(t, err)
	sources := map[string]bool{}
	for _, p := range parts {
		require.NotEmpty(t, strings.Join(p.texts, ""), p.name)
		require.NotEmpty(t, p.version, p.name)
		sources[gcc.ReplaceAllString(p.name, "gcc")] = true
	}
	require.Equal(t, map[string]bool{"glibc": true, "gcc": true, unicornModule: true}, sources, list.String())
	for _, name := range []string{"crt1.o", "libc.a", "libgcc.a", "libunicorn.a"} {
		require.Contains(t, list.String(), name+"\t")
	}
}
