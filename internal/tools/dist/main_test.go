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

// The exact package is known or the release fails: a version that starts alike has other bytes.
func TestSourceOfUnicorn(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "version"), []byte("2.1.1\n"), 0o600))
	_, err := sourceOf("/nosuch/libunicorn.a", dir)
	require.ErrorContains(t, err, "remove .deps")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "source"), []byte("unicorn-engine 2.1.1-2\n"), 0o600))
	a, err := sourceOf("/nosuch/libunicorn.a", dir)
	require.NoError(t, err)
	require.Equal(t, archive{"/nosuch/libunicorn.a", "unicorn-engine", "2.1.1-2", unicornPackage}, a)
}

// What is linked and has no known source or licence fails: it cannot be shipped.
func TestArchiveWithoutASourceFails(t *testing.T) {
	_, err := sourceOf("/nosuch/libother.a", t.TempDir())
	require.ErrorContains(t, err, "its source cannot be shipped")
	file := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(file, []byte("libother.a\tother\t1.0\n"), 0o600))
	_, err = staticParts(file, "")
	require.ErrorContains(t, err, "is not a file, its source, a version and a package")
	require.NoError(t, os.WriteFile(file, []byte("libother.a\tother\t1.0\tlibother-dev\n"), 0o600))
	_, err = staticParts(file, "")
	require.ErrorContains(t, err, "the licence of other")
	require.NoError(t, os.WriteFile(file, []byte("libc.a\tglibc\t2.36-9\tlibnosuch-dev\n"), 0o600))
	_, err = staticParts(file, "")
	require.ErrorContains(t, err, "the text of the licences of libnosuch-dev")
}

// Each source package is a part once, with the texts of its licences; the keys are beside the program, not in it.
func TestPartsOfStaticArchives(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "copyright"), []byte("the terms of Unicorn"), 0o600))
	file := filepath.Join(dir, "list")
	list := "keys.gpg\tdebian-archive-keyring\t2023\t" + unicornPackage + "\nlibc.a\tglibc\t2.36-9\t" + unicornPackage + "\nlibm.a\tglibc\t2.36-9\t" + unicornPackage +
		"\nlibgcc.a\tgcc-12\t12.2.0-14\t" + unicornPackage + "\nlibunicorn.a\tunicorn-engine\t2.1.1-2\t" + unicornPackage + "\n"
	require.NoError(t, os.WriteFile(file, []byte(list), 0o600))
	parts, err := staticParts(file, dir)
	require.NoError(t, err)
	relations := map[string]string{}
	for _, p := range parts {
		require.Equal(t, []string{"the terms of Unicorn"}, p.texts)
		relations[p.name] = p.relation
	}
	require.Equal(t, map[string]string{"debian-archive-keyring": "CONTAINS", "glibc": "STATIC_LINK", "gcc-12": "STATIC_LINK", "unicorn-engine": "STATIC_LINK"}, relations)
}

// A runtime that unpacks a layer makes missing folders as it likes: each is in the layer, a home is its user's.
func TestFoldersOfALayer(t *testing.T) {
	require.Equal(t, []entry{{"usr/bin/x", 0o755, []byte("x"), 0}, {"home/k", 0o755, nil, user}, {"usr/bin", 0o755, nil, 0}, {"usr", 0o755, nil, 0}, {"home", 0o755, nil, 0}},
		withFolders([]entry{{"usr/bin/x", 0o755, []byte("x"), 0}, {"home/k", 0o755, nil, user}}))
}
