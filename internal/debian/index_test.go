package debian_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/debian"
	"kprobelab/internal/tinyarchive"
)

func all(string) bool { return true }

func ring(t *testing.T, keys ...*tinyarchive.Key) *debian.Keyring {
	t.Helper()
	var files []string
	for i, k := range keys {
		files = append(files, filepath.Join(t.TempDir(), fmt.Sprint("key", i)))
		require.NoError(t, os.WriteFile(files[i], k.Public(), 0o600))
	}
	r, err := debian.ReadKeyring(files...)
	require.NoError(t, err)
	return r
}

func TestSignatures(t *testing.T) {
	ours, second, others := tinyarchive.NewKey(), tinyarchive.NewKey(), tinyarchive.NewKey()
	const text = "Suite: stable\nCodename: sid\n- dashes\n"
	signed := string(tinyarchive.Sign(text, ours))
	for name, c := range map[string]struct {
		message string
		want    string // of the error; "" for none
	}{
		"good":                {signed, ""},
		"good_and_unknown":    {string(tinyarchive.Sign(text, others, ours)), ""},
		"unknown_key":         {string(tinyarchive.Sign(text, others)), "by a key"},
		"changed_text":        {strings.Replace(signed, "Codename: sid", "Codename: bad", 1), "not the one that was signed"},
		"good_and_bad":        {tampered(text, ours, second), "not the one that was signed"},
		"unsigned":            {text, "there is none"},
		"empty":               {"", "there is none"},
		"no_signature":        {signed[:strings.Index(signed, "-----BEGIN PGP SIGNATURE")], "there is none"},
		"cut_off":             {signed[:len(signed)-90], ""},
		"text_before":         {"Suite: evil\n" + signed, "outside of what is signed"},
		"text_after":          {signed + "\nSuite: evil\n", "outside of what is signed"},
		"signature_is_no_pgp": {signed[:strings.Index(signed, "-----BEGIN PGP SIGNATURE")] + "-----BEGIN PGP SIGNATURE-----\n\nAAAA\n-----END PGP SIGNATURE-----\n", "signature is not good"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ring(t, ours, second).Inline([]byte(c.message), time.Now())
			switch {
			case name == "cut_off":
				require.ErrorIs(t, err, debian.ErrSignature)
			case c.want == "":
				require.NoError(t, err)
				require.Equal(t, text, string(got)+"\n"[:len(text)-len(got)])
			default:
				require.ErrorIs(t, err, debian.ErrSignature)
				require.ErrorContains(t, err, c.want)
				require.NotContains(t, err.Error(), "\n")
				require.Nil(t, got)
			}
		})
	}
	t.Run("beside", func(t *testing.T) {
		r := ring(t, ours)
		require.NoError(t, r.Detached([]byte(text), ours.SignBeside(text), time.Now()))
		require.ErrorIs(t, r.Detached([]byte(text+"x"), ours.SignBeside(text), time.Now()), debian.ErrSignature)
		require.ErrorIs(t, r.Detached([]byte(text), others.SignBeside(text), time.Now()), debian.ErrSignature)
		require.ErrorIs(t, r.Detached([]byte(text), []byte("garbage"), time.Now()), debian.ErrSignature)
		require.ErrorIs(t, r.Detached([]byte(text), nil, time.Now()), debian.ErrSignature)
	})
	t.Run("before_the_key_was_made", func(t *testing.T) {
		_, err := ring(t, ours).Inline([]byte(signed), time.Now().Add(-24*time.Hour))
		require.ErrorIs(t, err, debian.ErrSignature)
	})
}

// tampered makes a message with a good signature of one key and a wrong one of another.
func tampered(text string, good, bad *tinyarchive.Key) string {
	one := string(tinyarchive.Sign(text, good, bad))
	other := string(tinyarchive.Sign("x"+text, good, bad))
	// The signatures of the other text stand first, then those of this one.
	head := one[:strings.Index(one, "-----BEGIN PGP SIGNATURE")]
	return head + other[strings.Index(other, "-----BEGIN PGP SIGNATURE"):]
}

func TestKeysThatAreNone(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "text": "no key", "armor": "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n", "bytes": "\x99\x01\x0d\x04\xff\xff\xff"} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := debian.ReadKeyring(file)
		require.ErrorIs(t, err, debian.ErrKeys, name)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := debian.ReadKeyring()
	require.ErrorIs(t, err, debian.ErrKeys)
	_, err = debian.ReadKeyring(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	key := filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(key, tinyarchive.NewKey().Public(), 0o600))
	_, err = debian.ReadKeyring(filepath.Join(dir, "none"), key)
	require.NoError(t, err)
}

func TestHostileIndexes(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	for name, c := range map[string]struct{ text, want string }{
		"empty":             {"", "no checksums"},
		"no_checksums":      {"Suite: sid\nMD5Sum:\n 00 1 x\n", "no checksums"},
		"short_checksum":    {"Suite: sid\nSHA256:\n abcd 1 x\n", "a checksum of it is damaged"},
		"size_below_zero":   {"Suite: sid\nSHA256:\n " + sum + " -1 x\n", "a checksum of it is damaged"},
		"no_name":           {"Suite: sid\nSHA256:\n " + sum + " 1\n", "a checksum of it is damaged"},
		"hash_alone":        {"Suite: sid\nSHA256:\n " + sum + "\n", "a checksum of it is damaged"},
		"two_stanzas":       {"Suite: sid\nSHA256:\n " + sum + " 1 x\n\nSuite: x\n", "two stanzas"},
		"date":              {"Suite: sid\nDate: yesterday\nSHA256:\n " + sum + " 1 x\n", "a date that is none"},
		"line_without_end":  {"Suite: " + strings.Repeat("x", 2<<20), "a line has more than"},
		"of_another_suite":  {"Suite: sid\nCodename: unstable\nSHA256:\n " + sum + " 1 x\n", "not of bookworm"},
		"not_valid_anymore": {"Suite: bookworm\nValid-Until: Sat, 01 Jan 2000 00:00:00 UTC\nSHA256:\n " + sum + " 1 x\n", "it was valid until 2000-01-01"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := debian.ParseRelease([]byte(c.text))
			if err == nil {
				err = r.Of("bookworm", time.Now(), false)
			}
			require.ErrorIs(t, err, debian.ErrIndex)
			require.ErrorContains(t, err, c.want)
		})
	}
	for name, text := range map[string]string{
		"no_checksum":   "Package: a\nVersion: 1\nFilename: a.deb\nSize: 1\n",
		"no_file":       "Package: a\nVersion: 1\nSize: 1\nSHA256: " + sum + "\n",
		"file_upwards":  "Package: a\nVersion: 1\nFilename: ../../a.deb\nSize: 1\nSHA256: " + sum + "\n",
		"file_absolute": "Package: a\nVersion: 1\nFilename: /a.deb\nSize: 1\nSHA256: " + sum + "\n",
		"huge_number":   "Package: a\nVersion: 1\nFilename: a.deb\nSize: 99999999999999999999\nSHA256: " + sum + "\n",
	} {
		t.Run("package_"+name, func(t *testing.T) {
			_, err := debian.ReadPackages(strings.NewReader(text), "http://a", all)
			require.ErrorIs(t, err, debian.ErrIndex)
		})
	}
	t.Run("package_index_without_end", func(t *testing.T) {
		_, err := debian.ReadPackages(endless{}, "", all)
		require.ErrorContains(t, err, "more than 512 MiB are not read")
	})
}

// endless is a list of comments.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	p[len(p)-1] = '\n'
	return len(p), nil
}

func TestVersions(t *testing.T) {
	// In order, as dpkg --compare-versions says it.
	list := []string{"0~~", "0~~a", "0~", "0", "0a", "0a1", "0.1", "1.0~rc1-1", "1.0~rc1-1+b1", "1.0-1~bpo12+1", "1.0-1", "1.0-1+deb12u1", "1.0-1.1", "1.0-2", "1.0-10", "1.0a-1", "1.0+dfsg-1", "1.00.1", "1.2", "1.10", "6.1.170-1", "6.1.170-3", "7.3.4-1~bpo13+1", "7.3.4-1", "1:0", "1:0.9-1", "10:0"}
	for i, a := range list {
		for j, b := range list {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			require.Equal(t, want, debian.Compare(a, b), "%s %s", a, b)
		}
	}
	for _, same := range [][2]string{{"1.0", "0:1.0"}, {"1.0-0", "1.0"}, {"01.0", "1.0"}, {"1.0-01", "1.0-1"}} {
		require.Zero(t, debian.Compare(same[0], same[1]), same)
	}
}

// index makes a list of packages: name, version, dependencies, provided names.
func index(t *testing.T, packages ...[4]string) *debian.List {
	t.Helper()
	var text bytes.Buffer
	for _, p := range packages {
		fmt.Fprintf(&text, "Package: %s\nVersion: %s\nArchitecture: amd64\nDepends: %s\nProvides: %s\nFilename: pool/%s.deb\nSize: 1\nSHA256: %s\n\n", p[0], p[1], p[2], p[3], p[0], strings.Repeat("00", 32))
	}
	list, err := debian.ReadPackages(&text, "http://a", all)
	require.NoError(t, err)
	l := debian.NewList()
	l.Add(list)
	return l
}

func TestDependencies(t *testing.T) {
	l := index(t,
		[4]string{"qemu", "1", "libc6 (>= 2.36), liba:any | libb, virtual, firmware (>> 1)", ""},
		[4]string{"libc6", "2.36", "libgcc", ""}, [4]string{"libc6", "2.41", "libgcc", ""},
		[4]string{"libgcc", "1", "libc6 (>= 2.35)", ""},
		[4]string{"libb", "1", "", ""},
		[4]string{"real", "1", "", "virtual (= 1), other"},
		[4]string{"firmware", "1", "", ""}, [4]string{"firmware", "1+b1", "", ""},
		[4]string{"old", "1", "firmware (<< 1)", ""},
	)
	list, err := l.With("qemu")
	require.NoError(t, err)
	var got []string
	for _, p := range list {
		got = append(got, p.Name+" "+p.Version)
	}
	require.Equal(t, []string{"qemu 1", "libc6 2.41", "libb 1", "real 1", "firmware 1+b1", "libgcc 1"}, got)
	_, err = l.With("none")
	require.ErrorIs(t, err, debian.ErrNeeds)
	_, err = l.With("old")
	require.ErrorContains(t, err, "the suites have no firmware")
	require.Equal(t, "2.41", l.Newest("libc6").Version)
	require.Nil(t, l.Newest("none"))
}

func TestDependenciesWithoutEnd(t *testing.T) {
	var chain [][4]string
	for i := range 2001 {
		chain = append(chain, [4]string{fmt.Sprint("p", i), "1", fmt.Sprint("p", i+1), ""})
	}
	chain = append(chain, [4]string{"p2001", "1", "p0", ""})
	_, err := index(t, chain...).With("p0")
	require.ErrorContains(t, err, "needs more than 2000 others")
}
