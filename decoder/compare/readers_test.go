package compare

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/x86"
)

// TestReadersAgree: of generated encodings, x86asm with its overrides knows
// all that the tables know, and reads it as they do. What it knows besides is
// answered with #UD: it checks less.
func TestReadersAgree(t *testing.T) {
	const at = x86.Addr(0xffffffff81000000)
	count := 2_000_000
	if testing.Short() {
		count = 200_000
	}
	g := NewGenerator(11)
	w := make([]byte, decoder.MaxInsnSize)
	accepted, undefined := 0, 0
	for range count {
		g.Next(w)
		r := decoder.X86asm{}.Read(w, at)
		switch want := (decoder.Tables{}).Read(w, at); {
		case want.Length > 0:
			accepted++
			require.Equal(t, want, r, "% x", w)
		case r.Length > 0:
			undefined++
		}
	}
	t.Logf("%d encodings: %d instructions, and %d that only x86asm takes for one", count, accepted, undefined)
	require.Greater(t, accepted, count/4)
}
