package archive

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"sync"

	"github.com/klauspost/compress/zstd"

	"kprobelab/internal/bounded"
	"kprobelab/internal/printable"
)

// Suffix ends the name of every file of an archive.
const Suffix = ".kpack"

const (
	magic = "kpblpack"
	// version is the version of a file that needs no other file, versionBase that of a
	// file that is a difference. This program reads and writes both.
	version     = 2
	versionBase = 3
	fixedLen    = len(magic) + 12
)

// The limits of a file and of its parts, in bytes. A kernel with four thousand
// modules stays far below.
const (
	// maxWindow bounds a piece of text, of which a difference needs several at once:
	// each address of the piece takes five bytes at most.
	maxWindow = 5 * window
)

// ErrFormat is a file that is damaged, or none of ours.
var ErrFormat = errors.New("not a file that kprobelab pack has made, or a damaged one")

// ErrNewer is a file in a form that came after this program.
var ErrNewer = errors.New("made by a newer kprobelab")

// ErrOlder is a file in a form that this program reads no more.
var ErrOlder = errors.New("made by an older kprobelab: pack the kernel again")

// ErrEntries: the file answers for the entries of functions only, and more was asked.
var ErrEntries = errors.New("packed with --entries: it does not answer for probes inside functions, nor for definitions with arguments")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header says which kernel a file is of.
type Header struct {
	Release string `json:"release"`
	// Distribution is the builder's name, in one word, and Package the version of its
	// package; "" if the banner does not tell it.
	Distribution string `json:"distribution,omitempty"`
	Package      string `json:"package,omitempty"`
	// BuildID is the linker's, in hexadecimal, or without one a hash of the text with
	// "text-" before it.
	BuildID string `json:"build_id"`
	CPU     string `json:"cpu"`
	Profile string `json:"profile"`
	// Standing says how far the profile can be trusted (profile.Standing).
	Standing string   `json:"standing,omitempty"`
	Modules  []string `json:"modules,omitempty"`
	// Packaged counts the modules of the package besides the loaded ones.
	Packaged int `json:"packaged,omitempty"`
	// Inlined: DWARF was there when the file was packed, and tells what is inlined.
	Inlined bool `json:"inlined,omitempty"`
	// Entries: the file answers for the entries of functions only.
	Entries bool `json:"entries,omitempty"`
	// Base is the file of the same folder from which this one is a difference; "" if
	// the file needs no other.
	Base string `json:"base,omitempty"`

	Sections []sectionHead `json:"sections"`
}

type sectionHead struct {
	Name   string `json:"name"`
	Packed int    `json:"packed"`
	Size   int    `json:"size"`
	CRC    uint32 `json:"crc32c"`
	// From is the CRC-32C of the data from which the section is a difference; nil if
	// the section stands alone.
	From *uint32 `json:"from_crc32c,omitempty"`
}

// part is a section with its packed bytes.
type part struct {
	sectionHead
	packed []byte
}

// contents is a file that is being made.
type contents struct {
	header Header
	body   []byte
	enc    *zstd.Encoder
}

func newContents() (*contents, error) {
	enc, err := newEncoder()
	return &contents{enc: enc}, err
}

func newEncoder(more ...zstd.EOption) (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, append([]zstd.EOption{
		zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithWindowSize(windowSize),
	}, more...)...)
}

// add packs a section.
func (c *contents) add(name string, data []byte) {
	c.put(sectionHead{Name: name, Size: len(data)}, c.enc.EncodeAll(data, nil))
}

// put adds a section that is packed.
func (c *contents) put(s sectionHead, packed []byte) {
	s.Packed, s.CRC = len(packed), crc32.Checksum(packed, castagnoli)
	c.header.Sections = append(c.header.Sections, s)
	c.body = append(c.body, packed...)
}

// bytes is the whole file.
func (c *contents) bytes() ([]byte, error) {
	head, err := json.Marshal(&c.header)
	if err != nil {
		return nil, err
	}
	form := uint32(version)
	if c.header.Base != "" {
		form = versionBase
	}
	out := binary.LittleEndian.AppendUint32([]byte(magic), form)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(head)))
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(head, castagnoli))
	return append(append(out, head...), c.body...), nil
}

// file is one that was read. Its sections are still packed.
type file struct {
	Header
	parts map[string]part
	// base is the file that this one is a difference from, or nil.
	base *file
}

// readFile reads a file's header and checks its sections, and those of the files from
// which it is a difference. Errors of the content are ErrFormat, ErrNewer, ErrOlder or
// ErrBase, others are the system's; each names the file.
func readFile(name string) (*file, error) { return readChain(name, maxChain) }

// readable is readFile, of a file whose rules this program reads, too.
func readable(name string) (*file, error) {
	f, err := readFile(name)
	if err != nil {
		return nil, err
	}
	_, _, err = f.kernel()
	if err == nil {
		err = f.checkBase()
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return f, nil
}

// ReadHeader reads a file's header, which names the kernel. The whole file is checked;
// errors are as in Open.
func ReadHeader(name string) (Header, error) {
	f, err := readable(name)
	if err != nil {
		return Header{}, err
	}
	return f.Header, nil
}

// parse takes a file apart. It keeps b.
func parse(b []byte) (*file, error) {
	if len(b) < fixedLen || !bytes.HasPrefix(b, []byte(magic)) {
		return nil, damaged("it does not begin as one")
	}
	le := binary.LittleEndian
	v, length, sum := le.Uint32(b[8:]), le.Uint32(b[12:]), le.Uint32(b[16:])
	if v > versionBase {
		return nil, fmt.Errorf("%w: format %d, this one reads %d", ErrNewer, v, versionBase)
	}
	b = b[fixedLen:]
	switch {
	case v == 0:
		return nil, damaged("format 0")
	case v < version:
		return nil, fmt.Errorf("%w (format %d, this one reads %d)", ErrOlder, v, version)
	case length > bounded.ArchiveHeader || int(length) > len(b):
		return nil, damaged("the file ends within its header")
	case crc32.Checksum(b[:length], castagnoli) != sum:
		return nil, damaged("the header's checksum is wrong")
	}
	f := &file{parts: map[string]part{}}
	if err := json.Unmarshal(b[:length], &f.Header); err != nil {
		return nil, damaged("header: %v", err)
	}
	f.Header.makePrintable()
	if (v == versionBase) != (f.Base != "") {
		return nil, damaged("format %d, with the base %q", v, f.Base)
	}
	b = b[length:]
	for _, s := range f.Sections {
		most := bounded.ArchiveSection
		if _, text := windowNumber(s.Name); text {
			most = maxWindow
		}
		if s.Packed < 0 || s.Packed > len(b) || s.Size < 0 || s.Size > most {
			return nil, damaged("the file ends within its part %q", s.Name)
		}
		if crc32.Checksum(b[:s.Packed], castagnoli) != s.CRC {
			return nil, damaged("the checksum of the part %q is wrong", s.Name)
		}
		if s.From != nil && f.Base == "" {
			return nil, damaged("the part %q is a difference from nothing", s.Name)
		}
		f.parts[s.Name] = part{s, b[:s.Packed]}
		b = b[s.Packed:]
	}
	if len(b) > 0 {
		return nil, damaged("%d bytes follow its end", len(b))
	}
	return f, nil
}

// makePrintable writes the control characters of a header, newlines among them, so that they forge no line.
func (h *Header) makePrintable() {
	for _, s := range []*string{&h.Release, &h.Distribution, &h.Package, &h.BuildID, &h.CPU, &h.Profile, &h.Standing, &h.Base} {
		*s = printable.Name(*s)
	}
	for i := range h.Modules {
		h.Modules[i] = printable.Name(h.Modules[i])
	}
	for i := range h.Sections {
		h.Sections[i].Name = printable.Name(h.Sections[i].Name)
	}
}

// windowSize is the greatest distance back to which a packed section may refer, in bytes.
const windowSize = 16 << 20

// decoders are shared: each keeps a few hundred kB.
var decoders = sync.Pool{New: func() any {
	d, err := newDecoder()
	if err != nil {
		panic("BUG: zstd: " + err.Error())
	}
	return d
}}

// newDecoder makes a decoder. A frame unpacks to no more than there is room for.
func newDecoder(more ...zstd.DOption) (*zstd.Decoder, error) {
	return zstd.NewReader(nil, append([]zstd.DOption{
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(bounded.ArchiveSection), zstd.WithDecoderMaxWindow(windowSize), zstd.WithDecodeAllCapLimit(true),
	}, more...)...)
}

// section unpacks a section; nil if the file has none of that name.
func (f *file) section(name string) ([]byte, error) {
	p, ok := f.parts[name]
	if !ok {
		return nil, nil
	}
	d := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(d)
	if p.From != nil {
		before, err := f.before(&p)
		if err != nil {
			return nil, err
		}
		if d, err = newDecoder(zstd.WithDecoderDictRaw(dictionary, before)); err != nil {
			return nil, damaged("part %q: %v", name, err)
		}
		defer d.Close()
	}
	out, err := d.DecodeAll(p.packed, make([]byte, 0, p.Size))
	if err != nil {
		return nil, damaged("part %q: %v", name, err)
	}
	if len(out) != p.Size {
		return nil, damaged("the part %q is not as long as the header says", name)
	}
	return out, nil
}
