package supervisor

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The supervisor's source and this package say the same numbers, and no other.
func TestHeaderAgrees(t *testing.T) {
	text, err := os.ReadFile("../../testdata/init/supervise.h")
	require.NoError(t, err)
	got := map[string]uint64{}
	for _, m := range regexp.MustCompile(`(?m)^#define SUPERVISE_(\w+)\s+(\w+)`).FindAllStringSubmatch(string(text), -1) {
		v, err := strconv.ParseUint(m[2], 0, 64)
		require.NoError(t, err, m[0])
		got[m[1]] = v
	}
	require.Equal(t, map[string]uint64{
		"VERSION": Version, "PROGRAMS": Programs, "JOB_SIZE": JobSize, "INPUT_SIZE": InputSize, "MAX_ARGS": MaxStrings,
		"BEGIN": uint64(Begin), "ASK": uint64(Ask), "OUT": uint64(Out), "ENDED": uint64(Ended),
		"WAIT": uint64(Wait), "START": uint64(Start), "SIGNAL": uint64(Signal), "INPUT": uint64(Input), "CLOSE": uint64(Close), "END": uint64(End),
		"AT_ARGC": atArgc, "AT_ENVC": atEnvc, "AT_STRINGS": atStrings,
		"AT_RIGHTS": atRights, "AT_USER": atUser, "AT_GROUP": atGroup, "AT_LIMITED": atLimited, "AT_CAPS": atCaps, "AT_LIMITS": atLimits,
		"LIMITS": Limits, "HAS_USER": hasUser, "HAS_CAPS": hasCaps,
	}, got)
}

func TestJobs(t *testing.T) {
	b, err := Job([]string{"/bin/x", ""}, []string{"A=b"}, "/", &Rights{})
	require.NoError(t, err)
	require.Equal(t, "/bin/x\x00\x00A=b\x00/\x00", string(b[atStrings:]))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"none":  {nil, "no program is named"},
		"nul":   {[]string{"a\x00b"}, "has a NUL in it"},
		"many":  {make([]string, MaxStrings+1), "4097 arguments and strings of environment; 4096 are possible"},
		"large": {[]string{strings.Repeat("x", JobSize)}, "more than 261824 bytes"},
	} {
		_, err := Job(c.args, nil, "/", &Rights{})
		require.ErrorIs(t, err, ErrJob, name)
		require.ErrorContains(t, err, c.want, name)
	}
}

func TestCallsAndStreams(t *testing.T) {
	for rax, want := range map[uint64]Op{0x6b700010: Begin, 0x6b700011: Ask, 0x6b700012: Out, 0xffffffff6b700013: Ended} {
		op, ok := IsCall(rax)
		require.True(t, ok)
		require.Equal(t, want, op)
	}
	for _, rax := range []uint64{0, 0x6b700000, 0x6b70000f, 0x6b700014, 0x6b710010} {
		_, ok := IsCall(rax)
		require.False(t, ok, "%#x", rax)
	}
	n, fd, ok := Stream(0x207)
	require.Equal(t, []any{7, 2, true}, []any{n, fd, ok})
	for _, rdi := range []uint64{0, 0x308, 0x300, 0x10100, 1 << 40} {
		_, _, ok := Stream(rdi)
		require.False(t, ok, "%#x", rdi)
	}
	require.Equal(t, uint64(5<<32|3<<8|2), Answer(Signal, 3, 5))
}
