package vmcore

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// full is a dump of a machine whose n pages cannot be packed, in parts of so many pages.
func full(n, part int) *Image {
	img := &Image{VMCoreInfo: []byte(info)}
	random := rand.New(rand.NewPCG(1, 2))
	for at := 0; at < n; at += part {
		b := make([]byte, part*PageSize)
		for i := 0; i < len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], random.Uint64())
		}
		phys := uint64(at) * 2 * PageSize
		img.Memory = append(img.Memory, Memory{Placed{Range{phys, uint64(len(b))}, 0xffff888000000000 + phys}, bytes.NewReader(b)})
	}
	return img
}

// oneBytePieces is a flattened file of pieces of a byte, each in a page of its own.
func oneBytePieces(n int) []byte {
	out := make([]byte, flatHeaderSize)
	copy(out, flatMagic)
	for i := range n {
		out = binary.BigEndian.AppendUint64(out, uint64(i*PageSize))
		out = append(binary.BigEndian.AppendUint64(out, 1), 1)
	}
	return append(out, bytes.Repeat([]byte{0xff}, flatPieceSize)...)
}

// twice is a flattened file with each of its pieces once more.
func twice(flat []byte) []byte {
	end := len(flat) - flatPieceSize
	return append(flat[:end:end], flat[flatHeaderSize:]...)
}

func zstdBytes(t require.TestingT, b []byte) []byte {
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return z.EncodeAll(b, nil)
}

// Whatever form a dump has, what has to be kept unpacked of it is counted.
func TestDumpsThatTakeMemory(t *testing.T) {
	const n = 300
	elf := written(t, full(n, n))
	kdump := kdumpOf(t, full(n, n), kdumpOptions{version: 6, machine: "x86_64"})
	for name, c := range map[string]struct {
		file  []byte
		pages int64 // that it takes, but for some headers
	}{
		"zstd":                          {zstdBytes(t, elf), n},
		"gzip":                          {gzipped(t, elf), n},
		"flattened":                     {flattened(elf), n},
		"flattened_kdump":               {flattened(kdump), 2 * n},
		"flattened_in_zstd":             {zstdBytes(t, flattened(elf)), 2 * n},
		"flattened_kdump_in_gzip":       {gzipped(t, flattened(kdump)), 3 * n},
		"kdump_that_is_copied":          {kdump, n},
		"kdump_in_zstd":                 {zstdBytes(t, kdump), 2 * n},
		"elf_of_many_segments":          {written(t, full(n, 3)), n},
		"elf_of_many_segments_in_zstd":  {zstdBytes(t, written(t, full(n, 3))), 2 * n},
		"pages_of_one_byte_in_pieces":   {oneBytePieces(n), n},
		"piece_written_again_and_again": {twice(flattened(elf)), n},
	} {
		t.Run(name, func(t *testing.T) {
			// use opens a dump and maps its memory, as a machine does.
			use := func(most int64) (*Core, error) {
				core := &Core{name: "dump", most: most, disk: func() (*os.File, error) { return nil, errHeld }}
				defer func() { require.NoError(t, core.Close()) }()
				_, err := core.open(source{ReaderAt: bytes.NewReader(c.file), size: int64(len(c.file))})
				if err == nil {
					_, err = core.Map()
				}
				return core, err
			}
			_, err := use((c.pages - 1) * PageSize)
			require.ErrorContains(t, err, errHeld.Error())
			core, err := use((c.pages + 64) * PageSize)
			if name != "pages_of_one_byte_in_pieces" { // which is no dump
				require.NoError(t, err)
			}
			require.NotErrorIs(t, err, errHeld)
			require.GreaterOrEqual(t, core.held, c.pages*PageSize)
		})
	}
}

// A dump that is too large for the memory is unpacked on a disk, and is the same dump; the files are gone with it.
func TestDumpsThatAreUnpackedOnDisk(t *testing.T) {
	const n = 300
	elf := written(t, full(n, n))
	kdump := kdumpOf(t, full(n, n), kdumpOptions{version: 6, machine: "x86_64"})
	whole, err := fromBytes(elf)
	require.NoError(t, err)
	for name, file := range map[string][]byte{
		"zstd": zstdBytes(t, elf), "flattened": flattened(elf), "flattened_kdump_in_gzip": gzipped(t, flattened(kdump)), "kdump": kdump,
		"written_again_and_again": twice(flattened(elf)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			if inMemory(os.Getenv("TMPDIR")) {
				t.Setenv("TMPDIR", "") // the folder for large ones
			}
			for _, most := range []int64{PageSize, 7 * PageSize, n / 2 * PageSize, (n + n/2) * PageSize} {
				core := &Core{name: "dump", most: most}
				_, err := core.open(source{ReaderAt: bytes.NewReader(file), size: int64(len(file))})
				require.NoError(t, err)
				_, err = core.Map()
				require.NoError(t, err)
				require.LessOrEqual(t, core.held, most)
				require.Equal(t, whole.RAM(), core.RAM())
				want, got := make([]byte, PageSize), make([]byte, PageSize)
				for _, r := range core.RAM() {
					for at := r.Phys; at < r.End(); at += PageSize {
						require.NoError(t, whole.ReadPhys(at, want))
						require.NoError(t, core.ReadPhys(at, got))
						require.Equal(t, want, got, "%#x", at)
					}
				}
				require.NoError(t, core.Close())
			}
			if dir := os.Getenv("TMPDIR"); dir != "" {
				list, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Empty(t, list)
			}
		})
	}
	t.Run("folder_in_memory", func(t *testing.T) {
		if !inMemory("/dev/shm") {
			t.Skip("no folder in memory here")
		}
		t.Setenv("TMPDIR", "/dev/shm")
		_, err := diskFile()
		require.ErrorIs(t, err, errHeld)
	})
	t.Run("folder_that_is_not_there", func(t *testing.T) {
		t.Setenv("TMPDIR", "/nosuch")
		_, err := diskFile()
		require.ErrorIs(t, err, os.ErrNotExist)
	})
}

// The bits of a bitmap of page frames make no list that is longer than a dump's may be.
func TestFramesThatAlternate(t *testing.T) {
	b := kdumpOf(t, evenMachine(), whole())
	h, err := parseKdump(source{ReaderAt: bytes.NewReader(b), size: int64(len(b))})
	require.NoError(t, err)
	at, half := (1+h.subBlocks)*h.blockSize, int64(32<<20)
	big := append(b[:at:at], bytes.Repeat([]byte{0x55}, int(half))...)
	big = append(big, make([]byte, half)...)
	le.PutUint32(big[kdumpBitBlocksAt:], uint32(2*half/PageSize))
	le.PutUint64(big[PageSize+kdumpMaxPFN64At:], bounded.DumpPages)
	_, err = fromBytes(big)
	require.ErrorContains(t, err, "more than 65536 separate ranges")
	require.Len(t, newBitmap(bytes.Repeat([]byte{0x55}, 1<<20)).ranges(100), 100)
}
