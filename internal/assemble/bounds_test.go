package assemble

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// A text may have as many lines, and a line as many bytes, as the bound says.
func TestAssemblyIsBounded(t *testing.T) {
	_, err := Code(strings.Repeat("nop\n", bounded.AssemblyLines), 0x1000)
	require.NoError(t, err)
	_, err = Code(strings.Repeat("nop\n", bounded.AssemblyLines+1), 0x1000)
	require.ErrorContains(t, err, "these are more than 500 lines")
	_, err = Code("nop"+strings.Repeat(" ", bounded.AssemblyLine-3), 0x1000)
	require.NoError(t, err)
	_, err = Code(strings.Repeat("a", bounded.AssemblyLine+1), 0x1000)
	require.ErrorContains(t, err, "line 1 has more than 200 characters")
}

// Branches that push each other over the reach of a short one do so as often as the bound says.
func TestBranchesThatPushEachOther(t *testing.T) {
	// Each branch reaches 127 bytes, with the next one in between; the last is too far.
	chain := func(branches int) string {
		var b strings.Builder
		for i := range branches + 1 {
			if i < branches {
				fmt.Fprintf(&b, "jmp l%d\n", i)
			} else {
				b.WriteString("xchg %ax,%ax\nnop\n")
			}
			b.WriteString(strings.Repeat("movq $0x11223344,0x11223344(%rax,%rbx,8)\n", 5))
			if i > 0 {
				fmt.Fprintf(&b, "l%d: ", i-1)
			}
			b.WriteString("mov $0x11223344,%eax\n")
		}
		return b.String()
	}
	code, err := Code(chain(60), 0x1000)
	require.NoError(t, err)
	require.Equal(t, byte(0xe9), code[0], "the last has pushed the first")
	_, err = Code(chain(bounded.AssemblyPasses), 0x1000)
	require.ErrorIs(t, err, errPasses)
}
