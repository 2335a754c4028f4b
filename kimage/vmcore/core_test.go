package vmcore

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// info is a VMCOREINFO as the kernel writes it.
const info = "OSRELEASE=6.1.0\nPAGESIZE=4096\nSYMBOL(swapper_pg_dir)=ffffffff82a10000\nNUMBER(phys_base)=-16777216\nKERNELOFFSET=1c000000\n"

// machine is a dump of two CPUs and two ranges of memory: page n of the first holds
// bytes n, but each third one is zero.
func machine() *Image {
	low := make([]byte, 40*PageSize)
	for i := range low {
		if page := i / PageSize; page%3 != 0 {
			low[i] = byte(page)
		}
	}
	high := bytes.Repeat([]byte("high"), PageSize/2)
	img := &Image{VMCoreInfo: []byte(info)}
	for i := range uint64(2) {
		img.CPUs = append(img.CPUs, CPU{
			Regs:   x86.PtRegs{AX: 0x100 + i, R15: 0x200 + i, IP: 0xffffffff81000000 + i, SP: 0xffffc90000000000 + i, CS: 0x10, SS: 0x18, Flags: 0x202},
			FSBase: 0x7f0000000000 + i, GSBase: 0xffff888000000000 + i, DS: 1, ES: 2, FS: 3, GS: 4, PID: int32(7 + i),
			Control: &Control{
				KernelGSBase: 5 + i, CR0: 0x80050033, CR2: 6, CR3: 0x1000 * i, CR4: CR4LA57 * i,
				CS:  Segment{0x10, 0xffffffff, 0xa09b00, 0},
				TR:  Segment{0x40, 0x4087, 0x8900, 0xfffffe0000003000},
				GDT: Segment{0, 0x7f, 0, 0xfffffe0000001000}, IDT: Segment{0, 0xfff, 0, 0xfffffe0000000000},
			},
		})
	}
	img.Memory = []Memory{
		{Placed{Range{0x10000, uint64(len(low))}, 0xffff888000010000}, bytes.NewReader(low)},
		{Placed{Range{1 << 32, uint64(len(high))}, 0xffff888100000000}, bytes.NewReader(high)},
	}
	img.Also = []Placed{{Range{0x12000, 0x3000}, 0xffffffff81000000}}
	return img
}

func written(t require.TestingT, img *Image) []byte {
	var b bytes.Buffer
	require.NoError(t, Write(&b, img))
	return b.Bytes()
}

func fromBytes(b []byte) (*Core, error) { return FromReader("dump", bytes.NewReader(b), int64(len(b))) }

// requireMachine: c is a dump of machine().
func requireMachine(t require.TestingT, c *Core) {
	want := machine()
	require.Equal(t, want.CPUs, c.CPUs())
	require.Equal(t, []Range{want.Memory[0].Range, want.Memory[1].Range}, c.RAM())
	require.Equal(t, "6.1.0", c.VMCoreInfo()["OSRELEASE"])
	for _, m := range want.Memory {
		data, got := make([]byte, m.Size), make([]byte, m.Size)
		_, err := m.Data.ReadAt(data, 0)
		require.NoError(t, err)
		require.NoError(t, c.ReadPhys(m.Phys, got))
		require.True(t, bytes.Equal(data, got))
	}
	var absent *AbsentError
	require.ErrorAs(t, c.ReadPhys(0x10000+40*PageSize-4, make([]byte, 8)), &absent)
	require.EqualValues(t, 0x10000+40*PageSize, absent.Phys)
}

func gzipped(t require.TestingT, b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(b)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return out.Bytes()
}

func zstdOf(t require.TestingT, img *Image) []byte {
	var b bytes.Buffer
	require.NoError(t, WriteZstd(&b, img))
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	plain := written(t, machine())
	for format, b := range map[string][]byte{"ELF": plain, "ELF, gzip": gzipped(t, plain), "ELF, zstd": zstdOf(t, machine())} {
		t.Run(format, func(t *testing.T) {
			c, err := fromBytes(b)
			require.NoError(t, err)
			defer c.Close()
			require.Equal(t, format, c.Format())
			requireMachine(t, c)
			require.Equal(t, plain, func() []byte {
				img := c.Image()
				for i := range img.Memory {
					img.Memory[i].Virt = machine().Memory[i].Virt
				}
				img.Also = machine().Also
				return written(t, img)
			}(), "a dump that is written anew is the same")
		})
	}
}

// In a file, zeros become holes, and reading gives the same bytes.
func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump")
	f, err := os.Create(path)
	require.NoError(t, err)
	img := machine()
	img.Memory[1].Data = bytes.NewReader(make([]byte, 2*PageSize)) // the file ends with a hole
	require.NoError(t, Write(f, img))
	require.NoError(t, f.Close())
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(written(t, img), b))
	c, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

func TestWriteRefuses(t *testing.T) {
	short := machine()
	short.Memory[0].Data = bytes.NewReader(make([]byte, 5))
	require.ErrorContains(t, Write(io.Discard, short), "the memory at 0x10005: EOF")
	odd := machine()
	odd.Memory[0].Size--
	require.ErrorContains(t, Write(io.Discard, odd), "is not whole pages")
	outside := machine()
	outside.Also[0].Phys = 0x1000
	require.ErrorContains(t, Write(io.Discard, outside), "not within")
	full := machine()
	require.ErrorIs(t, Write(&failing{5000}, full), errFull)
}

type failing struct{ room int }

var errFull = errors.New("no room")

func (f *failing) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// mapped reads memory through the pieces.
func mapped(t require.TestingT, c *Core) map[uint64][]byte {
	pieces, err := c.Map()
	require.NoError(t, err)
	again, err := c.Map()
	require.NoError(t, err)
	require.Equal(t, pieces, again)
	out := map[uint64][]byte{}
	for _, p := range pieces {
		require.Zero(t, (p.Phys|p.Size|uint64(p.Off))%PageSize)
		b := make([]byte, p.Size)
		if p.File != nil {
			_, err := p.File.ReadAt(b, p.Off)
			require.NoError(t, err)
		}
		for len(b) > 0 {
			out[p.Phys], b = b[:PageSize], b[PageSize:]
			p.Phys += PageSize
		}
	}
	return out
}

func requirePieces(t require.TestingT, c *Core) {
	got := mapped(t, c)
	pages := uint64(0)
	for _, r := range c.RAM() {
		for phys := r.Phys; phys < r.End(); phys += PageSize {
			b := make([]byte, PageSize)
			require.NoError(t, c.readPresent(phys, b))
			require.True(t, bytes.Equal(b, got[phys]), "%#x", phys)
			pages++
		}
	}
	require.Len(t, got, int(pages))
}

func TestMap(t *testing.T) {
	dir := t.TempDir()
	plain := written(t, machine())
	open := func(name string, b []byte) *Core {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		c, err := Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	t.Run("the file itself", func(t *testing.T) {
		c := open("plain", plain)
		requirePieces(t, c)
		pieces, err := c.Map()
		require.NoError(t, err)
		require.Equal(t, filepath.Join(dir, "plain"), pieces[0].File.Name())
	})
	t.Run("unaligned, as QEMU writes it", func(t *testing.T) {
		c := open("unaligned", unaligned(plain))
		requirePieces(t, c)
		pieces, err := c.Map()
		require.NoError(t, err)
		require.NotEqual(t, filepath.Join(dir, "unaligned"), pieces[0].File.Name())
	})
	t.Run("packed", func(t *testing.T) { requirePieces(t, open("packed", zstdOf(t, machine()))) })
	t.Run("no file", func(t *testing.T) {
		c, err := fromBytes(plain)
		require.NoError(t, err)
		requirePieces(t, c)
	})
}

// unaligned moves the content of a dump of machine() by 8 bytes.
func unaligned(b []byte) []byte {
	n := int(le.Uint16(b[56:]))
	out := append(bytes.Clone(b[:PageSize]), 1, 2, 3, 4, 5, 6, 7, 8)
	out = append(out, b[PageSize:]...)
	for i := range n {
		p := out[elfHeaderSize+i*elfProgramSize:]
		if le.Uint32(p) == elfLoad {
			le.PutUint64(p[8:], le.Uint64(p[8:])+8)
		}
	}
	return out
}

// Extents of any shape read as the file says: the rest of a segment is zero, and bytes
// that are there twice may come from either place, since both are the same memory.
func TestOverlappingSegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 32 * PageSize
		mem := make([]byte, size)
		for i := range mem {
			mem[i] = byte(i / 7)
		}
		var table []byte
		known := make([]bool, size/PageSize)
		for range rapid.IntRange(1, 6).Draw(t, "segments") {
			from := rapid.IntRange(0, size/PageSize-1).Draw(t, "from")
			to := rapid.IntRange(from+1, size/PageSize).Draw(t, "to")
			r := Range{uint64(from) * PageSize, uint64(to-from) * PageSize}
			table = appendSegment(table, elfLoad, r.Phys, Placed{Range: r})
			for i := from; i < to; i++ {
				known[i] = true
			}
		}
		h := elfHeader(len(table) / elfProgramSize)
		le.PutUint64(h[32:], size+elfHeaderSize)
		b := append(append(bytes.Clone(mem), h...), table...)
		// The header has to be at the start: read through a view that puts it there.
		c, err := FromReader("dump", &headFirst{b: b, head: h}, int64(len(b)))
		require.NoError(t, err)
		for i, ok := range known {
			got := make([]byte, PageSize)
			err := c.ReadPhys(uint64(i)*PageSize, got)
			require.Equal(t, ok, err == nil)
			if ok && i > 0 {
				require.True(t, bytes.Equal(mem[i*PageSize:][:PageSize], got))
			}
		}
	})
}

// headFirst shows b with its first bytes replaced.
type headFirst struct{ b, head []byte }

func (h *headFirst) ReadAt(b []byte, off int64) (int, error) {
	n := copy(b, h.b[min(off, int64(len(h.b))):])
	if off < int64(len(h.head)) {
		copy(b[:n], h.head[off:])
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Memory of a segment past its bytes in the file was left out; it is not taken for zeros. The page
// in which the file ends is there.
func TestFileSmallerThanMemory(t *testing.T) {
	b := written(t, machine())
	p := b[elfHeaderSize+2*elfProgramSize:] // the first range
	require.EqualValues(t, 0x10000, le.Uint64(p[24:]))
	le.PutUint64(p[32:], PageSize+100)
	// The part that Also repeats would fill what is cut away.
	le.PutUint32(b[elfHeaderSize+elfProgramSize:], 0)
	c, err := fromBytes(b)
	require.NoError(t, err)
	got := make([]byte, 2*PageSize)
	require.NoError(t, c.ReadPhys(0x10000, got))
	require.Equal(t, bytes.Repeat([]byte{1}, 100), got[PageSize:PageSize+100])
	require.True(t, isZero(got[PageSize+100:2*PageSize]))
	require.NoError(t, c.Present(0x11fff))
	require.Equal(t, &FilteredError{Phys: 0x12000, Level: LevelUnknown}, c.Present(0x12345))
	require.ErrorContains(t, c.ReadPhys(0x11000, make([]byte, 2*PageSize)), "was left out of the dump (an ELF file does not say why")
	pieces, err := c.Map()
	require.NoError(t, err)
	require.NotEmpty(t, pieces)
}

func TestRefused(t *testing.T) {
	plain := written(t, machine())
	with := func(change func(b []byte)) []byte {
		b := bytes.Clone(plain)
		change(b)
		return b
	}
	load := elfHeaderSize + 2*elfProgramSize
	for want, b := range map[string][]byte{
		"a memory dump is wanted: an ELF core":   []byte("#!/bin/sh\n"),
		"is wanted: an ELF core file":            nil,
		"holds something else, compressed":       gzipped(t, []byte("text")),
		"this is one of ARM64":                   with(func(b []byte) { b[18] = 183 }),
		"this is one of 32-bit x86":              with(func(b []byte) { b[18] = 3 }),
		"ELF machine number 999":                 with(func(b []byte) { le.PutUint16(b[18:], 999) }),
		"big-endian":                             with(func(b []byte) { b[5] = 2 }),
		"a 64-bit dump is wanted":                with(func(b []byte) { b[4] = 1 }),
		"an ELF of another type (2)":             with(func(b []byte) { b[16] = 2 }),
		"program headers of 56 bytes":            with(func(b []byte) { b[54] = 32 }),
		"more than 64 GiB":                       with(func(b []byte) { le.PutUint64(b[load+40:], 1<<37) }),
		"a segment has 0x10000000000000 bytes":   with(func(b []byte) { le.PutUint64(b[load+40:], 1<<52); le.PutUint64(b[load+24:], 1<<52) }),
		"with 0x28000 in the file":               with(func(b []byte) { le.PutUint64(b[load+40:], 5) }),
		"it holds no memory":                     with(func(b []byte) { le.PutUint16(b[56:], 1) }),
		"its notes have 0x10000000000 bytes":     with(func(b []byte) { le.PutUint64(b[elfHeaderSize+32:], 1<<40) }),
		"NT_PRSTATUS) has 335 bytes":             with(func(b []byte) { b[noteAt(b)+4]-- }),
		"this is the core file of a process":     with(func(b []byte) { b[noteAt(b)+8] = notePrpsinfo }),
		"its compressed data has no end":         zstdOf(t, machine())[:200],
		"its compressed data is broken":          broken(gzipped(t, plain)),
		"QEMU's note) has version 2, 1 is known": bytes.Replace(plain, []byte("QEMU\x00\x00\x00\x00\x01"), []byte("QEMU\x00\x00\x00\x00\x02"), 1),
	} {
		t.Run(want, func(t *testing.T) {
			c, err := fromBytes(b)
			require.Nil(t, c)
			require.ErrorIs(t, err, ErrFormat)
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "\n")
			require.True(t, strings.HasPrefix(err.Error(), "dump: "))
		})
	}
}

// broken flips a bit in the middle.
func broken(b []byte) []byte {
	b[len(b)/2] ^= 0x10
	return b
}

// noteAt returns the offset of the first note.
func noteAt(b []byte) uint64 { return le.Uint64(b[elfHeaderSize+8:]) }

// A file that is cut off at any place gives the error "cut off".
func TestTruncated(t *testing.T) {
	for format, b := range map[string][]byte{"ELF": written(t, machine()), "zstd": zstdOf(t, machine())} {
		step := max(1, len(b)/1000)
		for n := headSize; n < len(b); n += step {
			_, err := fromBytes(b[:n])
			require.ErrorIs(t, err, ErrFormat, "%s, %d of %d bytes", format, n, len(b))
			require.ErrorContains(t, err, "cut off")
		}
	}
}

// More than 65534 segments are counted in a section header.
func TestManySegments(t *testing.T) {
	const n = 70000
	h := elfHeader(elfManySegments)
	le.PutUint64(h[40:], elfHeaderSize)
	le.PutUint64(h[32:], elfHeaderSize+elfSectionSize)
	section := make([]byte, elfSectionSize)
	le.PutUint32(section[44:], n)
	b := append(h, section...)
	for i := range uint64(n) {
		b = appendSegment(b, elfLoad, 0, Placed{Range: Range{i * 8, 8}})
	}
	c, err := fromBytes(b)
	require.NoError(t, err)
	require.Equal(t, []Range{{0, n * 8 &^ (PageSize - 1)}}, c.RAM())
	le.PutUint32(b[elfHeaderSize+44:], bounded.DumpSegments+1)
	_, err = fromBytes(b)
	require.ErrorContains(t, err, "at most 2097152 are read")
}

func TestSmallFileOfMuch(t *testing.T) {
	img := machine()
	img.Also = nil
	img.Memory[0].Size = 128 << 20
	img.Memory[0].Data = ones{}
	img.Memory[0].Phys = 1 << 33
	b := zstdOf(t, img)
	require.Less(t, len(b), 1<<20)
	_, err := fromBytes(b)
	require.ErrorContains(t, err, "it unpacks to more than 100 times its size")
}

// ones is memory without end.
type ones struct{}

func (ones) ReadAt(b []byte, _ int64) (int, error) {
	for i := range b {
		b[i] = 1
	}
	return len(b), nil
}

func TestVMCoreInfoInMemory(t *testing.T) {
	img := machine()
	page := note{"VMCOREINFO", noteNone, []byte(info)}.appendTo(nil)
	img.Memory[1].Data = bytes.NewReader(append(make([]byte, PageSize), append(page, make([]byte, PageSize-len(page))...)...))
	img.VMCoreInfo = nil
	c, err := fromBytes(written(t, img))
	require.NoError(t, err)
	i := c.VMCoreInfo()
	require.Equal(t, x86.Addr(0xffffffff82a10000), i.Symbol("swapper_pg_dir"))
	require.EqualValues(t, 0x1c000000, i.KernelOffset())
	base, ok := i.Number("phys_base")
	require.True(t, ok)
	require.EqualValues(t, -16777216, base)
	_, ok = i.Number("nothing")
	require.False(t, ok)
	require.Zero(t, i.Symbol("nothing"))
}

func TestNoVMCoreInfo(t *testing.T) {
	img := machine()
	img.VMCoreInfo = nil
	c, err := fromBytes(written(t, img))
	require.NoError(t, err)
	require.Nil(t, c.VMCoreInfo())
}

// A crashed kernel's dump has no state that only the outside sees.
func TestWithoutControl(t *testing.T) {
	img := machine()
	img.CPUs[0].Control, img.CPUs[1].Control = nil, nil
	c, err := fromBytes(written(t, img))
	require.NoError(t, err)
	require.Equal(t, img.CPUs, c.CPUs())
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	_, err := Open(t.TempDir())
	require.Error(t, err)
	_, err = Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// FuzzOpen: no dump makes the reader panic or hold more than its limits.
func FuzzOpen(f *testing.F) {
	small := machine()
	small.Memory = small.Memory[1:]
	small.Also = nil
	f.Add(written(f, small))
	f.Add(zstdOf(f, small))
	f.Add(gzipped(f, written(f, small)))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := fromBytes(b)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		defer c.Close()
		var page [PageSize]byte
		for _, r := range c.RAM() {
			_ = c.ReadPhys(r.Phys, page[:])
			_ = c.ReadPhys(r.End()-8, page[:])
		}
		for _, cpu := range c.CPUs() {
			if cpu.Control != nil {
				_, _ = c.Space(cpu.Control.CR3, cpu.Control.Levels()).Translate(x86.Addr(cpu.Regs.IP))
			}
		}
	})
}
