package source

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// rows is a file whose units have so many rows more in their tables of lines.
func rows(t *testing.T, units ...int) *File {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not here")
	}
	dir := t.TempDir()
	args := []string{"-gdwarf-5", "-O1", "-nostdlib", "-static", "-no-pie", "-Wl,-e,f0", "-o", "a"}
	for i, n := range units {
		name := fmt.Sprintf("a%d.c", i)
		text := fmt.Sprintf("int f%d(int x) { __asm__ volatile(\".rept %d\\n.loc 1 5\\nnop\\n.endr\"); return x + 1; }\n", i, n)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		args = append(args, name)
	}
	cmd := exec.Command(gcc, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	f, err := Open(filepath.Join(dir, "a"))
	require.NoError(t, err)
	return f
}

// tables reads the tables of lines of all units.
func (f *File) readTables(t *testing.T) (list []int, err error) {
	units := 0
	f.left = bounded.EntriesRead
	for i := range f.headers {
		u, err := f.unit(&f.headers[i])
		require.NoError(t, err)
		lines, err := u.table()
		if err != nil {
			return nil, err
		}
		units++
		list = append(list, len(lines))
	}
	require.NotZero(t, units)
	return list, nil
}

// A unit has no more rows than are read, and a file keeps no more than so many tables.
func TestLinesWithoutEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("short: a million lines to assemble")
	}
	_, err := rows(t, bounded.Lines+1).readTables(t)
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "a unit has more than 1048576")

	f := rows(t, 900_000, 900_000, 900_000)
	for range 2 {
		list, err := f.readTables(t)
		require.NoError(t, err)
		require.Len(t, list, 3)
		require.LessOrEqual(t, f.rows, maxTables)
	}
}
