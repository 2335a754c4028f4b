package kernels_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/tinyarchive"
	"kprobelab/kernels"
)

type file = tinyarchive.File

// image stands for one that is larger than what only names another.
var image = strings.Repeat("an image, not packed", 60_000)

// kernelDeb is a package of a kernel as Debian has it.
func kernelDeb(release, version string, more ...file) *tinyarchive.Deb {
	return &tinyarchive.Deb{Name: "linux-image-" + release, Version: version, Files: append([]file{
		{Name: "./boot/vmlinuz-" + release, Data: image + version}, {Name: "./boot/config-" + release, Data: "CONFIG_X=y\n"},
		{Name: "./lib/modules/" + release + "/kernel/a.ko", Data: "module"},
		{Name: "./lib/modules/" + release + "/build", Type: tar.TypeSymlink, Target: "/usr/src/linux-headers-" + release},
	}, more...)}
}

func meta(release string) *tinyarchive.Deb {
	return &tinyarchive.Deb{Name: "linux-image-cloud-amd64", Version: "1", Fields: "Depends: linux-image-" + release + " (= 1)\n"}
}

// world is an archive, a system that uses it, and a store.
type world struct {
	*tinyarchive.Archive
	root, dir string
	said      bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	a, stop := tinyarchive.Serve()
	t.Cleanup(stop)
	w := &world{Archive: a, root: t.TempDir(), dir: filepath.Join(t.TempDir(), "cache")}
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(w.root, "home"))
	t.Setenv("KPROBELAB_MIRROR", "")
	w.write(t, "usr/share/keyrings/debian-archive-keyring.gpg", string(a.Key.Public()))
	w.write(t, "etc/apt/sources.list", "deb "+a.URL+" bookworm main\n")
	w.write(t, "etc/os-release", "ID=debian\nVERSION_CODENAME=bookworm\n")
	return w
}

func (w *world) write(t *testing.T, name, text string) {
	t.Helper()
	name = filepath.Join(w.root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

func (w *world) open(t *testing.T, change ...func(*kernels.Options)) *kernels.Store {
	t.Helper()
	o := &kernels.Options{Dir: w.dir, Root: w.root, Say: &w.said}
	for _, c := range change {
		c(o)
	}
	s, err := kernels.Open(o)
	require.NoError(t, err)
	return s
}

// nothingLeft fails where the store has more than indexes and locks.
func (w *world) nothingLeft(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(w.dir); os.IsNotExist(err) {
		return
	}
	require.NoError(t, filepath.WalkDir(w.dir, func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(w.dir, name)
		if err == nil && !d.IsDir() && !strings.HasPrefix(rel, "index/") && !strings.HasPrefix(rel, "locks/") {
			t.Errorf("%s is left", rel)
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".new-") {
			t.Errorf("%s is left", rel)
		}
		return err
	}))
}

const release = "6.1.0-1-cloud-amd64"

func TestFetch(t *testing.T) {
	w := newWorld(t)
	w.Suite("bookworm", kernelDeb(release, "6.1.1-1"), kernelDeb("6.1.0-1-amd64", "6.1.1-1"), kernelDeb("6.1.0-2-rt-amd64", "6.1.2-1"), meta(release))
	w.Suite("trixie", kernelDeb("6.12.9+deb13-cloud-amd64", "6.12.9-1"), kernelDeb("6.1.0-0-cloud-amd64", "6.1.0-1"), meta("6.12.9+deb13-cloud-amd64"))
	w.Suite("experimental", kernelDeb("9.0-cloud-amd64", "9.0-1"))
	s := w.open(t)
	for word, want := range map[string]string{
		"": release, release: release, "6.1": release, "6.12": "6.12.9+deb13-cloud-amd64", "trixie": "6.12.9+deb13-cloud-amd64", "newest": "6.12.9+deb13-cloud-amd64",
		"6.1/rt-amd64": "6.1.0-2-rt-amd64", "6.1/amd64": "6.1.0-1-amd64", "9.0": "9.0-cloud-amd64", "6.1.0": release,
	} {
		t.Run("word_"+word, func(t *testing.T) {
			got, err := s.Resolve(t.Context(), word)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
	for _, word := range []string{"6.2", "5", "6.1/none", "../x", "sid", "6.1.0-9-cloud-amd64", "bookworm/rt-amd64", "x y", "6.1.0-1-cloud-amd64/../..", "-"} {
		t.Run("not_"+word, func(t *testing.T) {
			_, err := s.Fetch(t.Context(), word)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	k, err := s.Fetch(t.Context(), "6.1")
	require.NoError(t, err)
	require.Equal(t, release, k.Release)
	for path, want := range map[string]string{k.Image: image + "6.1.1-1", k.Configuration: "CONFIG_X=y\n"} {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(b))
	}
	require.Equal(t, tinyarchive.Sum([]byte(image+"6.1.1-1")), k.SHA256)
	require.Empty(t, k.Modules)
	require.NoFileExists(t, filepath.Join(w.dir, "parts", k.Packaged), "what was unpacked goes")

	pool := "pool/linux-image-" + release + "_6.1.1-1_amd64.deb"
	again, err := w.open(t).Fetch(t.Context(), "bookworm")
	require.NoError(t, err)
	require.Equal(t, []string{"bookworm/cloud-amd64"}, again.Suites)
	again.Suites = nil
	require.Equal(t, k, again)
	require.Equal(t, 1, w.Asked(pool), "it was there")

	_, err = s.FetchModules(t.Context(), k)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(k.Modules, "kernel", "a.ko"))
	require.NoFileExists(t, filepath.Join(k.Modules, "build"))

	list, err := s.Available(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"9.0-cloud-amd64", "6.12.9+deb13-cloud-amd64", "6.1.0-2-rt-amd64", release, "6.1.0-1-amd64", "6.1.0-0-cloud-amd64"}, list)

	offline := w.open(t, func(o *kernels.Options) { o.Offline = true })
	got, err := offline.Fetch(t.Context(), release)
	require.NoError(t, err)
	require.Equal(t, release, got.Release)
	_, err = offline.Fetch(t.Context(), "6.12")
	require.ErrorIs(t, err, kernels.ErrOffline)

	gone, err := s.Remove(release)
	require.NoError(t, err)
	require.Len(t, gone, 1)
	_, err = s.Remove(release)
	require.ErrorIs(t, err, kernels.ErrKernel)
	w.nothingLeft(t)
}

// Rule: every word that fetches a kernel finds the same kernel afterwards without a network, by Find and by Fetch, also where the index
// is gone or the archive is another one; so it does in what another store has imported.
func TestWordsThatFetchAreFoundOffline(t *testing.T) {
	of := func(suite, release string) *tinyarchive.Deb {
		return &tinyarchive.Deb{Name: "linux-image-" + suite, Version: "1", Fields: "Depends: linux-image-" + release + " (= 1)\n"}
	}
	memory := make([]byte, 100_000) // what packs too well is refused
	_, err := rand.NewChaCha8([32]byte{}).Read(memory)
	require.NoError(t, err)
	const trixie, backports = "6.12.9+deb13-cloud-amd64", "7.3.4+deb13-cloud-amd64"
	for word, want := range map[string]string{
		"": release, "bookworm": release, "6.1": release, release: release, "trixie": trixie, "trixie/cloud-amd64": trixie, "6.12": trixie, trixie: trixie,
		"trixie/rt-amd64": "6.12.8+deb13-rt-amd64", "trixie-backports": backports, "newest": backports, "7.3": backports, "7.3.4": backports, "experimental": "9.0-cloud-amd64",
	} {
		t.Run("word_"+word, func(t *testing.T) {
			w := newWorld(t)
			w.Suite("bookworm", kernelDeb(release, "6.1.1-1"), of("cloud-amd64", release))
			w.Suite("trixie", kernelDeb(trixie, "6.12.9-1"), kernelDeb("6.12.8+deb13-rt-amd64", "6.12.8-1"), of("cloud-amd64", trixie), of("rt-amd64", "6.12.8+deb13-rt-amd64"))
			w.Suite("trixie-backports", kernelDeb(backports, "7.3.4-1"), of("cloud-amd64", backports))
			w.Suite("experimental", kernelDeb("9.0-cloud-amd64", "9.0-1"), of("cloud-amd64", "9.0-cloud-amd64"))
			if word != "experimental" && word != "newest" && word != want { // another one is there, too
				_, err := w.open(t).Fetch(t.Context(), "experimental")
				require.NoError(t, err)
			}
			k, err := w.open(t).Fetch(t.Context(), word)
			require.NoError(t, err)
			require.Equal(t, want, k.Release)
			found := func(what string, change ...func(*kernels.Options)) {
				s := w.open(t, append(change, func(o *kernels.Options) { o.Offline = true })...)
				got, err := s.Fetch(t.Context(), word)
				require.NoError(t, err, what)
				require.Equal(t, k, got, what)
				got, err = s.Find(word)
				require.NoError(t, err, what)
				require.Equal(t, k, got, what)
			}
			found("with the index")
			found("another archive", func(o *kernels.Options) { o.Mirror = "http://127.0.0.1:9/debian" })
			require.NoError(t, os.RemoveAll(filepath.Join(w.dir, "index")))
			found("without the index")
			got, err := w.open(t).Find(word) // --offline is not said
			require.NoError(t, err)
			require.Equal(t, k, got)

			here := w.open(t)
			require.NoError(t, here.SaveDump(t.Context(), k, kernels.DefaultMachine, func(name string) error { return os.WriteFile(name, memory, 0o600) }))
			name := filepath.Join(t.TempDir(), "one.kernel")
			f, err := os.Create(name)
			require.NoError(t, err)
			require.NoError(t, errors.Join(here.Export(t.Context(), k, f), f.Close()))
			elsewhere := w.open(t, func(o *kernels.Options) { o.Dir, o.Offline = t.TempDir(), true })
			_, err = elsewhere.Import(t.Context(), name)
			require.NoError(t, err)
			got, err = elsewhere.Find(word)
			require.NoError(t, err)
			require.Equal(t, k.Release, got.Release)
		})
	}
	t.Run("fetched_by_another_word", func(t *testing.T) {
		w := newWorld(t)
		w.Suite("trixie", kernelDeb(trixie, "6.12.9-1"), of("cloud-amd64", trixie))
		k, err := w.open(t).Fetch(t.Context(), "6.12")
		require.NoError(t, err)
		got, err := w.open(t, func(o *kernels.Options) { o.Offline = true }).Fetch(t.Context(), "trixie")
		require.NoError(t, err)
		require.Equal(t, k.Release, got.Release)
		_, err = w.open(t, func(o *kernels.Options) { o.Offline = true }).Fetch(t.Context(), "bookworm")
		require.ErrorIs(t, err, kernels.ErrOffline)
	})
	t.Run("the_suite_goes_on", func(t *testing.T) {
		w := newWorld(t)
		w.Suite("trixie", kernelDeb(trixie, "6.12.9-1"), of("cloud-amd64", trixie))
		_, err := w.open(t).Fetch(t.Context(), "trixie")
		require.NoError(t, err)
		const next = "6.12.10+deb13-cloud-amd64"
		w.Suite("trixie", kernelDeb(trixie, "6.12.9-1"), kernelDeb(next, "6.12.10-1"), of("cloud-amd64", next))
		k, err := w.open(t, func(o *kernels.Options) { o.Refresh = true }).Fetch(t.Context(), "trixie")
		require.NoError(t, err)
		require.Equal(t, next, k.Release)
		got, err := w.open(t, func(o *kernels.Options) { o.Offline = true }).Find("trixie")
		require.NoError(t, err)
		require.Equal(t, next, got.Release)
	})
}

// A release that was built again is another kernel; the newer one is meant.
func TestBuildsOfARelease(t *testing.T) {
	w := newWorld(t)
	w.Suite("bookworm", kernelDeb(release, "6.1.9-1"))
	first, err := w.open(t).Fetch(t.Context(), release)
	require.NoError(t, err)
	w.Suite("bookworm", kernelDeb(release, "6.1.10-1"))
	second, err := w.open(t, func(o *kernels.Options) { o.Refresh = true }).Fetch(t.Context(), release)
	require.NoError(t, err)
	require.NotEqual(t, first.Dir, second.Dir)
	list, err := w.open(t).Kept()
	require.NoError(t, err)
	require.Len(t, list, 2)
	found, err := w.open(t).Find(release)
	require.NoError(t, err)
	require.Equal(t, second, found)
}

// From 6.19 on, the image is in a package of its own, and its configuration in another.
func TestPackagesOfNewKernels(t *testing.T) {
	w := newWorld(t)
	const release = "7.3.4+deb13-cloud-amd64"
	w.Suite("bookworm",
		&tinyarchive.Deb{Name: "linux-image-" + release, Version: "1", Fields: "Depends: linux-binary-" + release + "\n"},
		&tinyarchive.Deb{Name: "linux-binary-" + release, Version: "1", Format: "", Files: []file{{Name: "./usr/lib/modules/" + release + "/vmlinuz", Data: image}}},
		&tinyarchive.Deb{Name: "linux-base-" + release, Version: "1", Format: "xz", Files: []file{{Name: "./usr/lib/modules/" + release + "/config", Data: "CONFIG_Y=y\n"}}},
		&tinyarchive.Deb{Name: "linux-modules-" + release, Version: "1", Files: []file{{Name: "./usr/lib/modules/" + release + "/a.ko", Data: image}}},
		&tinyarchive.Deb{Name: "linux-image-" + release + "-dbg", Version: "1", Files: []file{
			{Name: "./usr/lib/debug/lib/modules/" + release + "/vmlinux", Data: image}, {Name: "./usr/lib/debug/boot/vmlinux-" + release, Type: tar.TypeSymlink, Target: "../lib/modules/" + release + "/vmlinux"}}},
	)
	s := w.open(t)
	k, err := s.Fetch(t.Context(), release)
	require.NoError(t, err)
	b, err := os.ReadFile(k.Configuration)
	require.NoError(t, err)
	require.Equal(t, "CONFIG_Y=y\n", string(b))
	_, err = s.FetchModules(t.Context(), k)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(k.Modules, "a.ko"))
	name, err := s.Debuginfo(t.Context(), k)
	require.NoError(t, err)
	st, err := os.Lstat(name)
	require.NoError(t, err)
	require.True(t, st.Mode().IsRegular())
}

func TestHostileArchives(t *testing.T) {
	pool := "pool/linux-image-" + release + "_6.1.1-1_amd64.deb"
	for name, c := range map[string]struct {
		do   func(*testing.T, *world)
		want string
	}{
		"truncated_package": {func(t *testing.T, w *world) { b := w.Get(pool); w.Put(pool, b[:len(b)/2]) }, "it is not the file that the index names"},
		"changed_package": {func(t *testing.T, w *world) {
			b := bytes.Clone(w.Get(pool))
			b[len(b)/2] ^= 1
			w.Put(pool, b)
		}, "it is not the file that the index names"},
		"longer_package": {func(t *testing.T, w *world) { w.Put(pool, append(bytes.Clone(w.Get(pool)), "x"...)) }, "it is not the file that the index names"},
		"no_package":     {func(t *testing.T, w *world) { w.Put(pool, nil); w.Put("x", nil) }, "it is not the file that the index names"},
		"unsigned_index": {func(t *testing.T, w *world) {
			w.Put("dists/bookworm/InRelease", []byte("Suite: stable\nCodename: bookworm\nSHA256:\n"))
		}, "its signature is not good"},
		"index_by_another_key": {func(t *testing.T, w *world) {
			w.Put("dists/bookworm/InRelease", tinyarchive.Sign("Suite: stable\nCodename: bookworm\n", tinyarchive.NewKey()))
		}, "not among the known ones"},
		"changed_index": {func(t *testing.T, w *world) {
			w.Put("dists/bookworm/InRelease", bytes.Replace(w.Get("dists/bookworm/InRelease"), []byte("Origin: Debian"), []byte("Origin: Nobody"), 1))
		}, "not the one that was signed"},
		"index_of_another_suite": {func(t *testing.T, w *world) { w.Put("dists/bookworm/InRelease", w.Get("dists/trixie/InRelease")) }, "not of bookworm"},
		"index_that_is_old": {func(t *testing.T, w *world) {
			w.Put("dists/bookworm/InRelease", tinyarchive.Sign("Suite: stable\nCodename: bookworm\nValid-Until: Sat, 01 Jan 2000 00:00:00 UTC\nSHA256:\n "+strings.Repeat("00", 32)+" 1 x\n", w.Key))
		}, "it was valid until 2000-01-01"},
		"changed_list": {func(t *testing.T, w *world) {
			w.Put("dists/bookworm/main/binary-amd64/Packages.gz", tinyarchive.Pack("gz", []byte("Package: linux-image-x\n")))
		}, "it is not the file that the index names"},
		"release_without_signature": {func(t *testing.T, w *world) {
			w.Put("dists/bookworm/InRelease", nil)
			w.Hide("dists/bookworm/InRelease")
			w.Put("dists/bookworm/Release", []byte("Suite: stable\nCodename: bookworm\n"))
		}, "its signature is not good: there is none"},
		"no_suite": {func(t *testing.T, w *world) { w.Hide("dists/bookworm/InRelease") }, "has no suite bookworm"},
		"path_upwards": {func(t *testing.T, w *world) {
			w.Suite("bookworm", kernelDeb(release, "6.1.1-1", file{Name: "../../../evil", Data: "x"}), meta(release))
		}, "leads upwards"},
		"absolute_path": {func(t *testing.T, w *world) {
			w.Suite("bookworm", kernelDeb(release, "6.1.1-1", file{Name: "/tmp/evil", Data: "x"}), meta(release))
		}, "is absolute"},
		"image_is_a_link": {func(t *testing.T, w *world) {
			d := kernelDeb(release, "6.1.1-1")
			d.Files[0] = file{Name: "./boot/vmlinuz-" + release, Type: tar.TypeSymlink, Target: "/etc/passwd"}
			d.Files = append(d.Files, file{Name: "fill", Data: image})
			w.Suite("bookworm", d, meta(release))
		}, "has no image of"},
		"device": {func(t *testing.T, w *world) {
			w.Suite("bookworm", kernelDeb(release, "6.1.1-1", file{Name: "dev/sda", Type: tar.TypeBlock}), meta(release))
		}, "neither a file, a folder nor a link"},
		"bomb": {func(t *testing.T, w *world) {
			d := kernelDeb(release, "6.1.1-1")
			d.Format = "gz"
			d.Files[0].Data = string(make([]byte, 32<<20))
			d.Files = append(d.Files, file{Name: "fill", Data: noise(2_500_000)})
			w.Suite("bookworm", d, meta(release))
		}, "unpacks to more than 100 times its size"},
		"no_image": {func(t *testing.T, w *world) {
			d := kernelDeb(release, "6.1.1-1")
			d.Files[0].Name = "./boot/other"
			w.Suite("bookworm", d, meta(release))
		}, "has no image"},
		"no_deb": {func(t *testing.T, w *world) {
			d := kernelDeb(release, "6.1.1-1")
			w.Suite("bookworm", d, meta(release))
			w.Replace("bookworm", d, []byte(image))
		}, "it is no .deb"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Suite("bookworm", kernelDeb(release, "6.1.1-1"), meta(release))
			w.Suite("trixie", kernelDeb(release, "6.1.1-1"), meta(release))
			c.do(t, w)
			_, err := w.open(t).Fetch(t.Context(), "bookworm")
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			w.nothingLeft(t)
		})
	}
}

// noise does not pack.
func noise(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(tinyarchive.Sum(fmt.Append(nil, i)))
	}
	return b.String()
}

// A connection that breaks off is gone on with, by the next process too.
func TestFetchGoesOn(t *testing.T) {
	w := newWorld(t)
	w.Suite("bookworm", kernelDeb(release, "6.1.1-1"), meta(release))
	s := w.open(t)
	_, err := s.Resolve(t.Context(), "bookworm")
	require.NoError(t, err)
	w.Cut(500_000)
	ctx, cancel := context.WithCancel(t.Context())
	interrupted := w.open(t, func(o *kernels.Options) {
		o.Progress = func(_ string, done, _ int64) {
			if done >= 400_000 {
				cancel()
			}
		}
	})
	_, err = interrupted.Fetch(ctx, "bookworm")
	require.ErrorIs(t, err, context.Canceled)
	first := int64(-1)
	k, err := w.open(t, func(o *kernels.Options) {
		o.Progress = func(stage string, done, _ int64) {
			if first < 0 && strings.HasPrefix(stage, "linux-image-") {
				first = done
			}
		}
	}).Fetch(t.Context(), "bookworm")
	require.NoError(t, err)
	require.GreaterOrEqual(t, first, int64(400_000), "it began anew")
	require.Equal(t, release, k.Release)
}

func TestTwoProcessesFetchOnce(t *testing.T) {
	w := newWorld(t)
	w.Suite("bookworm", kernelDeb(release, "6.1.1-1"), meta(release))
	var all sync.WaitGroup
	for range 4 {
		s, err := kernels.Open(&kernels.Options{Dir: w.dir, Root: w.root}) // each as another process has it
		require.NoError(t, err)
		all.Go(func() {
			k, err := s.Fetch(t.Context(), "bookworm")
			require.NoError(t, err)
			require.Equal(t, release, k.Release)
		})
	}
	all.Wait()
	require.Equal(t, 1, w.Asked("pool/linux-image-"+release+"_6.1.1-1_amd64.deb"))
	require.Equal(t, 1, w.Asked("dists/bookworm/InRelease"))
}

func TestWhereKernelsComeFrom(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*testing.T, *world, *kernels.Options)
		want string // of the error
	}{
		"system":     {func(*testing.T, *world, *kernels.Options) {}, ""},
		"no_sources": {func(t *testing.T, w *world, o *kernels.Options) { w.write(t, "etc/apt/sources.list", "") }, "apt's sources name no mirror"},
		"mirror": {func(t *testing.T, w *world, o *kernels.Options) {
			w.write(t, "etc/apt/sources.list", "")
			o.Mirror = w.URL
		}, ""},
		"other_scheme": {func(t *testing.T, w *world, o *kernels.Options) { o.Mirror = "ftp://a/debian" }, "no address of a mirror"},
		"no_address":   {func(t *testing.T, w *world, o *kernels.Options) { o.Mirror = "debian" }, "no address of a mirror"},
		"environment": {func(t *testing.T, w *world, o *kernels.Options) {
			w.write(t, "etc/apt/sources.list", "")
			t.Setenv("KPROBELAB_MIRROR", w.URL+"/")
		}, ""},
		"user_sources": {func(t *testing.T, w *world, o *kernels.Options) {
			w.write(t, "etc/apt/sources.list", "")
			w.write(t, "home/kprobelab/debian.sources", "Types: deb\nURIs: "+w.URL+"\nSuites: bookworm\nComponents: main\n")
		}, ""},
		"user_list": {func(t *testing.T, w *world, o *kernels.Options) {
			w.write(t, "etc/apt/sources.list", "")
			w.write(t, "home/kprobelab/debian.list", "deb "+w.URL+" sid main\n")
		}, ""},
		"no_keys": {func(t *testing.T, w *world, o *kernels.Options) {
			require.NoError(t, os.RemoveAll(filepath.Join(w.root, "usr")))
		}, "no keys to check signatures with"},
		"trusted_keys": {func(t *testing.T, w *world, o *kernels.Options) {
			require.NoError(t, os.RemoveAll(filepath.Join(w.root, "usr")))
			w.write(t, "etc/apt/trusted.gpg.d/a.asc", string(w.Key.Public()))
		}, ""},
		"given_keyring": {func(t *testing.T, w *world, o *kernels.Options) {
			require.NoError(t, os.RemoveAll(filepath.Join(w.root, "usr")))
			w.write(t, "k", string(w.Key.Public()))
			o.Keyrings = []string{filepath.Join(w.root, "k")}
		}, ""},
		"other_keyring": {func(t *testing.T, w *world, o *kernels.Options) {
			w.write(t, "k", string(tinyarchive.NewKey().Public()))
			o.Keyrings = []string{filepath.Join(w.root, "k")}
		}, "not among the known ones"},
		"signed_by": {func(t *testing.T, w *world, o *kernels.Options) {
			w.write(t, "k", string(w.Key.Public()))
			require.NoError(t, os.RemoveAll(filepath.Join(w.root, "usr")))
			w.write(t, "etc/apt/sources.list", "deb [signed-by="+filepath.Join(w.root, "k")+"] "+w.URL+" bookworm main\n")
		}, ""},
		"signed_by_none": {func(t *testing.T, w *world, o *kernels.Options) {
			w.write(t, "etc/apt/sources.list", "deb [signed-by=/none.gpg] "+w.URL+" bookworm main\n")
		}, "/none.gpg"},
		"beside":  {func(t *testing.T, w *world, o *kernels.Options) { w.Beside("bookworm") }, ""},
		"by_hash": {func(t *testing.T, w *world, o *kernels.Options) { w.ByHash("bookworm") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Suite("bookworm", kernelDeb(release, "6.1.1-1"), meta(release))
			o := &kernels.Options{Dir: w.dir, Root: w.root}
			c.do(t, w, o)
			s, err := kernels.Open(o)
			require.NoError(t, err)
			k, err := s.Fetch(t.Context(), "bookworm")
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				require.NotContains(t, err.Error(), "\n")
				return
			}
			require.NoError(t, err)
			require.Equal(t, release, k.Release)
		})
	}
}

// TestAnOldSuiteAmongOthers: kernels of the other suites are found, and the old one is said; alone it is an error.
func TestAnOldSuiteAmongOthers(t *testing.T) {
	w := newWorld(t)
	w.Suite("bookworm", kernelDeb(release, "6.1.1-1"), meta(release))
	w.Put("dists/trixie/InRelease", tinyarchive.Sign("Suite: testing\nCodename: trixie\nValid-Until: Sat, 01 Jan 2000 00:00:00 UTC\nSHA256:\n "+strings.Repeat("00", 32)+" 1 x\n", w.Key))
	s := w.open(t)
	got, err := s.Resolve(t.Context(), "6.1")
	require.NoError(t, err)
	require.Equal(t, release, got)
	require.Contains(t, w.said.String(), "kernels of trixie are not looked for: ")
	require.Contains(t, w.said.String(), "it was valid until 2000-01-01")
	_, err = s.Resolve(t.Context(), "trixie")
	require.ErrorContains(t, err, "it was valid until 2000-01-01")
	_, err = s.Resolve(t.Context(), "6.12")
	require.ErrorIs(t, err, kernels.ErrKernel)
}

// An index is used for a day, and fetched again with Refresh.
func TestIndexesAreKept(t *testing.T) {
	w := newWorld(t)
	w.Suite("bookworm", kernelDeb(release, "6.1.1-1"), meta(release))
	ask := func(change ...func(*kernels.Options)) {
		_, err := w.open(t, change...).Resolve(t.Context(), "bookworm")
		require.NoError(t, err)
	}
	ask()
	ask()
	require.Equal(t, 1, w.Asked("dists/bookworm/InRelease"))
	refreshed := w.open(t, func(o *kernels.Options) { o.Refresh = true })
	for range 2 {
		_, err := refreshed.Resolve(t.Context(), "bookworm")
		require.NoError(t, err)
	}
	require.Equal(t, 2, w.Asked("dists/bookworm/InRelease"), "once for all that one command wants")
	names, err := filepath.Glob(filepath.Join(w.dir, "index", "bookworm-*.json"))
	require.NoError(t, err)
	require.Len(t, names, 1)
	old := time.Now().Add(-48 * time.Hour)
	require.NoError(t, os.Chtimes(names[0], old, old))
	ask(func(o *kernels.Options) { o.Offline = true })
	require.Equal(t, 2, w.Asked("dists/bookworm/InRelease"))
	ask()
	require.Equal(t, 3, w.Asked("dists/bookworm/InRelease"))
	require.NoError(t, os.WriteFile(names[0], []byte("{"), 0o600))
	ask()
	require.Equal(t, 4, w.Asked("dists/bookworm/InRelease"), "a damaged one is no index")
}
