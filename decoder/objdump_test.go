package decoder

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
	"kprobelab/profile"
	"kprobelab/x86"
)

// explained are the differences to objdump that are not ours, by objdump's
// mnemonic. Lines with (bad) are dropped too, as in docs/spec 11.4.
var explained = map[string]string{
	".byte": "data in text, or a symbol in mid-instruction ends objdump's view",
	"rex.W": "a symbol in mid-instruction ends objdump's view",
	"repnz": "data in text: a prefix and (bad)",
	"repz":  "data in text: a prefix and (bad)",
}

// windows are parts of the text to compare, from its start.
var windows = []struct{ offset, size int64 }{
	{0, 640 << 10}, {6 << 20, 640 << 10}, {13 << 20, 640 << 10},
}

// TestLengthsAgainstObjdump is the kernel's own length test (docs/spec 11.4) on a
// sample of real kernel text, for both views.
func TestLengthsAgainstObjdump(t *testing.T) {
	tool, err := exec.LookPath("objdump")
	if err != nil {
		t.Skip("no objdump on this system")
	}
	for kernel, name := range oracle.Kernels {
		t.Run(name, func(t *testing.T) {
			c, _ := profile.Named(name)
			base := oracle.LiveText(t, kernel).Base
			file := filepath.Join(t.TempDir(), "live.elf")
			require.NoError(t, os.WriteFile(file, oracle.LiveELF(t, kernel), 0o600))
			n := 0
			for _, w := range windows {
				start := base.Add(w.offset)
				n += compareListing(t, listing(t, tool, file, start, start.Add(w.size)), &c.Decoder)
			}
			t.Logf("%d instructions compared", n)
			require.Greater(t, n, 100_000)
		})
	}
}

func listing(t *testing.T, tool, file string, start, end x86.Addr) string {
	t.Helper()
	cmd := exec.Command(tool, "-d", "-w", "-z",
		fmt.Sprintf("--start-address=%v", start), fmt.Sprintf("--stop-address=%v", end), file)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	require.NoError(t, err)
	return string(out)
}

// compareListing compares every line of "address: TAB bytes TAB instruction"
// and returns how many. int3 padding is left out.
func compareListing(t *testing.T, text string, d *profile.Decoder) int {
	t.Helper()
	n := 0
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		f := strings.Split(lines.Text(), "\t")
		if len(f) < 3 {
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(f[1]), " ", ""))
		if err != nil {
			t.Fatalf("not a listing: %s", lines.Text())
		}
		mnemonic := strings.Fields(f[2] + " ?")[0]
		if explained[mnemonic] != "" || strings.Contains(f[2], "(bad)") || b[0] == 0xCC {
			continue
		}
		if difference := compareLengths(b, d); difference != "" {
			t.Errorf("%s: %s", difference, lines.Text())
		}
		n++
	}
	return n
}

// compareLengths describes the error in either view of the instruction; "" if both are right.
func compareLengths(b []byte, d *profile.Decoder) string {
	var window [MaxInsnSize]byte
	for i := copy(window[:], b); i < len(window); i++ {
		window[i] = 0x90
	}
	k, err := DecodeKernel(window[:], d)
	if err != nil || k.Length != len(b) {
		return fmt.Sprintf("kernel's view: length %d, %v", k.Length, err)
	}
	i, err := Decode(window[:])
	if err != nil || i.Length != len(b) {
		return fmt.Sprintf("processor's view: length %d, %v", i.Length, err)
	}
	return ""
}
