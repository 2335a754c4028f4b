package hostfiles

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

const glibc = "/lib64/ld-linux-x86-64.so.2"

// usr is a tree as distributions have it now: /lib and /bin are links.
var usr = map[string]any{
	"lib": "->usr/lib", "lib64": "->usr/lib64", "bin": "->usr/bin",
	"usr/lib64/ld-linux-x86-64.so.2":       tiny{soname: "ld-linux-x86-64.so.2"},
	"usr/lib/x86_64-linux-gnu/libc.so.6":   tiny{soname: "libc.so.6", needed: []string{"ld-linux-x86-64.so.2"}},
	"usr/lib/x86_64-linux-gnu/libm.so.6":   tiny{soname: "libm.so.6", needed: []string{"libc.so.6"}},
	"usr/lib/x86_64-linux-gnu/liba.so.1":   "->liba.so.1.2",
	"usr/lib/x86_64-linux-gnu/liba.so.1.2": tiny{soname: "liba.so.1", needed: []string{"libm.so.6", "libc.so.6"}},
}

var (
	ld   = []string{"/lib64/ld-linux-x86-64.so.2->/usr/lib64/ld-linux-x86-64.so.2", "/usr/lib64/ld-linux-x86-64.so.2"}
	libc = []string{"/lib/x86_64-linux-gnu/libc.so.6->/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6"}
)

// TestLibraries: a library is found where ld.so finds it, in its order.
func TestLibraries(t *testing.T) {
	for name, c := range map[string]struct {
		files     map[string]any
		libraries []string
		want      []string
		missing   string
	}{
		"static":                   {files: map[string]any{"opt/p": tiny{}}},
		"default_folder":           {files: map[string]any{"opt/p": tiny{interpreter: glibc, needed: []string{"libc.so.6"}}}, want: append(ld[:2:2], libc...)},
		"library_of_a_library":     {files: map[string]any{"opt/p": tiny{interpreter: glibc, needed: []string{"liba.so.1"}}}, want: append(append(ld[:2:2], libc...), "/lib/x86_64-linux-gnu/liba.so.1->/usr/lib/x86_64-linux-gnu/liba.so.1.2", "/usr/lib/x86_64-linux-gnu/liba.so.1.2", "/lib/x86_64-linux-gnu/libm.so.6->/usr/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/x86_64-linux-gnu/libm.so.6")},
		"runpath_of_the_origin":    {files: map[string]any{"opt/p": tiny{needed: []string{"libx.so"}, runpath: "$ORIGIN/lib"}, "opt/lib/libx.so": tiny{}}, want: []string{"/opt/lib/libx.so"}},
		"origin_in_braces":         {files: map[string]any{"opt/p": tiny{needed: []string{"libx.so"}, runpath: "/none:${ORIGIN}/../x"}, "x/libx.so": tiny{}}, want: []string{"/x/libx.so"}},
		"origin_of_a_linked_name":  {files: map[string]any{"opt/p": "->real/p", "opt/real/p": tiny{needed: []string{"libx.so"}, runpath: "$ORIGIN"}, "opt/real/libx.so": tiny{}}, want: []string{"/opt/real/libx.so"}},
		"lib_token":                {files: map[string]any{"opt/p": tiny{needed: []string{"libx.so"}, runpath: "/opt/$LIB"}, "opt/lib/x86_64-linux-gnu/libx.so": tiny{}}, want: []string{"/opt/lib/x86_64-linux-gnu/libx.so"}},
		"runpath_is_not_inherited": {files: map[string]any{"opt/p": tiny{needed: []string{"libx.so"}, runpath: "$ORIGIN"}, "opt/libx.so": tiny{needed: []string{"liby.so"}}, "opt/liby.so": tiny{}}, missing: "/opt/libx.so needs the library liby.so, which is in none of "},
		"rpath_is_inherited":       {files: map[string]any{"opt/p": tiny{needed: []string{"libx.so"}, rpath: "$ORIGIN"}, "opt/libx.so": tiny{needed: []string{"liby.so"}}, "opt/liby.so": tiny{}}, want: []string{"/opt/libx.so", "/opt/liby.so"}},
		"runpath_hides_rpath":      {files: map[string]any{"opt/p": tiny{needed: []string{"libx.so"}, rpath: "/opt/a", runpath: "/opt/b"}, "opt/a/libx.so": tiny{}}, missing: "none of /opt/b, "},
		"rpath_before_the_path":    {files: map[string]any{"opt/p": tiny{needed: []string{"libx.so"}, rpath: "/opt/a"}, "opt/a/libx.so": tiny{}, "opt/b/libx.so": tiny{}}, libraries: []string{"/opt/b"}, want: []string{"/opt/a/libx.so"}},
		"path_before_runpath":      {files: map[string]any{"opt/p": tiny{needed: []string{"libx.so"}, runpath: "/opt/a"}, "opt/a/libx.so": tiny{}, "opt/b/libx.so": tiny{}}, libraries: []string{"/opt/b"}, want: []string{"/opt/b/libx.so"}},
		"name_with_a_slash":        {files: map[string]any{"opt/p": tiny{needed: []string{"/opt/a/libx.so"}}, "opt/a/libx.so": tiny{}}, want: []string{"/opt/a/libx.so"}},
		"name_with_a_slash_gone":   {files: map[string]any{"opt/p": tiny{needed: []string{"/opt/a/libx.so"}}}, missing: "/opt/p needs /opt/a/libx.so, which is not there"},
		"no_default_folders":       {files: map[string]any{"opt/p": tiny{interpreter: glibc, needed: []string{"libc.so.6"}, flags: uint64(elf.DF_1_NODEFLIB)}}, missing: "libc.so.6"},
		"another_architecture_is_passed_over": {files: map[string]any{
			"opt/p": tiny{needed: []string{"libx.so"}, runpath: "/opt/a:/opt/b"}, "opt/b/libx.so": tiny{},
			"opt/a/libx.so": tiny{change: func(b []byte) { b[18] = byte(elf.EM_386) }}}, want: []string{"/opt/b/libx.so"}},
		"text_is_passed_over":            {files: map[string]any{"opt/p": tiny{needed: []string{"libx.so"}, runpath: "/opt/a:/opt/b"}, "opt/a/libx.so": "INPUT(x)", "opt/b/libx.so": tiny{}}, want: []string{"/opt/b/libx.so"}},
		"loaded_by_its_soname":           {files: map[string]any{"opt/p": tiny{needed: []string{"/opt/libx-1.so", "libx.so"}}, "opt/libx-1.so": tiny{soname: "libx.so"}}, want: []string{"/opt/libx-1.so"}},
		"libraries_that_need_each_other": {files: map[string]any{"opt/p": tiny{needed: []string{"libx.so"}, rpath: "/opt"}, "opt/libx.so": tiny{needed: []string{"liby.so"}}, "opt/liby.so": tiny{needed: []string{"libx.so"}}}, want: []string{"/opt/libx.so", "/opt/liby.so"}},
		"packages_without_the_links": {files: map[string]any{"opt/p": tiny{interpreter: "/lib32/ld.so", needed: []string{"/sbin/x.so"}}, "usr/lib32/ld.so": tiny{}, "usr/sbin/x.so": tiny{}},
			want: []string{"/lib32/ld.so->/usr/lib32/ld.so", "/usr/lib32/ld.so", "/sbin/x.so->/usr/sbin/x.so", "/usr/sbin/x.so"}},
		"musl": {files: map[string]any{"opt/p": tiny{interpreter: "/lib/ld-musl-x86_64.so.1", needed: []string{"libc.musl-x86_64.so.1", "libz.so.1"}},
			"usr/lib/ld-musl-x86_64.so.1": tiny{}, "usr/lib/libz.so.1": tiny{}}, want: []string{"/lib/ld-musl-x86_64.so.1->/usr/lib/ld-musl-x86_64.so.1", "/lib/libz.so.1->/usr/lib/libz.so.1", "/usr/lib/ld-musl-x86_64.so.1", "/usr/lib/libz.so.1"}},
		"interpreter_gone":      {files: map[string]any{"opt/p": tiny{interpreter: "/lib/ld.so"}}, missing: "/opt/p needs /lib/ld.so, which is not there"},
		"links_do_not_lead_out": {files: map[string]any{"opt/p": tiny{needed: []string{"libx.so"}, runpath: "/opt"}, "opt/libx.so": "->../../../../../../../../x/libx.so", "x/libx.so": tiny{}}, want: []string{"/opt/libx.so->/x/libx.so", "/x/libx.so"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			lay(t, root, usr)
			lay(t, root, c.files)
			s := &Set{Root: root, Libraries: c.libraries}
			path, err := s.Program("/opt/p")
			if c.missing != "" {
				require.ErrorContains(t, err, c.missing)
				require.ErrorIs(t, err, ErrProgram)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "/opt/p", path)
			own := []string{"/opt/p"}
			if name == "origin_of_a_linked_name" {
				own = []string{"/opt/p->/opt/real/p", "/opt/real/p"}
			}
			require.ElementsMatch(t, append(own, c.want...), taken(s))
		})
	}
}

// TestProgramsThatCannotBeRun: each gets a sentence that says why.
func TestProgramsThatCannotBeRun(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o755))
	lay(t, dir, map[string]any{
		"folder/x": "", "empty": "", "text": "hello\n", "relative": "#!bin/sh\n", "none": "#!/none/of that name\n",
		"long": "#!/" + strings.Repeat("x", 300), "a": "#!" + dir + "/b\n", "b": "#!" + dir + "/a\n", "loop": "->loop", "env": "#!/usr/bin/env none-of-that-name\n",
		"cut": string(tiny{}.bytes()[:40]), "headers_cut": string(tiny{}.bytes()[:80]),
		"arm": tiny{change: func(b []byte) { b[18] = byte(elf.EM_AARCH64) }}, "old": tiny{change: func(b []byte) { b[18] = byte(elf.EM_386) }},
		"sparc": tiny{change: func(b []byte) { binary.LittleEndian.PutUint16(b[18:], uint16(elf.EM_SPARCV9)) }},
		"s390":  tiny{change: func(b []byte) { b[5] = 2; binary.BigEndian.PutUint16(b[18:], uint16(elf.EM_S390)) }},
		"x32":   tiny{change: func(b []byte) { b[4] = 1 }}, "object": tiny{change: func(b []byte) { b[16] = byte(elf.ET_REL) }},
		"core": tiny{change: func(b []byte) { b[16] = byte(elf.ET_CORE) }}, "no_segments": tiny{change: func(b []byte) { b[56] = 0 }},
		"plain": tiny{},
	})
	require.NoError(t, os.Chmod(filepath.Join(dir, "plain"), 0o644))
	for name, want := range map[string]string{
		"folder": "it is a folder, no file", "pipe": "it is a pipe, no file", "empty": "it is empty", "text": "it is neither an ELF program nor a script with #! in its first line",
		"relative": `its first line names "bin/sh", no absolute path`, "none": "needs /none/of, which is not there", "long": "its first line has more than 256 bytes",
		"a": "more than 5 scripts name each other", "loop": "too many levels of symbolic links", "env": "its first line: none-of-that-name: it cannot be run: executable file not found in $PATH",
		"cut": "its ELF header is cut off", "headers_cut": "its program headers are cut off", "arm": "it is built for 64-bit ARM, the kernel is x86-64",
		"old": "it is built for 32-bit x86", "sparc": "it is built for another architecture (EM_SPARCV9)", "s390": "it is built for s390", "x32": "it is a program of the x32 ABI",
		"object": "it is an object file, which has to be linked first", "core": "its ELF type is ET_CORE", "no_segments": "it has no program headers",
		"plain": "it is not executable (chmod +x)", "absent": "no such file",
	} {
		_, err := (&Set{}).Program(filepath.Join(dir, name))
		require.ErrorIs(t, err, ErrProgram, name)
		require.ErrorContains(t, err, want, name)
		require.NotContains(t, err.Error(), "\n", name)
	}
	_, err := (&Set{}).Program("")
	require.ErrorIs(t, err, ErrProgram)
}

// TestDamagedPrograms: no damage of a program's bytes makes the reader do more than fail.
func TestDamagedPrograms(t *testing.T) {
	good := tiny{interpreter: glibc, needed: []string{"libc.so.6"}, soname: "x", runpath: "/x"}.bytes()
	dir := t.TempDir()
	for at := range good {
		for _, v := range []byte{0, 0x7f, 0xff} {
			b := append([]byte(nil), good...)
			b[at] = v
			file := filepath.Join(dir, "p")
			require.NoError(t, os.WriteFile(file, b, 0o755))
			_, err := (&Set{Root: dir}).Program("/p")
			if err != nil {
				require.True(t, errors.Is(err, ErrProgram), "byte %d = %#x: %v", at, v, err)
			}
		}
	}
}

func TestScripts(t *testing.T) {
	root := t.TempDir()
	lay(t, root, usr)
	lay(t, root, map[string]any{
		"usr/bin/sh": "->dash", "usr/bin/dash": tiny{interpreter: glibc, needed: []string{"libc.so.6"}}, "usr/bin/env": tiny{}, "usr/bin/tool": tiny{},
		"opt/plain": "#! /bin/sh -e\n", "opt/env": "#!/usr/bin/env -S A=b tool -x\n", "opt/second": "#!/opt/plain\n",
	})
	shell := append([]string{"/bin/sh->/usr/bin/dash", "/usr/bin/dash"}, append(ld[:2:2], libc...)...)
	for name, want := range map[string][]string{
		"plain": append(shell[:6:6], "/opt/plain"), "second": append(shell[:6:6], "/opt/plain", "/opt/second"), "env": {"/usr/bin/env", "/usr/bin/tool", "/opt/env"},
	} {
		s := &Set{Root: root}
		_, err := s.Program("/opt/" + name)
		require.NoError(t, err, name)
		require.ElementsMatch(t, want, taken(s), name)
	}
}

// TestAdd: a folder brings the libraries of the files in it. A library is added even if one that it needs is missing.
func TestAdd(t *testing.T) {
	dir := t.TempDir()
	lay(t, dir, map[string]any{"d/data": "x", "d/plugin.so": tiny{needed: []string{"libx.so"}, runpath: "$ORIGIN/../x"}, "x/libx.so": tiny{}, "d/odd.so": tiny{needed: []string{"none.so"}}, "d/link": "->data"})
	s := &Set{}
	require.NoError(t, s.Add(filepath.Join(dir, "d"), "/g"))
	require.ElementsMatch(t, []string{"/g/data", "/g/plugin.so", "/g/odd.so", "/g/link->data", filepath.Join(dir, "x/libx.so")}, taken(s))
	require.Error(t, s.Add(filepath.Join(dir, "none"), "/g"))
	require.ErrorContains(t, s.Add(dir, "g"), "no absolute path of the guest")
}

// TestPlacesOfTheKernel: a program in a folder that the guest's kernel has comes to /tmp.
func TestPlacesOfTheKernel(t *testing.T) {
	require.Equal(t, "/tmp/prog", guestPath("/dev/shm/build/prog"))
	require.Equal(t, "/tmp/3", guestPath("/proc/self/fd/3"))
	require.Equal(t, "/devel/prog", guestPath("/devel/prog"))
}

func TestLinksWithoutEnd(t *testing.T) {
	root := t.TempDir()
	files := map[string]any{"l0": tiny{}}
	for i := range bounded.GuestLinks + 1 {
		files[fmt.Sprint("l", i+1)] = "->" + fmt.Sprint("l", i)
	}
	lay(t, root, files)
	_, err := tree(root).real(fmt.Sprint("/l", bounded.GuestLinks))
	require.NoError(t, err)
	_, err = tree(root).real(fmt.Sprint("/l", bounded.GuestLinks+1))
	require.ErrorIs(t, err, syscall.ELOOP)
}

func TestSetsThatAreTooLarge(t *testing.T) {
	s := &Set{}
	require.NoError(t, s.put(File{Path: "/a", Size: bounded.GuestBytes}))
	require.NoError(t, s.put(File{Path: "/a", Size: bounded.GuestBytes}), "the same again")
	require.ErrorContains(t, s.put(File{Path: "/b", Size: 1}), "the files have more than 2048 MiB with /b")
	require.ErrorContains(t, (&Set{}).put(File{Path: "/" + strings.Repeat("x", bounded.GuestPath)}), "4096 bytes; 4095 are possible")
}

func TestProgramsThatNeedMuch(t *testing.T) {
	_, err := readObject(strings.NewReader(string(tiny{needed: make([]string, 1)}.bytes())))
	require.NoError(t, err)
	many := make([]string, bounded.Libraries+1)
	for i := range many {
		many[i] = "l"
	}
	_, err = readObject(strings.NewReader(string(tiny{needed: many}.bytes())))
	require.ErrorContains(t, err, "it needs more than 4096 libraries")
	_, err = readObject(strings.NewReader(string(tiny{change: func(b []byte) { binary.LittleEndian.PutUint64(b[64+56+32:], bounded.DynamicSection+1) }}.bytes())))
	require.ErrorContains(t, err, "its dynamic section: 1048577 bytes; 1048576 are possible")
	_, err = piece(strings.NewReader(""), 0, bounded.DynamicStrings+1, bounded.DynamicStrings)
	require.ErrorContains(t, err, "are possible")
}

func TestLibraryCache(t *testing.T) {
	entry := func(b []byte, flags, key, value uint32, hwcap uint64) []byte {
		for _, v := range []uint32{flags, key, value, 0} {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return binary.LittleEndian.AppendUint64(b, hwcap)
	}
	b := append([]byte(newCache), 3, 0, 0, 0)
	b = append(b, make([]byte, newHeader-len(b))...)
	const at = newHeader + 3*newEntry
	b = entry(b, flagsX8664, at, at+8, 0)
	b = entry(b, 3, at, at+8, 0)
	b = entry(b, flagsX8664, at, at+8, 1<<62)
	good := append(b[:at:at], "libx.so\x00/opt/libx.so\x00"...)
	require.Equal(t, map[string][]string{"libx.so": {"/opt/libx.so"}}, readCache(good))
	old := append(append([]byte(oldCache), 1, 0, 0, 0), make([]byte, 12+4)...)
	require.Equal(t, map[string][]string{"libx.so": {"/opt/libx.so"}}, readCache(append(old, good...)))
	for n := range good {
		readCache(good[:n])
	}
	binary.LittleEndian.PutUint32(good[20:], 1<<31)
	require.Empty(t, readCache(good))
	binary.LittleEndian.PutUint32(old[12:], 1<<31)
	require.Empty(t, readCache(append(old, good...)))
}
