package archive

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// headed is a file with a header and checksums that fit.
func headed(t *testing.T, h *Header) []byte {
	head, err := json.Marshal(h)
	require.NoError(t, err)
	out := binary.LittleEndian.AppendUint32([]byte(magic), version)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(head)))
	return append(binary.LittleEndian.AppendUint32(out, crc32.Checksum(head, castagnoli)), head...)
}

// Texts of a header forge no line and no column, and do not act on a terminal.
func TestHeaderWithControlCharacters(t *testing.T) {
	for name, evil := range map[string]string{
		"newline": "6.1\nforged", "carriage_return": "6.1\rforged", "tab": "6.1\tforged", "escape": "6.1\x1b[2J", "c1": "6.1\u009b2J", "nul": "6.1\x00", "delete": "6.1\x7f",
	} {
		t.Run(name, func(t *testing.T) {
			f, err := parse(headed(t, &Header{
				Release: evil, Distribution: evil, Package: evil, BuildID: evil, CPU: evil, Profile: evil, Standing: evil, Modules: []string{evil},
				Sections: []sectionHead{{Name: evil}},
			}))
			require.NoError(t, err)
			text, err := json.Marshal(f.Header)
			require.NoError(t, err)
			all := strings.Join(append([]string{f.Release, f.Distribution, f.Package, f.BuildID, f.CPU, f.Profile, f.Standing, f.Sections[0].Name}, f.Modules...), "|")
			require.False(t, strings.ContainsFunc(all, func(r rune) bool { return r < ' ' || r >= 0x7f && r <= 0x9f }), "%q", text)
		})
	}
}

// A file that is none of ours is not read whole: neither one without an end, nor a long one.
func TestFilesThatAreNoArchive(t *testing.T) {
	dir := t.TempDir()
	sparse := filepath.Join(dir, "sparse"+Suffix)
	require.NoError(t, os.WriteFile(sparse, nil, 0o600))
	require.NoError(t, os.Truncate(sparse, 1<<40))
	long := filepath.Join(dir, "long"+Suffix)
	require.NoError(t, os.WriteFile(long, []byte(magic), 0o600))
	require.NoError(t, os.Truncate(long, 1<<40))
	names := map[string]string{sparse: "it does not begin as one", long: "more than 256 MiB", dir: "a regular file is wanted"}
	for i, to := range []string{"/dev/zero", "/dev/urandom", "/dev/null"} {
		link := filepath.Join(dir, string(rune('a'+i))+Suffix)
		if _, err := os.Stat(to); err == nil && os.Symlink(to, link) == nil {
			names[link] = "a regular file is wanted"
		}
	}
	for name, want := range names {
		_, err := ReadHeader(name)
		require.ErrorContains(t, err, want, name)
	}
}

// A link with an archive's name is replaced: what it leads to is not written.
func TestLinksInTheWayOfAnArchive(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(victim, []byte("mine"), 0o600))
	for name, to := range map[string]string{"a.kpack": victim, "b.kpack": filepath.Join(dir, "nowhere"), "c.kpack": "c.kpack"} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, name)))
		_, err := writeFile(dir, name, []byte("packed"))
		require.NoError(t, err)
		st, err := os.Lstat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.True(t, st.Mode().IsRegular())
	}
	b, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "mine", string(b))
	require.NoFileExists(t, filepath.Join(dir, "nowhere"))
}
