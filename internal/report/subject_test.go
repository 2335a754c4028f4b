package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/internal/tinyprogram"
	"kprobelab/kimage"
	"kprobelab/profile"
)

// Code that belongs to no kernel is explained by the rules of a profile alone.
func TestSubjectsWithoutAKernel(t *testing.T) {
	rules, err := profile.Find(profile.Default)
	require.NoError(t, err)
	s, err := OfCode([]byte{0x90, 0xc3}, "", rules, decoder.Tables{})
	require.NoError(t, err)
	require.Nil(t, s.File)
	require.Equal(t, "example of 2 bytes: profile "+rules.Name, s.Heading)
	e, err := s.Explain(ExampleName + "+1")
	require.NoError(t, err)
	require.Zero(t, e.Errno)
	require.Equal(t, ExampleBase+1, e.PlacedAt.Addr)
	_, err = OfCode([]byte{0x90}, "no such processor", rules, decoder.Tables{})
	require.ErrorIs(t, err, kimage.ErrCPU)

	_, _, err = OfObject("a.s", []byte("nothing"), rules, decoder.Tables{})
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrNoLabel)
}

// An object's first function is the one that an offset alone means; a stripped program knows its functions by its file.
func TestSubjectsOfFiles(t *testing.T) {
	rules, err := profile.Find(profile.Default)
	require.NoError(t, err)
	b, err := tinyprogram.Build(nil, tinyprogram.Function{Name: "_start", Text: "xor %edi,%edi\nmov $0x3c,%eax\nsyscall"})
	require.NoError(t, err)
	s, first, err := OfObject("tiny", b, rules, decoder.X86asm{})
	require.NoError(t, err)
	require.Equal(t, "_start", first)
	require.Equal(t, "tiny: profile "+rules.Name, s.Heading)
	require.Empty(t, s.CPU)
	require.NotNil(t, s.File)
	e, err := s.Explain(InFunction(first, "2"))
	require.NoError(t, err)
	require.True(t, e.PlacedAt.Known)
}
