package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/decoder"
	"kprobelab/x86"
)

// TestDifferencesAreListed: what two decoders read differently is listed, and
// is the exit code unless the command has its own error.
func TestDifferencesAreListed(t *testing.T) {
	img, err := kprobelab.OpenImage("", nil)
	require.NoError(t, err)
	gcd := img.Lookup("gcd")[0].Addr
	both := decoder.NewBoth(decoder.X86asm{Bare: true}, decoder.Tables{})
	for _, at := range []x86.Addr{gcd + 4, 0x1000} {
		both.Read([]byte("\xf3\x0f\x1e\xfa\x90"), at)
	}
	both.Read([]byte("\x90"), gcd)
	var out, stderr bytes.Buffer
	term := newTerm(&out, &stderr)
	term.compared = []*compared{{name: "guest kernel", view: img, both: both}, {both: both}}
	err = term.differences(nil)
	require.EqualError(t, err, "the decoders differ at 2 addresses")
	require.Equal(t, exitRefused, exitCode(err))
	require.Equal(t, `guest kernel: 0x1000: f3 0f 1e fa: bare x86asm: 1 byte, no branch; tables: 4 bytes, no branch
guest kernel: gcd+0x4 (`+(gcd+4).String()+`): f3 0f 1e fa: bare x86asm: 1 byte, no branch; tables: 4 bytes, no branch
guest kernel: bare x86asm and tables were compared 3 times and differ at 2 addresses
`, stderr.String())
	own := errors.New("its own")
	require.Equal(t, own, term.differences(own))
}
