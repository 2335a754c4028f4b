package vmcore

import (
	"io"
	"math/bits"
	"strings"
	"sync"

	"kprobelab/internal/bounded"
)

// The kdump-compressed form (makedumpfile's diskdump_mod.h): a header of one block, a
// second one, two bitmaps of page frames, which there are and which are in the dump, a
// descriptor for each page in the dump, and the pages.
const (
	kdumpMagic = "KDUMP   "
	// Places in the header, struct disk_dump_header.
	kdumpVersionAt   = 8
	kdumpMachineAt   = 12 + 4*65 // struct new_utsname, machine
	kdumpBlockSizeAt = 428
	kdumpSubBlocksAt = 432
	kdumpBitBlocksAt = 436
	kdumpMaxPFNAt    = 440
	kdumpHeaderSize  = 464
	// Places in the second header, struct kdump_sub_header.
	kdumpLevelAt    = 8
	kdumpSplitAt    = 12
	kdumpInfoAt     = 32
	kdumpNotesAt    = 48
	kdumpMaxPFN64At = 96
	kdumpSubSize    = 104
	kdumpDescSize   = 24
	// From these versions of the header on the second one has the members.
	kdumpHasInfo     = 3
	kdumpHasNotes    = 4
	kdumpHasMaxPFN64 = 6
)

// How a page is packed, the flags of its descriptor.
const (
	pageZlib   = 1 << 0
	pageLZO    = 1 << 1
	pageSnappy = 1 << 2
	pageZstd   = 1 << 5
)

// kdumpHeader holds the fields of both headers.
type kdumpHeader struct {
	version, level, split int
	machine               string
	// blockSize is in bytes; subBlocks and bitBlocks are the blocks of the second header and of the
	// bitmaps.
	blockSize, subBlocks, bitBlocks int64
	frames                          uint64
	info, notes                     [2]int64 // places and sizes
}

func parseKdump(s source) (*kdumpHeader, error) {
	b, err := s.bytes(0, kdumpHeaderSize)
	if err != nil {
		return nil, err
	}
	machine, _, _ := strings.Cut(string(b[kdumpMachineAt:kdumpMachineAt+65]), "\x00")
	h := &kdumpHeader{
		version: int(int32(le.Uint32(b[kdumpVersionAt:]))), machine: machine,
		blockSize: int64(le.Uint32(b[kdumpBlockSizeAt:])), subBlocks: int64(le.Uint32(b[kdumpSubBlocksAt:])),
		bitBlocks: int64(le.Uint32(b[kdumpBitBlocksAt:])), frames: uint64(le.Uint32(b[kdumpMaxPFNAt:])),
	}
	switch {
	// QEMU does not know, and says so; makedumpfile says nothing of a kernel without VMCOREINFO. Their notes have another length for other machines.
	case h.machine != "x86_64" && h.machine != "Unknown" && h.machine != "":
		return nil, bad("a dump of an x86-64 machine is wanted, this is one of %.20q", h.machine)
	case h.blockSize != PageSize:
		return nil, bad("pages of %d bytes are wanted, this dump has %d", PageSize, h.blockSize)
	case h.version < 1:
		return nil, bad("its header has version %d, 1 and later are known", h.version)
	}
	sub, err := s.bytes(h.blockSize, kdumpSubSize)
	if err != nil {
		return nil, err
	}
	h.level = int(int32(le.Uint32(sub[kdumpLevelAt:])))
	h.split = int(int32(le.Uint32(sub[kdumpSplitAt:])))
	pair := func(at int) [2]int64 { return [2]int64{int64(le.Uint64(sub[at:])), int64(le.Uint64(sub[at+8:]))} }
	if h.version >= kdumpHasInfo {
		h.info = pair(kdumpInfoAt)
	}
	if h.version >= kdumpHasNotes {
		h.notes = pair(kdumpNotesAt)
	}
	if h.version >= kdumpHasMaxPFN64 {
		h.frames = le.Uint64(sub[kdumpMaxPFN64At:])
	}
	switch {
	case h.version >= 2 && h.split != 0:
		return nil, bad("this is a part of a dump that makedumpfile has split; makedumpfile --reassemble puts it together")
	case h.frames > bounded.DumpPages:
		return nil, bad("its memory reaches to %#x, at most to %#x is read", h.frames*PageSize, uint64(bounded.DumpPages*PageSize))
	case h.bitBlocks*h.blockSize*8/2 < int64(h.frames):
		return nil, bad("its bitmaps have %d blocks, %d page frames need more", h.bitBlocks, h.frames)
	}
	return h, nil
}

// readKdump reads a kdump-compressed file.
func readKdump(c *Core, s source) error {
	h, err := parseKdump(s)
	if err != nil {
		return err
	}
	if h.notes[1] > 0 {
		if h.notes[1] > bounded.DumpNotes {
			return bad("its notes have %#x bytes, at most %#x are read", h.notes[1], bounded.DumpNotes)
		}
		b, err := s.bytes(h.notes[0], h.notes[1])
		if err != nil {
			return err
		}
		if err := c.setNotes(notes(b)); err != nil {
			return err
		}
	}
	if n := h.info[1]; n > 0 && n <= bounded.DumpInfo && c.note == nil {
		if c.note, err = s.bytes(h.info[0], n); err != nil {
			return err
		}
	}
	mem := &kdumpMemory{source: s, level: h.level}
	half := h.bitBlocks * h.blockSize / 2
	at := (1 + h.subBlocks) * h.blockSize
	if err := s.within(at, 2*half); err != nil {
		return err
	}
	// The bitmaps may be longer than the memory; what follows it says nothing.
	used := min(half, int64(h.frames+7)/8)
	exists, err := s.bytes(at, used)
	if err != nil {
		return err
	}
	dumped, err := s.bytes(at+half, used)
	if err != nil {
		return err
	}
	mem.exists, mem.dumped = newBitmap(exists), newBitmap(dumped)
	mem.descs = at + 2*half
	if err := s.within(mem.descs, int64(mem.dumped.total)*kdumpDescSize); err != nil {
		return err
	}
	c.mem = mem
	list := mem.exists.ranges(bounded.DumpRanges + 1)
	if len(list) > bounded.DumpRanges {
		return errRanges
	}
	return c.setRAM(list)
}

// bitmap has a bit for each page frame.
type bitmap struct {
	b []byte
	// before counts the bits that are set before each run of rankStep bytes.
	before []uint32
	total  uint32
}

const rankStep = 64

func newBitmap(b []byte) *bitmap {
	m := &bitmap{b: b}
	for i, c := range b {
		if i%rankStep == 0 {
			m.before = append(m.before, m.total)
		}
		m.total += uint32(bits.OnesCount8(c))
	}
	return m
}

func (m *bitmap) has(frame uint64) bool {
	return frame/8 < uint64(len(m.b)) && m.b[frame/8]>>(frame%8)&1 != 0
}

// rank counts the bits that are set before the bit of a frame.
func (m *bitmap) rank(frame uint64) uint32 {
	at := frame / 8
	n := m.before[at/rankStep]
	for _, c := range m.b[at/rankStep*rankStep : at] {
		n += uint32(bits.OnesCount8(c))
	}
	return n + uint32(bits.OnesCount8(m.b[at]&(1<<(frame%8)-1)))
}

// ranges returns the existing frames, in at most so many ranges.
func (m *bitmap) ranges(most int) []Range {
	var list []Range
	for i, c := range m.b {
		for ; c != 0 && len(list) < most; c &= c - 1 {
			phys := uint64(8*i+bits.TrailingZeros8(c)) * PageSize
			if last := len(list) - 1; last >= 0 && list[last].End() == phys {
				list[last].Size += PageSize
			} else {
				list = append(list, Range{phys, PageSize})
			}
		}
	}
	return list
}

// kdumpMemory is memory in packed pages.
type kdumpMemory struct {
	source
	exists, dumped *bitmap
	// descs is the offset of the descriptors.
	descs int64
	level int

	// kept are pages that were unpacked lately, each in the slot of its frame's number:
	// a walk of page tables comes back to the same few.
	kept [64]keptPage
}

type keptPage struct {
	lock  sync.Mutex
	frame uint64 // plus 1; 0 for none
	data  [PageSize]byte
}

func (m *kdumpMemory) pieces() []Piece { return nil }

func (m *kdumpMemory) present(phys uint64) error {
	if m.dumped.has(phys/PageSize) || m.zeros() {
		return nil
	}
	return &FilteredError{Phys: phys &^ (PageSize - 1), Level: m.level}
}

// zeros: pages of zeros are all that was left out.
func (m *kdumpMemory) zeros() bool { return m.level == levelZero }

// levelZero is the bit of a dump level by which pages of zeros are left out.
const levelZero = 1

func (m *kdumpMemory) read(phys uint64, b []byte) error {
	frame := phys / PageSize
	k := &m.kept[frame%uint64(len(m.kept))]
	k.lock.Lock()
	defer k.lock.Unlock()
	if k.frame != frame+1 {
		k.frame = 0
		if err := m.unpack(frame, k.data[:]); err != nil {
			return err
		}
		k.frame = frame + 1
	}
	copy(b, k.data[phys%PageSize:])
	return nil
}

// unpack fills page.
func (m *kdumpMemory) unpack(frame uint64, page []byte) error {
	if !m.dumped.has(frame) {
		clear(page)
		return nil
	}
	var desc [kdumpDescSize]byte
	if _, err := m.ReadAt(desc[:], m.descs+int64(m.dumped.rank(frame))*kdumpDescSize); err != nil && err != io.EOF {
		return err
	}
	off, size, flags := int64(le.Uint64(desc[:])), le.Uint32(desc[8:]), le.Uint32(desc[12:])
	if size > PageSize {
		return bad("the page at %#x is packed to %d bytes", frame*PageSize, size)
	}
	packed, err := m.bytes(off, int64(size))
	if err != nil {
		return err
	}
	n, err := unpackPage(packed, page, flags)
	if err == nil && n != PageSize {
		err = bad("it has %d bytes", n)
	}
	if err != nil {
		return bad("the page at %#x is broken: %v", frame*PageSize, plain(err))
	}
	return nil
}
