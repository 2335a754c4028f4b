package kernels_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/kernels"
)

// lockOf makes a lock of what words mean now.
func lockOf(t *testing.T, s *kernels.Store, words ...string) *kernels.Lock {
	t.Helper()
	t.Chdir(t.TempDir())
	_, err := s.Lock(t.Context(), words, nil)
	require.NoError(t, err)
	l, err := kernels.FindLock(".")
	require.NoError(t, err)
	return l
}

// A word of a lock means one kernel to the byte, whatever the archive and the cache have by now.
func TestLockedWords(t *testing.T) {
	const newer = "6.1.0-2-cloud-amd64"
	for name, c := range map[string]struct {
		// kept: the locked kernel stays in the cache. archive is what there is later, fetched what of it is in the cache, too.
		kept    bool
		archive map[string]string
		fetched string
		change  func(*kernels.Pin)
		offline bool
		want    string // of the version; "" for an error with these words
		why     []string
	}{
		"kept_and_the_archive_has_a_newer_one": {kept: true, archive: map[string]string{newer: "6.1.2-1"}, want: "6.1.1-1"},
		"kept_beside_a_newer_one":              {kept: true, archive: map[string]string{newer: "6.1.2-1"}, fetched: newer, want: "6.1.1-1"},
		"kept_beside_a_newer_build":            {kept: true, archive: map[string]string{release: "6.1.9-1"}, fetched: release, want: "6.1.1-1"},
		"kept_offline":                         {kept: true, offline: true, want: "6.1.1-1"},
		"fetched_again":                        {archive: map[string]string{release: "6.1.1-1", newer: "6.1.2-1"}, want: "6.1.1-1"},
		"gone_from_the_archive": {archive: map[string]string{newer: "6.1.2-1"},
			why: []string{"kernels.lock says that 6.1 is " + release, "neither in the cache nor in the archive", "without a lock it would be " + newer + " of the archive", "kprobelab kernels lock 6.1 pins"}},
		"gone_and_a_newer_one_is_kept": {archive: map[string]string{newer: "6.1.2-1"}, fetched: newer,
			why: []string{"without a lock it would be " + newer + " (", "in the cache"}},
		"built_again":     {archive: map[string]string{release: "6.1.9-1"}, why: []string{"the archive has another build of it, 6.1.9-1"}},
		"another_image":   {archive: map[string]string{release: "6.1.1-1"}, change: func(p *kernels.Pin) { p.SHA256 = strings.Repeat("0", 64) }, why: []string{"000000000000…", "the archive's has"}},
		"another_release": {archive: map[string]string{release: "6.1.1-1"}, change: func(p *kernels.Pin) { p.Release = "6.1.0-7-cloud-amd64" }, why: []string{"no suite of Debian's has 6.1.0-7-cloud-amd64"}},
		"offline_and_not_there": {offline: true, archive: map[string]string{newer: "6.1.2-1"}, fetched: newer,
			why: []string{"is not in the cache, and nothing is fetched (--offline)", "without a lock it would be " + newer}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Suite("bookworm", kernelDeb(release, "6.1.1-1"))
			l := lockOf(t, w.open(t), "6.1")
			if c.change != nil {
				c.change(l.Kernels[0])
			}
			if !c.kept {
				_, err := w.open(t).Remove(release)
				require.NoError(t, err)
			}
			if c.archive != nil {
				w.Suite("bookworm") // it is empty
				for release, version := range c.archive {
					w.Suite("bookworm", kernelDeb(release, version))
				}
				if len(c.archive) == 2 {
					w.Suite("bookworm", kernelDeb(release, c.archive[release]), kernelDeb(newer, c.archive[newer]))
				}
			}
			if c.fetched != "" {
				_, err := w.open(t, func(o *kernels.Options) { o.Refresh = true }).Fetch(t.Context(), c.fetched)
				require.NoError(t, err)
			}
			s := w.open(t, func(o *kernels.Options) { o.Lock, o.Offline, o.Refresh = l, c.offline, !c.offline })
			k, err := s.Find("6.1")
			if err != nil {
				k, err = s.Fetch(t.Context(), "6.1")
			}
			if c.want != "" {
				require.NoError(t, err)
				require.Equal(t, c.want, k.Version)
				return
			}
			require.ErrorIs(t, err, kernels.ErrLock)
			require.Equal(t, c.offline, strings.Contains(err.Error(), "--offline"))
			for _, why := range c.why {
				require.ErrorContains(t, err, why)
			}
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// In CI, a word that the lock has not means nothing; what cannot mean anything else tomorrow does.
func TestWordsOfCI(t *testing.T) {
	w := newWorld(t)
	w.Suite("bookworm", kernelDeb(release, "6.1.1-1"), meta(release))
	l := lockOf(t, w.open(t), "6.1")
	for name, c := range map[string]struct {
		lock *kernels.Lock
		word string
		ok   bool
		why  string
	}{
		"locked":               {l, "6.1", true, ""},
		"not_locked":           {l, "newest", false, "has no such word; without a lock it would be " + release},
		"without_a_lock":       {nil, "6.1", false, "there is no kernels.lock; without a lock it would be " + release},
		"a_suite":              {nil, "bookworm", false, "kprobelab kernels lock bookworm pins it"},
		"a_release":            {nil, release, true, ""},
		"a_release_and_a_lock": {l, release, true, ""},
		"nothing_of_this_name": {nil, "5.15", false, "without a lock there would be none either: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := w.open(t, func(o *kernels.Options) { o.Lock, o.Strict = c.lock, true })
			require.True(t, s.Locked())
			for _, get := range []func() (*kernels.Kernel, error){
				func() (*kernels.Kernel, error) { return s.Fetch(t.Context(), c.word) },
				func() (*kernels.Kernel, error) { return s.Kernel(t.Context(), c.word) },
			} {
				k, err := get()
				if c.ok {
					require.NoError(t, err)
					require.Equal(t, release, k.Release)
					continue
				}
				require.ErrorIs(t, err, kernels.ErrLock)
				require.ErrorContains(t, err, c.why)
			}
			_, err := s.Find(c.word)
			require.Equal(t, c.ok, err == nil)
		})
	}
}

// The lock of a kernel of another vendor: no archive has it.
func TestLockOfAKernelThatWasAdded(t *testing.T) {
	w := newWorld(t)
	w.Suite("bookworm", kernelDeb(release, "6.1.1-1"))
	s := w.open(t)
	k, err := s.Add(t.Context(), "../testdata/guest.elf", "")
	require.NoError(t, err)
	l := lockOf(t, s, k.Release)
	locked := w.open(t, func(o *kernels.Options) { o.Lock, o.Strict = l, true })
	got, err := locked.Kernel(t.Context(), k.Release)
	require.NoError(t, err)
	require.Equal(t, k.SHA256, got.SHA256)
	_, err = s.Remove(k.Release)
	require.NoError(t, err)
	_, err = locked.Kernel(t.Context(), k.Release)
	require.ErrorIs(t, err, kernels.ErrLock)
}

// A word that is pinned again keeps its machine, and so does a lock that is written without words; a machine of the command
// line counts. The dump of another machine is not the lock's.
func TestMachinesOfALock(t *testing.T) {
	w := newWorld(t)
	w.Suite("bookworm", kernelDeb(release, "6.1.1-1"))
	large := kernels.Machine{CPU: "Nehalem,+x", CPUs: 2, Megabytes: 512, Append: "quiet"}
	l := lockOf(t, w.open(t), "newest", "6.1")
	require.Equal(t, []string{"6.1", "newest"}, []string{l.Kernels[0].Word, l.Kernels[1].Word}, "in the order of the words")
	open := func() *kernels.Store {
		l, err := kernels.FindLock(".")
		require.NoError(t, err)
		return w.open(t, func(o *kernels.Options) { o.Lock, o.Refresh = l, true })
	}
	_, err := open().Lock(t.Context(), []string{"6.1"}, &large)
	require.NoError(t, err)
	w.Suite("bookworm", kernelDeb("6.1.0-2-cloud-amd64", "6.1.2-1"))
	pins, err := open().Lock(t.Context(), nil, nil)
	require.NoError(t, err)
	require.Len(t, pins, 2)
	s := open()
	require.Equal(t, large, s.Pin("6.1").Machine)
	require.Equal(t, kernels.DefaultMachine, s.Pin("newest").Machine)
	require.Equal(t, "6.1.0-2-cloud-amd64", s.Pin("6.1").Release)

	k, err := s.Fetch(t.Context(), "6.1")
	require.NoError(t, err)
	for m, want := range map[kernels.Machine]bool{large: true, kernels.DefaultMachine: false, {CPU: large.CPU, CPUs: 2, Megabytes: 512}: false} {
		require.NoError(t, s.SaveDump(t.Context(), k, m, func(file string) error { return os.WriteFile(file, []byte("memory"), 0o600) }))
		k, err = s.Find("6.1")
		require.NoError(t, err)
		require.Equal(t, m, *k.Booted)
		err := s.OnMachine("6.1", k)
		require.Equal(t, want, err == nil, "%v", err)
		if !want {
			require.ErrorIs(t, err, kernels.ErrLock)
		}
	}
	require.NoError(t, s.OnMachine("6.1.0-2-cloud-amd64", k), "the lock has no such word")
	k.Booted = nil
	require.ErrorContains(t, s.OnMachine("6.1", k), "one that was not noted")
}

const pin = `{"word":"6.1","release":"6.1.0-1-cloud-amd64","sha256":"` + "SUM" + `","cpu":"qemu64","cpus":1,"memory_mib":128}`

func TestLocksThatAreNone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, kernels.LockName)
	good := strings.ReplaceAll(pin, "SUM", strings.Repeat("a", 64))
	whole := `{"version":1,"kernels":[` + good + `]}`
	for name, c := range map[string]struct{ text, why string }{
		"good":             {whole, ""},
		"none_yet":         {`{"version":1}`, ""},
		"empty":            {"", "is no JSON"},
		"cut_off":          {whole[:40], "is no JSON"},
		"conflict":         {"<<<<<<< HEAD\n" + whole, "is no JSON"},
		"version":          {strings.Replace(whole, `:1`, `:2`, 1), "has version 2"},
		"twice":            {`{"version":1,"kernels":[` + good + "," + good + `]}`, `has "6.1" twice`},
		"null":             {`{"version":1,"kernels":[null]}`, "has no content"},
		"word":             {strings.Replace(whole, `"word":"6.1"`, `"word":"../x"`, 1), `the word "../x"`},
		"release":          {strings.Replace(whole, `6.1.0-1-cloud-amd64`, `../../x`, 1), `the release "../../x"`},
		"checksum":         {strings.Replace(whole, `aaaa`, `AAAA`, 1), "a checksum that is no SHA-256"},
		"package_checksum": {strings.Replace(whole, `"cpu"`, `"package_sha256":"x","cpu"`, 1), "a checksum that is no SHA-256"},
		"cpu":              {strings.Replace(whole, `qemu64`, `-drive file=/etc/passwd`, 1), "the CPU "},
		"cpus":             {strings.Replace(whole, `"cpus":1`, `"cpus":0`, 1), "0 CPUs"},
		"memory":           {strings.Replace(whole, `128`, `-1`, 1), "-1 MiB of memory"},
		"append":           {strings.Replace(whole, `"cpu"`, `"append":"a\nb","cpu"`, 1), "words for the command line that are none"},
		"too_long":         {whole + strings.Repeat(" ", bounded.ListLine), "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
			below := filepath.Join(dir, "a", "b")
			require.NoError(t, os.MkdirAll(below, 0o700))
			l, err := kernels.FindLock(below)
			if c.why == "" {
				require.NoError(t, err)
				require.Equal(t, file, l.File)
				return
			}
			require.ErrorContains(t, err, c.why)
			require.NotContains(t, err.Error(), "\n")
			require.Nil(t, l)
		})
	}
}

// The key changes with each field of the lock and with the program's part, and with nothing else.
func TestKeys(t *testing.T) {
	of := func(change func(*kernels.Pin), more string) string {
		l := &kernels.Lock{Kernels: []*kernels.Pin{
			{Word: "6.12", Release: "6.12.1", SHA256: "b", Machine: kernels.DefaultMachine}, {Word: "6.1", Release: "6.1.0", SHA256: "a", Machine: kernels.DefaultMachine}}}
		change(l.Kernels[0])
		key, err := l.Key([]byte(more))
		require.NoError(t, err)
		require.Regexp(t, `^kprobelab-[0-9a-f]{32}$`, key)
		return key
	}
	same := of(func(*kernels.Pin) {}, "init")
	require.Equal(t, same, of(func(*kernels.Pin) {}, "init"))
	seen := map[string]bool{same: true}
	for name, change := range map[string]func(*kernels.Pin){
		"word": func(p *kernels.Pin) { p.Word = "newest" }, "release": func(p *kernels.Pin) { p.Release = "6.12.2" }, "sum": func(p *kernels.Pin) { p.SHA256 = "c" },
		"cpu": func(p *kernels.Pin) { p.CPU = "max" }, "cpus": func(p *kernels.Pin) { p.CPUs = 2 }, "memory": func(p *kernels.Pin) { p.Megabytes = 256 },
	} {
		key := of(change, "init")
		require.False(t, seen[key], name)
		seen[key] = true
	}
	require.NotEqual(t, same, of(func(*kernels.Pin) {}, "another init"))
	_, err := (&kernels.Lock{}).Key()
	require.ErrorIs(t, err, kernels.ErrLock)
}
