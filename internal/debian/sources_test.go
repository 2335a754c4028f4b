package debian

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// system writes files below a folder that takes the place of the system's root.
func system(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	return root
}

func TestSources(t *testing.T) {
	const deb822 = "Types: deb deb-src\nURIs: http://a/debian http://b/debian/\nSuites: bookworm\n bookworm-updates\nComponents: main contrib\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
	for name, c := range map[string]struct {
		files          map[string]string
		main, security string
		keys           []string
		expired        bool
	}{
		"one_line": {map[string]string{"etc/apt/sources.list": "# none\ndeb-src http://no/debian trixie main\ndeb http://a/debian trixie main contrib # all\n" +
			"deb http://s/debian-security trixie-security main\n"}, "http://a/debian trixie", "http://s/debian-security trixie-security", nil, false},
		"options": {map[string]string{"etc/apt/sources.list.d/x.list": "deb [ arch=amd64 signed-by=/k/one.gpg,/k/two.gpg check-valid-until=no ] http://a/debian sid main\n"},
			"http://a/debian sid", "", []string{"/k/one.gpg", "/k/two.gpg"}, true},
		"deb822": {map[string]string{"etc/apt/sources.list.d/debian.sources": "# note\r\n" + deb822 + "\n" +
			"Types: deb\nURIs: http://s/debian-security\nSuites: bookworm-security\nComponents: main\n"},
			"http://a/debian bookworm", "http://s/debian-security bookworm-security", []string{"/usr/share/keyrings/debian-archive-keyring.gpg"}, false},
		"switched_off": {map[string]string{"etc/apt/sources.list.d/a.sources": deb822 + "Enabled: no\n", "etc/apt/sources.list": "deb http://c/mirror forky main\n"},
			"http://c/mirror forky", "", nil, false},
		"source_alone":     {map[string]string{"etc/apt/sources.list.d/a.sources": strings.Replace(deb822, "deb deb-src", "deb-src", 1)}, "", "", nil, false},
		"other_vendor":     {map[string]string{"etc/apt/sources.list": "deb [signed-by=/k/v.gpg] http://v/apt bookworm main\ndeb http://v/apt jammy main\n"}, "", "", nil, false},
		"vendor_first":     {map[string]string{"etc/apt/sources.list": "deb http://v/apt bookworm main\ndeb http://a/debian bookworm main\n"}, "http://a/debian bookworm", "", nil, false},
		"cdrom":            {map[string]string{"etc/apt/sources.list": "deb cdrom:[Debian]/ bookworm main\n"}, "", "", nil, false},
		"by_tor":           {map[string]string{"etc/apt/sources.list": "deb tor+http://a/debian bookworm main\ndeb file:/srv/debian bookworm main\n"}, "file:/srv/debian bookworm", "", nil, false},
		"without_main":     {map[string]string{"etc/apt/sources.list": "deb http://a/debian bookworm contrib\n"}, "", "", nil, false},
		"old_not_by_conf":  {map[string]string{"etc/apt/sources.list": "deb http://a/debian sid main\n", "etc/apt/apt.conf.d/9": "Acquire { Check-Valid-Until \"false\"; }; // all\n"}, "http://a/debian sid", "", nil, true},
		"old_by_conf_name": {map[string]string{"etc/apt/sources.list": "deb http://a/debian sid main\n", "etc/apt/apt.conf": "#c\nAcquire::Check-Valid-Until \"0\";\n/* x */"}, "http://a/debian sid", "", nil, true},
		"damaged":          {map[string]string{"etc/apt/sources.list": "deb\ndeb [\ndeb [ http://a/debian sid main\ndeb [a=b]\ndeb http://a\n[]\n", "etc/apt/sources.list.d/x.sources": ":\n \n x\nTypes deb\nTypes: deb\n"}, "", "", nil, false},
		"none":             {nil, "", "", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := Debian(SystemSources(system(t, c.files)))
			said := func(s *Source) string {
				if s == nil {
					return ""
				}
				return s.URI + " " + s.Suite
			}
			require.Equal(t, c.main, said(m.Main))
			require.Equal(t, c.security, said(m.Security))
			if m.Main != nil {
				require.Equal(t, c.keys, m.Main.Keys)
				require.Equal(t, c.expired, m.Main.Expired)
			}
		})
	}
}

func TestKeyFiles(t *testing.T) {
	inline := "Types: deb\nURIs: http://a/debian\nSuites: sid\nComponents: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n AAAA\n -----END PGP PUBLIC KEY BLOCK-----\n"
	list, err := stanzaSources(inline)
	require.NoError(t, err)
	require.Equal(t, "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n", list[0].Key)
	require.Empty(t, list[0].KeyFiles("/"))

	root := system(t, map[string]string{"etc/apt/trusted.gpg.d/b.asc": "", "etc/apt/trusted.gpg.d/a.gpg": "", "etc/apt/trusted.gpg.d/c.txt": ""})
	require.Equal(t, []string{filepath.Join(root, "etc/apt/trusted.gpg.d/a.gpg"), filepath.Join(root, "etc/apt/trusted.gpg.d/b.asc")}, (&Source{}).KeyFiles(root))
	root = system(t, map[string]string{"etc/apt/trusted.gpg.d/b.asc": "", "usr/share/keyrings/debian-archive-keyring.gpg": ""})
	require.Equal(t, []string{filepath.Join(root, "usr/share/keyrings/debian-archive-keyring.gpg")}, (&Source{}).KeyFiles(root))
	require.Equal(t, []string{"/k"}, (&Source{Keys: []string{"/k"}}).KeyFiles(root))
}

func TestSourcesThatAreTooLong(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.sources")
	require.NoError(t, os.WriteFile(name, make([]byte, 4<<20+1), 0o600))
	_, err := ReadSources(name)
	require.ErrorContains(t, err, "more than 4 MiB are not read")
	_, err = stanzaSources("Types: deb\nX: " + strings.Repeat("x", 1<<20) + "\n")
	require.ErrorContains(t, err, "a line has more than 1048576 bytes")
	_, err = ReadKeyring(name)
	require.ErrorContains(t, err, "more than 4 MiB are not read")
}
