package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Names, times, users and the order of arguments are in no archive.
func TestArchivesAreTheSameTwice(t *testing.T) {
	for _, out := range []string{"a.tar.gz", "a.zip"} {
		t.Run(out, func(t *testing.T) {
			t.Setenv("SOURCE_DATE_EPOCH", "1764000000")
			var made [][]byte
			for _, order := range [][]string{{"one", "two"}, {"two", "one"}} {
				dir := t.TempDir()
				var files []string
				for _, name := range order {
					file := filepath.Join(dir, name)
					require.NoError(t, os.WriteFile(file, []byte(name), 0o600))
					files = append(files, file)
				}
				require.NoError(t, do(append([]string{"pack", filepath.Join(dir, out), "folder"}, files...)))
				b, err := os.ReadFile(filepath.Join(dir, out))
				require.NoError(t, err)
				made = append(made, b)
			}
			require.Equal(t, made[0], made[1])
		})
	}
}

func TestArchiveNeedsTheTimeOfTheCommit(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "")
	require.ErrorContains(t, do([]string{"pack", "x.tar.gz", "folder", "main.go"}), "SOURCE_DATE_EPOCH")
}

// Each blob of the image has the name of its checksum, all are reached from the index, and the user is not root.
func TestImageIsWholeAndNotRoot(t *testing.T) {
	list, err := layout([]entry{{"home", 0o755, nil, user}, {"usr/bin/kprobelab", 0o755, []byte("program"), 0}}, "1.0.0", time.Unix(1764000000, 0).UTC())
	require.NoError(t, err)
	files := map[string][]byte{}
	for _, e := range list {
		files[e.name] = e.text
		if name, ok := strings.CutPrefix(e.name, "blobs/sha256/"); ok {
			require.Equal(t, name, sum(e.text))
		}
	}
	blob := func(d descriptor) []byte {
		text := files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		require.Len(t, text, d.Size)
		return text
	}
	var i index
	require.NoError(t, json.Unmarshal(files["index.json"], &i))
	var m manifest
	require.NoError(t, json.Unmarshal(blob(i.Manifests[0]), &m))
	var c config
	require.NoError(t, json.Unmarshal(blob(m.Config), &c))
	require.Equal(t, "65532:65532", c.Config.User)
	require.NotEmpty(t, blob(m.Layers[0]))
	var plain bytes.Buffer
	require.NoError(t, tarred(&plain, []entry{{"home", 0o755, nil, user}, {"usr/bin/kprobelab", 0o755, []byte("program"), 0}}, time.Unix(1764000000, 0).UTC()))
	require.Equal(t, []string{"sha256:" + sum(plain.Bytes())}, c.RootFS.DiffIDs)
	for r := tar.NewReader(&plain); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.Empty(t, h.Uname+h.Gname)
	}
}

// The files of the linker's map are static archives; what the build itself made is not among them.
func TestStaticArchivesOfALinkersMap(t *testing.T) {
	files, err := linked(strings.NewReader("Archive member included\nLOAD /tmp/go-link-1/go.o\nLOAD /nosuch/lib/../lib/libc.a\nLOAD /nosuch/libunicorn.a\nLOAD /nosuch/lib/libc.a\nSTART GROUP\nLOAD relative.o\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"/nosuch/lib/libc.a", "/nosuch/libunicorn.a"}, files)
}

// unicornIn makes a folder as scripts/unicorn.sh does.
func unicornIn(t *testing.T, source string) (dir, file string) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	file = filepath.Join(dir, "lib", "libunicorn.a")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "lib"), 0o700))
	for name, text := range map[string]string{file: "", filepath.Join(dir, "source"): source, filepath.Join(dir, "copyright"): "the terms of Unicorn"} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	return dir, file
}

const unicornModule = "github.com/unicorn-engine/unicorn"

// The exact source is known or the release fails: another archive of that name, as Debian's is, has another source.
func TestSourceOfUnicorn(t *testing.T) {
	dir, file := unicornIn(t, unicornModule+" v0.0.0-2025\n")
	a, err := sourceOf(file, dir)
	require.NoError(t, err)
	require.Equal(t, archive{file, unicornModule, "v0.0.0-2025", unicornMaker}, a)
	_, err = sourceOf("/nosuch/libunicorn.a", dir)
	require.ErrorContains(t, err, "its source cannot be shipped")
	dir, file = unicornIn(t, "")
	_, err = sourceOf(file, dir)
	require.ErrorContains(t, err, "nothing says which source it was built from")
}

// What is linked and has no known source or licence fails: it cannot be shipped.
func TestArchiveWithoutASourceFails(t *testing.T) {
	_, err := sourceOf("/nosuch/libother.a", t.TempDir())
	require.ErrorContains(t, err, "its source cannot be shipped")
	unicorn, _ := unicornIn(t, "")
	file := filepath.Join(t.TempDir(), "list")
	for _, c := range []struct{ line, want string }{
		{"libother.a\tother\t1.0", "is not a file, its source, a version and a package"},
		{"libother.a\tother\t1.0\t" + unicornMaker, "the licence of other"},
		{"libc.a\tglibc\t2.36-9\tlibnosuch-dev", "the text of the licences of libnosuch-dev"},
		{"libunicorn.a\t" + unicornModule + "\tv0.0.0-2024\t" + unicornMaker, "is built from " + unicornModule + " v0.0.0-2024, and the program links v0.0.0-2025"},
	} {
		require.NoError(t, os.WriteFile(file, []byte(c.line+"\n"), 0o600))
		_, err = withStatic([]*part{{name: unicornModule, version: "v0.0.0-2025"}}, file, unicorn)
		require.ErrorContains(t, err, c.want)
	}
}

// Each source is a part once, with the texts of its licences: the Go module of Unicorn, too. The keys are beside the program, not in it.
func TestPartsOfStaticArchives(t *testing.T) {
	dir, _ := unicornIn(t, "")
	file := filepath.Join(t.TempDir(), "list")
	list := ""
	for _, line := range []string{"keys.gpg debian-archive-keyring 2023", "libc.a glibc 2.36-9", "libm.a glibc 2.36-9", "libgcc.a gcc-12 12.2.0-14", "libunicorn.a " + unicornModule + " v0.0.0-2025"} {
		list += strings.ReplaceAll(line, " ", "\t") + "\t" + unicornMaker + "\n"
	}
	require.NoError(t, os.WriteFile(file, []byte(list), 0o600))
	parts, err := withStatic([]*part{{name: unicornModule, version: "v0.0.0-2025"}}, file, dir)
	require.NoError(t, err)
	relations := map[string]string{}
	for _, p := range parts {
		require.Equal(t, []string{"the terms of Unicorn"}, p.texts)
		relations[p.name] = p.relation
	}
	require.Len(t, parts, len(relations))
	require.Equal(t, map[string]string{"debian-archive-keyring": "CONTAINS", "glibc": "STATIC_LINK", "gcc-12": "STATIC_LINK", unicornModule: ""}, relations)
}

// A runtime that unpacks a layer makes missing folders as it likes: each is in the layer, a home is its user's.
func TestFoldersOfALayer(t *testing.T) {
	require.Equal(t, []entry{{"usr/bin/x", 0o755, []byte("x"), 0}, {"home/k", 0o755, nil, user}, {"usr/bin", 0o755, nil, 0}, {"usr", 0o755, nil, 0}, {"home", 0o755, nil, 0}},
		withFolders([]entry{{"usr/bin/x", 0o755, []byte("x"), 0}, {"home/k", 0o755, nil, user}}))
}
