package rule

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/profile"
)

// Every rule has its words, no kind has a name twice, and no errno is missing except where another
// layer has it.
func TestEveryRuleIsTold(t *testing.T) {
	seen := map[string]bool{}
	for id := None + 1; id < numRules; id++ {
		name := string(id.Kind()) + " " + id.String()
		require.False(t, seen[name], name)
		seen[name] = true
		require.Regexp(t, `^[A-Z0-9_]+$`, id.String())
		require.NotEmpty(t, id.Why(), name)
		switch id.Kind() {
		case Registration, OutOfLine:
			require.Equal(t, id == Arm, id.Errno() == 0, name)
			require.Regexp(t, `^[a-z].*[^.]$`, id.Why(), name)
			require.Regexp(t, `^(kernel|arch|include)/.*\.[ch], \w+`, id.Source(), name)
		case Optimization:
			require.Equal(t, id <= FtraceBased, id.Errno() == 0, name)
			require.NotEmpty(t, id.Source(), name)
			require.NotEmpty(t, id.Here("a", "i", "t"), name)
			require.NotContains(t, id.Here("a", "i", "t"), "{", name)
		case Asking:
			require.Zero(t, id.Errno(), "one who asks has errnos of its own")
		default:
			t.Errorf("%s has no kind", name)
		}
		text, err := id.MarshalText()
		require.NoError(t, err)
		require.Equal(t, id.String(), string(text))
	}
	require.Empty(t, None.String())
	require.Empty(t, numRules.String())
	require.Len(t, seen, len(Of(Registration))+len(Of(OutOfLine))+len(Of(Optimization))+len(Of(Asking)))
}

// A scan names the rules of registration and of the slot in one column.
func TestNamesOfOneColumnDiffer(t *testing.T) {
	seen := map[string]ID{}
	for _, id := range append(Of(Registration), Of(OutOfLine)...) {
		if other, ok := seen[id.String()]; ok {
			require.Equal(t, Unreadable, other)
			require.Equal(t, SlotUnreadable, id, "the same fact in both")
		}
		seen[id.String()] = id
	}
}

// A copy for a detour buffer is refused by the rules of a copy for a slot,
// under names of their own.
func TestRulesInDetour(t *testing.T) {
	require.Equal(t, None, None.InDetour())
	for id := SlotUnreadable; id <= SlotDisplacement; id++ {
		require.Equal(t, "COPY_"+id.String(), id.InDetour().String())
	}
}

// Texts that say when a rule ended have the release from the table of releases.
func TestEndOfARule(t *testing.T) {
	for id, field := range map[ID]string{Int3InFunction: "Optimize.Int3Blocks", IndirectJump: "Optimize.IndirectJumps", ThunkJump: "Optimize.ThunkRange"} {
		end, ended := profile.Ended(field)
		require.True(t, ended)
		require.True(t, strings.HasSuffix(id.Why(), " (before "+end.String()+")"), id.Why())
	}
	require.NotContains(t, JTPRTarget.Why(), "before")
	for id := ID(1); id < numRules; id++ {
		require.NotRegexp(t, `\((to|from|until) \d+\.\d`, id.row().why+id.row().here, "a release in the text of %s", id)
	}
}
