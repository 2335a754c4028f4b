package kimage

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuildIDAmongNotes(t *testing.T) {
	const other = "04000000 04000000 01000000 58656e00 01020304 "
	for notes, want := range map[string]string{
		"04000000 04000000 03000000 474e5500 deadbeef":         "deadbeef",
		other + "04000000 03000000 03000000 474e5500 abcdef00": "abcdef",
		other:                                 "",
		"":                                    "",
		"04000000 04000000 03000000 474e5500": "", // the content is cut off
		"ffffffff ffffffff 03000000 474e5500 deadbeef":                   "", // lengths that wrap
		"04000000 00000000 03000000 474e5500":                            "", // empty
		"04000000 48000000 03000000 474e5500" + strings.Repeat("00", 72): "", // too long to be one
	} {
		require.Equal(t, want, buildID(fromHex(t, notes)), notes)
	}
	require.Empty(t, openBytes(t, testKernel(v61), nil).BuildID())
}
