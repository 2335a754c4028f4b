package mailbox

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/errno"
	"kprobelab/x86"
)

// mailboxOf is the mailbox after a host has written into it.
func mailboxOf(t require.TestingT, c Command) []byte {
	pieces, err := c.Pieces()
	require.NoError(t, err)
	b := make([]byte, Size)
	for _, p := range pieces {
		at := int(p.At - Addr)
		require.LessOrEqual(t, at+len(p.Bytes), Size)
		copy(b[at:], p.Bytes)
	}
	return b
}

// taken is the command as init takes it.
func taken(b []byte) Command {
	u := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	data := b[dataAt:]
	list := strings.SplitAfter(string(data[:u(atInput)]), "\x00")
	for i := range list {
		list[i] = strings.TrimSuffix(list[i], "\x00")
	}
	argc, envc := u(atArgc), u(atEnvc)
	return Command{
		Kind: Kind(u(atCommand)), Args: list[:argc], Env: list[argc : argc+envc], Dir: list[argc+envc],
		Input: data[u(atInput) : u(atInput)+u(atInputSize)],
	}
}

func TestCommandArrives(t *testing.T) {
	text := rapid.StringMatching(`[^\x00]{0,20}`)
	rapid.Check(t, func(t *rapid.T) {
		c := Command{
			Kind: Kind(rapid.IntRange(1, 5).Draw(t, "kind")), Args: rapid.SliceOfN(text, 1, 20).Draw(t, "args"),
			Env: rapid.SliceOfN(text, 0, 20).Draw(t, "env"), Dir: text.Draw(t, "dir"), Input: rapid.SliceOf(rapid.Byte()).Draw(t, "input"),
		}
		got := taken(mailboxOf(t, c))
		require.Equal(t, c.Kind, got.Kind)
		require.Equal(t, c.Args, got.Args)
		require.Equal(t, append([]string{}, c.Env...), append([]string{}, got.Env...))
		require.Equal(t, c.Dir, got.Dir)
		require.Equal(t, string(c.Input), string(got.Input))
	})
}

func TestCommandsThatDoNotFit(t *testing.T) {
	for name, c := range map[string]Command{
		"no_program":     {Kind: Exec},
		"nul":            {Kind: Exec, Args: []string{"/bin/\x00sh"}},
		"many_arguments": {Kind: Exec, Args: make([]string, maxArgs+1)},
		"large_input":    {Kind: Exec, Args: []string{"/bin/sh"}, Input: make([]byte, Size)},
	} {
		_, err := c.Pieces()
		require.ErrorIs(t, err, ErrCommand, name)
	}
}

func TestProgram(t *testing.T) {
	for line, want := range map[string][]string{
		`/bin/true`:                        {"/bin/true"},
		" /bin/sh\t-c  'echo \"a b\" \\' ": {"/bin/sh", "-c", `echo "a b" \`},
		`/bin/echo "it's" a\ b '' "\""`:    {"/bin/echo", "it's", "a b", "", `"`},
		`/bin/echo a"b"'c'`:                {"/bin/echo", "abc"},
	} {
		c, err := Program(Exec, line, nil)
		require.NoError(t, err, line)
		require.Equal(t, want, c.Args, line)
	}
	for _, line := range []string{"", "  ", "true", "./x", "/bin/sh 'x", `/bin/sh "`} {
		_, err := Program(Exec, line, nil)
		require.ErrorIs(t, err, ErrCommand, line)
	}
}

func TestSite(t *testing.T) {
	header := make([]byte, HeaderSize)
	binary.LittleEndian.PutUint64(header[atMagic:], Magic)
	binary.LittleEndian.PutUint32(header[atVersion:], Version)
	binary.LittleEndian.PutUint64(header[atCall:], 0x6b600123)
	at, err := Site(header)
	require.NoError(t, err)
	require.Equal(t, x86.Addr(0x6b600123), at)

	header[atVersion]++
	_, err = Site(header)
	require.ErrorIs(t, err, ErrNone)
	require.ErrorContains(t, err, "version 2")
	for _, other := range [][]byte{nil, make([]byte, HeaderSize), header[:8]} {
		_, err := Site(other)
		require.ErrorIs(t, err, ErrNone)
	}
}

// guest is memory with one text in it.
type guest struct {
	at   x86.Addr
	text string
}

var errAway = errors.New("away")

func (g guest) ReadUser(at x86.Addr, p []byte) error {
	if at != g.at {
		return errAway
	}
	copy(p, g.text)
	return nil
}

func TestCalls(t *testing.T) {
	var said []string
	out := func(fd int, b []byte) error {
		said = append(said, string(rune('0'+fd))+string(b))
		return nil
	}
	g := guest{0x6b603000, "hello"}
	o, err := Take(Ready, Version, 0, 0, g, out)
	require.NoError(t, err)
	require.Nil(t, o)
	o, err = Take(Out, 2, 0x6b603000, 5, g, out)
	require.NoError(t, err)
	require.Nil(t, o)
	require.Equal(t, []string{"2hello"}, said)
	o, err = Take(Exit, 3<<8, 0, 0, g, out)
	require.NoError(t, err)
	require.Equal(t, 3, o.Code())
	require.Zero(t, o.Signal())
	o, err = Take(Exit, 11, 0, 0, g, out)
	require.NoError(t, err)
	require.Equal(t, 139, o.Code())
	require.Equal(t, 11, o.Signal())
	o, err = Take(Exit, 0, 2, 0, g, out)
	require.NoError(t, err)
	require.Equal(t, errno.ENOENT, o.Errno)
}

// A guest that runs wild says anything.
func TestCallsThatAreNotInits(t *testing.T) {
	out := func(int, []byte) error { panic("no output") }
	for name, c := range map[string][4]uint64{
		"version": {uint64(Ready), 77}, "descriptor": {uint64(Out), 3, 0, 1}, "size": {uint64(Out), 1, 0, 1 << 40}, "kernel_memory": {uint64(Out), 1, 0xffffffff81000000, 8},
		"wrap": {uint64(Out), 1, 1<<64 - 8, 16}, "past_the_end": {uint64(Out), 1, 1<<47 - 8, 16}, "operation": {9},
	} {
		_, err := Take(Op(c[0]), c[1], c[2], c[3], guest{}, out)
		require.ErrorIs(t, err, ErrCall, name)
	}
	_, err := Take(Out, 1, 0x1000, 4, guest{}, out)
	require.ErrorIs(t, err, errAway)
}

func TestIsCall(t *testing.T) {
	for rax, want := range map[uint64]Op{0x6b700000: Ready, 0x6b700001: Out, 0x6b700002: Exit, 0xffffffff6b700001: Out} {
		op, ok := IsCall(rax)
		require.True(t, ok)
		require.Equal(t, want, op)
	}
	for _, rax := range []uint64{0, 1, 110, 0x6b700003, 0x6b710000, 0x40000000} {
		_, ok := IsCall(rax)
		require.False(t, ok, "%#x", rax)
	}
}
