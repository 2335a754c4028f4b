package vmcore

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// packs are the ways to pack a page.
var packs = map[uint32]func(t require.TestingT, page []byte) []byte{
	0: func(_ require.TestingT, page []byte) []byte { return page },
	pageZlib: func(t require.TestingT, page []byte) []byte {
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, err := z.Write(page)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		return b.Bytes()
	},
	pageSnappy: func(_ require.TestingT, page []byte) []byte { return snappy.Encode(nil, page) },
	pageZstd: func(t require.TestingT, page []byte) []byte {
		z, err := zstd.NewWriter(nil)
		require.NoError(t, err)
		return z.EncodeAll(page, nil)
	},
	pageLZO: lzoCopy,
}

// lzoCopy packs a page, all of whose bytes are the same, as four literals and a copy of
// them: there is no LZO compressor to link. A length of 33 and more is counted in zeros
// of 255 each and a last byte.
func lzoCopy(t require.TestingT, page []byte) []byte {
	require.Equal(t, len(page), bytes.Count(page, page[:1]))
	b := append([]byte{17 + 4}, page[:4]...)
	rest := len(page) - 4 - 33
	b = append(b, 0x20)
	for ; rest > 255; rest -= 255 {
		b = append(b, 0)
	}
	return append(b, byte(rest), 0, 0, 0x11, 0, 0)
}

// kdumpOptions say how a kdump-compressed dump is made.
type kdumpOptions struct {
	pack           uint32
	version, level uint32
	split          bool
	machine        string
	// without says which pages are left out, by their physical address.
	without func(phys uint64, page []byte) bool
}

// kdumpOf is a dump of a machine in the kdump-compressed form.
func kdumpOf(t require.TestingT, img *Image, o kdumpOptions) []byte {
	frames := uint64(0)
	for _, m := range img.Memory {
		frames = max(frames, m.End()/PageSize)
	}
	half := (frames/8 + PageSize) &^ (PageSize - 1)
	bitmaps := make([]byte, 2*half)
	var pages, descs []byte
	notes := (&Image{CPUs: img.CPUs}).notes()
	subBlocks := 1 + (uint64(len(notes))+uint64(len(img.VMCoreInfo))+PageSize-1)/PageSize
	var list [][]byte
	for _, m := range img.Memory {
		data := make([]byte, m.Size)
		_, err := m.Data.ReadAt(data, 0)
		require.NoError(t, err)
		for phys := m.Phys; phys < m.End(); phys += PageSize {
			page := data[phys-m.Phys:][:PageSize]
			frame := phys / PageSize
			bitmaps[frame/8] |= 1 << (frame % 8)
			if o.without == nil || !o.without(phys, page) {
				bitmaps[half+frame/8] |= 1 << (frame % 8)
				list = append(list, page)
			}
		}
	}
	at := (1+subBlocks)*PageSize + 2*half + uint64(len(list))*kdumpDescSize
	for _, page := range list {
		packed := packs[o.pack](t, page)
		descs = le.AppendUint64(descs, at+uint64(len(pages)))
		descs = le.AppendUint32(descs, uint32(len(packed)))
		descs = le.AppendUint32(descs, o.pack)
		descs = le.AppendUint64(descs, 0)
		pages = append(pages, packed...)
	}
	b := make([]byte, (1+subBlocks)*PageSize)
	copy(b, kdumpMagic)
	le.PutUint32(b[kdumpVersionAt:], o.version)
	copy(b[kdumpMachineAt:], o.machine)
	le.PutUint32(b[kdumpBlockSizeAt:], PageSize)
	le.PutUint32(b[kdumpSubBlocksAt:], uint32(subBlocks))
	le.PutUint32(b[kdumpBitBlocksAt:], uint32(2*half/PageSize))
	le.PutUint32(b[kdumpMaxPFNAt:], uint32(frames))
	sub := b[PageSize:]
	le.PutUint32(sub[kdumpLevelAt:], o.level)
	if o.split {
		sub[kdumpSplitAt] = 1
	}
	le.PutUint64(sub[kdumpInfoAt:], 2*PageSize)
	le.PutUint64(sub[kdumpInfoAt+8:], uint64(len(img.VMCoreInfo)))
	le.PutUint64(sub[kdumpNotesAt:], 2*PageSize+uint64(len(img.VMCoreInfo)))
	le.PutUint64(sub[kdumpNotesAt+8:], uint64(len(notes)))
	le.PutUint64(sub[kdumpMaxPFN64At:], frames)
	copy(sub[PageSize:], append(bytes.Clone(img.VMCoreInfo), notes...))
	return bytes.Join([][]byte{b, bitmaps, descs, pages}, nil)
}

// flattened is a file in the flattened form, its pieces not in order.
func flattened(b []byte) []byte {
	out := make([]byte, flatHeaderSize)
	copy(out, flatMagic)
	piece := func(at, end int) {
		out = binary.BigEndian.AppendUint64(out, uint64(at))
		out = binary.BigEndian.AppendUint64(out, uint64(end-at))
		out = append(out, b[at:end]...)
	}
	piece(0, PageSize)
	piece(len(b)/2, len(b))
	piece(PageSize, len(b)/2)
	piece(PageSize, PageSize+1)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(out, 1<<64-1), 1<<64-1)
}

// evenMachine is machine() with pages of one byte each.
func evenMachine() *Image {
	img := machine()
	img.Memory[1].Data = bytes.NewReader(bytes.Repeat([]byte{7}, int(img.Memory[1].Size)))
	img.Memory[0].Phys, img.Memory[1].Phys, img.Also = 0x10000, 0x100000, nil
	return img
}

func whole() kdumpOptions { return kdumpOptions{version: 6, machine: "x86_64", pack: pageZlib} }

func TestKdump(t *testing.T) {
	img := evenMachine()
	want, err := fromBytes(written(t, img))
	require.NoError(t, err)
	for pack := range packs {
		for _, flat := range []bool{false, true} {
			o := whole()
			o.pack = pack
			b, format := kdumpOf(t, img, o), "kdump"
			if flat {
				b, format = flattened(b), "kdump, flattened"
			}
			c, err := fromBytes(b)
			require.NoError(t, err)
			require.Equal(t, format, c.Format())
			require.Equal(t, want.CPUs(), c.CPUs())
			require.Equal(t, want.RAM(), c.RAM())
			require.Equal(t, want.RawVMCoreInfo(), c.RawVMCoreInfo())
			require.Equal(t, written(t, want.Image()), written(t, c.Image()), "pack %d", pack)
			requirePieces(t, c)
			require.NoError(t, c.Close())
		}
	}
}

// Older headers have fewer members.
func TestKdumpVersions(t *testing.T) {
	for version := range uint32(7) {
		o := whole()
		o.version = version
		c, err := fromBytes(kdumpOf(t, evenMachine(), o))
		if version == 0 {
			require.ErrorContains(t, err, "its header has version 0")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, version >= 4, len(c.CPUs()) == 2)
		require.Equal(t, version >= 3, c.note != nil)
	}
}

// A page that was left out is named, unless nothing but zeros was.
func TestKdumpFiltered(t *testing.T) {
	o := whole()
	o.level, o.without = 31, func(phys uint64, _ []byte) bool { return phys == 0x14000 }
	c, err := fromBytes(kdumpOf(t, evenMachine(), o))
	require.NoError(t, err)
	var filtered *FilteredError
	require.ErrorAs(t, c.ReadPhys(0x13ff0, make([]byte, 32)), &filtered)
	require.Equal(t, FilteredError{Phys: 0x14000, Level: 31}, *filtered)
	require.ErrorAs(t, c.Present(0x14fff), &filtered)
	require.NoError(t, c.Present(0x15000))
	var absent *AbsentError
	require.ErrorAs(t, c.Present(0x1000), &absent)
	requirePieces(t, c)

	o.level, o.without = 1, func(_ uint64, page []byte) bool { return isZero(page) }
	c, err = fromBytes(kdumpOf(t, evenMachine(), o))
	require.NoError(t, err)
	require.Equal(t, written(t, evenMachine())[2*PageSize:], written(t, c.Image())[2*PageSize:])
}

func TestKdumpRefused(t *testing.T) {
	other, split := whole(), whole()
	other.machine = "aarch64"
	split.split = true
	good := kdumpOf(t, evenMachine(), whole())
	with := func(at int, v uint32) []byte {
		b := bytes.Clone(good)
		le.PutUint32(b[at:], v)
		return b
	}
	flat := flattened(good)
	for want, b := range map[string][]byte{
		`one of "aarch64"`:                kdumpOf(t, evenMachine(), other),
		"makedumpfile has split":          kdumpOf(t, evenMachine(), split),
		"pages of 4096 bytes":             with(kdumpBlockSizeAt, 65536),
		"its memory reaches to":           with(PageSize+kdumpMaxPFN64At, 1<<30),
		"its bitmaps have 0 blocks":       with(kdumpBitBlocksAt, 0),
		"cut off":                         with(kdumpSubBlocksAt, 1<<30),
		"its notes have 0xffff0000 bytes": with(PageSize+kdumpNotesAt+8, 0xffff0000),
		"a piece of the flattened dump":   append(bytes.Clone(flat[:flatHeaderSize]), bytes.Repeat([]byte{0x7f}, 16)...),
	} {
		_, err := fromBytes(b)
		require.ErrorIs(t, err, ErrFormat, want)
		require.ErrorContains(t, err, want)
	}
	for _, b := range [][]byte{good, flat} {
		for n := headSize; n < len(b); n += max(1, len(b)/300) {
			c, err := fromBytes(b[:n])
			if err == nil { // all but pages is there
				err = c.ReadPhys(0x101000, make([]byte, PageSize))
			}
			require.ErrorIs(t, err, ErrFormat, "%d of %d bytes", n, len(b))
			require.ErrorContains(t, err, "cut off")
		}
	}
}

// A page that does not unpack is named, and the others can be read.
func TestKdumpBrokenPage(t *testing.T) {
	for pack := range packs {
		if pack == 0 {
			continue
		}
		o := whole()
		o.pack = pack
		b := kdumpOf(t, evenMachine(), o)
		c, err := fromBytes(b)
		require.NoError(t, err)
		desc := b[c.mem.(*kdumpMemory).descs+2*kdumpDescSize:]
		le.PutUint32(desc[8:], le.Uint32(desc[8:])/2)
		err = c.ReadPhys(0x12000, make([]byte, 8))
		require.ErrorIs(t, err, ErrFormat)
		require.ErrorContains(t, err, "dump: the page at 0x12000 is broken")
		require.NoError(t, c.ReadPhys(0x13000, make([]byte, 8)))
	}
}

func FuzzKdump(f *testing.F) {
	for pack := range packs {
		o := whole()
		o.pack = pack
		img := evenMachine()
		img.Memory = img.Memory[1:]
		b := kdumpOf(f, img, o)
		f.Add(b)
		f.Add(flattened(b))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := fromBytes(b)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		defer c.Close()
		var page [PageSize]byte
		for _, r := range c.RAM()[:min(len(c.RAM()), 100)] {
			if err := c.ReadPhys(r.Phys, page[:]); err != nil {
				require.NotContains(t, err.Error(), "\n")
			}
		}
	})
}

// TestKdumpThatNamesNoMachine: QEMU does not know the machine's name, and makedumpfile has none of a kernel without VMCOREINFO.
func TestKdumpThatNamesNoMachine(t *testing.T) {
	for _, name := range []string{"Unknown", ""} {
		o := whole()
		o.machine = name
		c, err := fromBytes(kdumpOf(t, evenMachine(), o))
		require.NoError(t, err, "%q", name)
		require.NotEmpty(t, c.RAM())
	}
}
