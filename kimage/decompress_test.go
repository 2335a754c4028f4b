package kimage

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

func packGzip(t testing.TB, b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// packStored is an lzop file of blocks that would not shrink.
func packStored(b []byte) []byte {
	out := []byte("\x89LZO\x00\r\n\x1a\n\x10\x40\x20\xa0\x09\x40\x03\x09\x00\x00\x00\x00")
	out = append(out, make([]byte, 4+4+4+1+4)...) // mode, time, name, checksum
	for len(b) > 0 {
		n := min(len(b), 256<<10)
		out = binary.BigEndian.AppendUint32(out, uint32(n))
		out = binary.BigEndian.AppendUint32(out, uint32(n))
		out = append(out, b[:n]...)
		b = b[n:]
	}
	return append(out, 0, 0, 0, 0)
}

// testPacked is b in every format that there is a packer for.
func testPacked(t testing.TB, b []byte) map[string][]byte {
	packed := map[string][]byte{"gzip": packGzip(t, b)}
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	packed["zstd"] = z.EncodeAll(b, nil)
	var lz bytes.Buffer
	lw := lz4.NewWriter(&lz)
	require.NoError(t, lw.Apply(lz4.LegacyOption(true)))
	_, err = lw.Write(b)
	require.NoError(t, err)
	require.NoError(t, lw.Close())
	packed["lz4 legacy"] = lz.Bytes()
	var x bytes.Buffer
	xw, err := xz.NewWriter(&x)
	require.NoError(t, err)
	_, err = xw.Write(b)
	require.NoError(t, err)
	require.NoError(t, xw.Close())
	packed["xz"] = x.Bytes()
	var l bytes.Buffer
	zw, err := lzma.NewWriter(&l)
	require.NoError(t, err)
	_, err = zw.Write(b)
	require.NoError(t, err)
	require.NoError(t, zw.Close())
	packed["lzma"] = l.Bytes()
	packed["lzo stored"] = packStored(b)
	return packed
}

// TestCompressions opens the same kernel in every packing, as a bzImage and as
// a compressed ELF.
func TestCompressions(t *testing.T) {
	kernel := testKernel(v61)
	want := openBytes(t, kernel, nil).Symbols()
	for name, p := range testPacked(t, kernel) {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, want, openBytes(t, testBzImage(p, len(kernel)), nil).Symbols())
			require.Equal(t, want, openBytes(t, p, nil).Symbols())
		})
	}
	t.Run("none", func(t *testing.T) {
		require.Equal(t, want, openBytes(t, testBzImage(kernel, len(kernel)), nil).Symbols())
	})
}

// TestDamagedPayload cuts and flips each packing: an error, and no panic.
func TestDamagedPayload(t *testing.T) {
	kernel := testKernel(v61)
	for name, p := range testPacked(t, kernel) {
		t.Run(name, func(t *testing.T) {
			_, err := FromBytes("cut", p[:len(p)/2], nil)
			require.ErrorIs(t, err, ErrFormat)
			require.NotContains(t, err.Error(), "\n")
			for i := 8; i < len(p); i += 1 + len(p)/40 {
				bad := bytes.Clone(p)
				bad[i] ^= 0xff
				_, _ = FromBytes("flip", bad, nil)
			}
		})
	}
}

// The output of xz --x86, xz --check=crc64, bzip2, lzop -9 and lzop --crc32 for testPlain.
const (
	packedX86   = "fd377a585a0000016922de3602010400210110008b216f49e0040f006f5d002a1a08a2032566f14b78c5a205ff2ee6d9d2201aaf02eeb3b8d413c54a8b84e4bd7467732909b1825408000b891167da6b66338477762231b6ca49629dcb712b52849a8761f31f71a3783cdcdd247c521630c43cbc83ec1ee96bf93c8fd01e334391f3fe86f77e77c28068d504f10000007931059200018701900800001169d34e3e300d8b020000000001595a"
	packedCRC64 = "fd377a585a000004e6d6b4460200210116000000742fe5a3e0040f00285d002a1a08a2032566f14b78c5a205ff2ee6d9d2201aaf02eeb3b8d413c54a8ac4c140b418aa0b90000000bcdb5f59937c7199000144900800000058932e43b1c467fb020000000004595a"
	packedBzip2 = "425a6839314159265359864cc62a0000b453817800400104001b69b2c0004020007051a32068d32340a55464d0323469ea642604c84cc4d2a3d09ec4d44cb0277f1546e26e27313613f09b8981302702682702604c04d6a33fe2ee48a70a1210c998c540"
	packedLzo   = "894c5a4f000d0a1a0a104020a0094003090300000d000081a46b01ae080000000000347a03bd000004100000002adfa24c682654686520717569636b2062726f776e20666f782e202000000015500002e80102030020a2100011000000000000"
	packedCRC32 = "894c5a4f000d0a1a0a104020a0100103090300110c000081a46b01ae0800000000005c34406d000004100000002a920531792654686520717569636b2062726f776e20666f782e202000000015500002e80102030020a2100011000000000000"
)

func testPlain() []byte {
	return append(bytes.Repeat([]byte("The quick brown fox. "), 40), bytes.Repeat([]byte{0xe8, 1, 2, 3, 0}, 40)...)
}

func TestDecompressFixed(t *testing.T) {
	for name, s := range map[string]string{"xz_x86_filter": packedX86, "xz_crc64": packedCRC64, "bzip2": packedBzip2, "lzo": packedLzo, "lzo_crc32": packedCRC32} {
		t.Run(name, func(t *testing.T) {
			b, err := hex.DecodeString(s)
			require.NoError(t, err)
			got, err := decompressBeside("x", b, nil)
			require.NoError(t, err)
			require.Equal(t, testPlain(), got)
			for i := range b {
				_, _ = decompressBeside("x", b[:i], nil)
			}
			if name != "bzip2" {
				b[len(b)/2] ^= 1
				_, err = decompressBeside("x", b, nil)
				require.ErrorIs(t, err, ErrFormat)
			}
		})
	}
}

// TestBombs: a small file that unpacks to a gigabyte is refused before it has cost
// that much, also where its first bytes are a kernel's.
func TestBombs(t *testing.T) {
	kernel := testKernel(v61)
	long := bytes.Clone(kernel[:ehdrSize])
	le.PutUint64(long[40:], maxImage-shdrSize) // the section headers are said to come last
	for name, head := range map[string][]byte{"zeros": nil, "elf": kernel, "long_elf": long} {
		t.Run(name, func(t *testing.T) {
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			_, err := w.Write(head)
			require.NoError(t, err)
			for range 80 {
				_, err = w.Write(make([]byte, 1<<20))
				require.NoError(t, err)
			}
			require.NoError(t, w.Close())
			most := int64(0)
			_, err = FromBytes("bomb", packed.Bytes(), &Options{Progress: func(_ string, done, _ int64) { most = max(most, done) }})
			require.ErrorIs(t, err, ErrFormat)
			require.Less(t, most, int64(66<<20))
			if head != nil {
				require.ErrorContains(t, err, "it unpacks to more than 100 times its size, which no kernel does")
			}
		})
	}
}

// TestExtentIsNotBelieved: an ELF that says that it is longer than it is costs no
// memory to keep.
func TestExtentIsNotBelieved(t *testing.T) {
	b := bytes.Clone(testKernel(v61))
	le.PutUint64(b[40:], maxImage-shdrSize*100)
	got, err := unwrap("x", packGzip(t, b), nil)
	require.NoError(t, err)
	require.Equal(t, b, got)
	require.Less(t, cap(got), 2*len(b)+1<<20)
}

// TestImageExtent: what follows the image is dropped, what its section headers
// describe is not.
func TestImageExtent(t *testing.T) {
	kernel := testKernel(v61)
	for name, after := range map[string]int{"nothing": 0, "little": 4, "much": 3 << 20} {
		t.Run(name, func(t *testing.T) {
			got, err := unwrap("x", packGzip(t, append(bytes.Clone(kernel), make([]byte, after)...)), nil)
			require.NoError(t, err)
			require.True(t, bytes.HasPrefix(got, kernel))
			require.LessOrEqual(t, len(got), max(len(kernel), 64<<10))
		})
	}
}

func TestProgress(t *testing.T) {
	big := make([]byte, 4<<20)
	for i := range big { // a pattern that packs some, and not too well
		big[i] = byte(i * i >> 12)
	}
	var calls int
	var last int64
	_, err := decompressBeside("x", packGzip(t, big), func(stage string, done, _ int64) {
		require.Equal(t, "decompress", stage)
		require.Greater(t, done, last)
		last = done
		calls++
	})
	require.NoError(t, err)
	require.Greater(t, last, int64(3<<20))
	require.Greater(t, calls, 2)
}
