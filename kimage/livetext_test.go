package kimage

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

func TestLiveText(t *testing.T) {
	live := bytes.Repeat([]byte{0xcc}, 0x100)
	elf := testELF(etExec,
		testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testBase, data: live},
		testSection{name: ".rodata", typ: 1, flags: shfAlloc, addr: testBase + 0x1000, data: []byte("live data")})
	cases := []struct {
		name       string
		file       []byte
		suffix     string
		start, end x86.Addr
	}{
		{"elf", elf, "", testBase, testBase + 0x100},
		{"elf_gzip", packGzip(t, elf), "", testBase, testBase + 0x100},
		{"raw_from_stext", live, "", testBase, testBase + 0x100},
		{"raw_at", live[:16], "@ffffffff81000010", testBase + 0x10, testBase + 0x20},
		{"raw_at_0x_gzip", packGzip(t, live[:16]), "@0xffffffff81000010", testBase + 0x10, testBase + 0x20},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			img := openBytes(t, testKernel(v61), &Options{LiveText: writeFile(t, "live", c.file) + c.suffix})
			require.Equal(t, x86.Range{Start: c.start, End: c.end}, img.live)
			for a := x86.Addr(testBase); a < testBase+0x100; a++ {
				want := byte(0x90)
				if img.live.Contains(a) {
					want = 0xcc
				}
				require.Equal(t, want, img.bytes(a, 1)[0], a)
			}
			b := make([]byte, 4)
			img.CodeAt(testBase+0x1000, b)
			require.Equal(t, c.name == "elf" || c.name == "elf_gzip", string(b) == "live")
		})
	}
}

func TestLiveTextWrong(t *testing.T) {
	file := writeFile(t, "live", []byte{1, 2, 3})
	for opt, want := range map[string]string{
		file + "@nonsense":                     "a hexadecimal address is wanted",
		file + "@0x1000":                       "are outside of the image",
		file + "-absent":                       "no such file",
		writeFile(t, "e", testObject()) + "@0": "outside of the image",
	} {
		_, err := FromBytes("k", testKernel(v61), &Options{LiveText: opt})
		require.ErrorContains(t, err, want)
	}
}

// Another kernel's text, or a file that is no text, has little in common with
// the image's; text as boot leaves it has most.
func TestLiveTextOfAnotherImage(t *testing.T) {
	rodata := openBytes(t, testKernel(v61), nil).section(".rodata")
	text := bytes.Clone(rodata.Data)
	require.Greater(t, len(text), judged)
	open := func(changed int) error {
		live := bytes.Clone(text)
		for i := range changed {
			live[i] ^= 0xff
		}
		file := writeFile(t, "live", live) + "@" + rodata.Addr.String()
		_, err := FromBytes("k", testKernel(v61), &Options{LiveText: file})
		return err
	}
	require.NoError(t, open(len(text)/2))
	err := open(len(text)/2 + 2)
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, "live: it is no text of this image: of ")
}
