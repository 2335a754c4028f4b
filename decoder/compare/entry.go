package compare

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"kprobelab/decoder"
	"kprobelab/profile"
)

// Entry is an encoding with the readings of both views: a line of a corpus.
type Entry struct {
	// Bytes are the instruction's own; if there is no instruction, up to 15 bytes.
	Bytes []byte
	// Processor is the processor's view, Kernel the view of the kernel's decoder. A
	// length of 0 means that the view has no instruction here.
	Processor, Kernel Answer
}

// NewEntry decodes the bytes in both views. d is the kernel's decoder, nil for 6.1's.
func NewEntry(b []byte, d *profile.Decoder) Entry {
	e := Entry{Bytes: b[:min(len(b), decoder.MaxInsnSize)]}
	if i, err := decoder.Decode(b); err == nil {
		e.Bytes = e.Bytes[:i.Length]
		e.Processor = Answer{Length: i.Length, Class: &classes[i.Class], HasTarget: i.HasTarget, Target: int64(i.Length) + i.Rel}
	}
	if k, err := decoder.DecodeKernel(b, d); err == nil && k.Length > 0 {
		e.Kernel = KernelAnswer(&k)
	}
	return e
}

// EntryColumns is the head of the lines that AppendTSV makes.
const EntryColumns = "bytes\tvalid\tlength\tclass\ttarget\tkernel_length\tkernel_class\tkernel_target\n"

// AppendTSV appends the entry as a line: bytes in hex; 1 for an instruction, 0 for none; then
// length, class and target of each view. A target counts from the first byte; a missing value is
// empty.
func (e *Entry) AppendTSV(b []byte) []byte {
	b = hex.AppendEncode(b, e.Bytes)
	b = append(b, '\t', '0'+byte(min(1, e.Processor.Length)))
	for _, a := range []*Answer{&e.Processor, &e.Kernel} {
		b = strconv.AppendInt(append(b, '\t'), int64(a.Length), 10)
		b = append(b, '\t')
		if a.Class != nil {
			b = append(b, a.Class.String()...)
		}
		b = append(b, '\t')
		if a.HasTarget {
			b = strconv.AppendInt(b, a.Target, 10)
		}
	}
	return append(b, '\n')
}

// AppendJSON appends the entry as a JSON object and a newline; its keys are the columns
// of EntryColumns.
func (e *Entry) AppendJSON(b []byte) []byte {
	b = append(hex.AppendEncode(append(b, `{"bytes":"`...), e.Bytes), `","valid":`...)
	b = strconv.AppendBool(b, e.Processor.Length > 0)
	b = e.Processor.appendJSON(b, "")
	b = e.Kernel.appendJSON(b, "kernel_")
	return append(b, '}', '\n')
}

func (a *Answer) appendJSON(b []byte, prefix string) []byte {
	key := func(name string) { b = append(append(append(append(b, ',', '"'), prefix...), name...), '"', ':') }
	key("length")
	b = strconv.AppendInt(b, int64(a.Length), 10)
	key("class")
	if a.Class == nil {
		b = append(b, "null"...)
	} else {
		b = append(append(append(b, '"'), a.Class.String()...), '"')
	}
	key("target")
	if a.HasTarget {
		return strconv.AppendInt(b, a.Target, 10)
	}
	return append(b, "null"...)
}

// EntryWriter writes entries, as lines of JSON or in columns.
type EntryWriter struct {
	W    io.Writer
	JSON bool
	line []byte
}

// Head writes the names of the columns, after the notice of the shipped corpus.
func (w *EntryWriter) Head(shipped bool) error {
	head := ""
	switch {
	case shipped && w.JSON:
		head = fmt.Sprintf("{\"notice\":%q}\n", strings.ReplaceAll(ShippedNotice, "\n", " "))
	case shipped:
		head = fmt.Sprintf("# %s\n", strings.ReplaceAll(ShippedNotice, "\n", "\n# "))
	}
	if !w.JSON {
		head += EntryColumns
	}
	_, err := io.WriteString(w.W, head)
	return err
}

// Write writes an entry.
func (w *EntryWriter) Write(e *Entry) error {
	if w.JSON {
		w.line = e.AppendJSON(w.line[:0])
	} else {
		w.line = e.AppendTSV(w.line[:0])
	}
	_, err := w.W.Write(w.line)
	return err
}

// Entries visits each distinct encoding of code once: instruction after instruction, and byte after
// byte where there is none. seen has the visited encodings.
func Entries(code []byte, d *profile.Decoder, seen map[string]bool, visit func(*Entry) error) error {
	for at := 0; at < len(code); {
		e := NewEntry(code[at:min(len(code), at+decoder.MaxInsnSize)], d)
		at += max(1, e.Processor.Length)
		if seen[string(e.Bytes)] {
			continue
		}
		seen[string(e.Bytes)] = true
		if err := visit(&e); err != nil {
			return err
		}
	}
	return nil
}

// EntriesOfLines visits each distinct encoding of lines of hex, one instruction a line.
func EntriesOfLines(r io.Reader, d *profile.Decoder, seen map[string]bool, visit func(*Entry) error) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.Join(strings.Fields(lines.Text()), "")
		if text == "" {
			continue
		}
		b, err := hex.DecodeString(text)
		if err != nil {
			return &LineError{n, lines.Text()}
		}
		e := NewEntry(b, d)
		if seen[string(e.Bytes)] {
			continue
		}
		seen[string(e.Bytes)] = true
		if err := visit(&e); err != nil {
			return err
		}
	}
	return lines.Err()
}

// LineError: a line is no bytes in hex.
type LineError struct {
	Line int
	Text string
}

// Error names the line.
func (e *LineError) Error() string {
	return "line " + strconv.Itoa(e.Line) + ": " + strconv.Quote(e.Text[:min(len(e.Text), 80)]) + " is not bytes in hex"
}

// The corpus that comes with the program: testdata/corpus, a file a map.
//
//go:embed testdata/corpus/*.txt
var corpusFiles embed.FS

// ShippedNotice says under which licence the shipped corpus is, and how it grows.
const ShippedNotice = `The corpus of kprobelab: up to four instructions of every row of decoder/opcodes,
and encodings of every map that are no instruction. Licence: GPL-2.0-only, as all of kprobelab;
what decode corpus prints of a file of your own is yours.
It grows: each difference between two decoders that was once found stays as a row, with the
answer that the manual gives; rows are added, and one changes only where the manual does.`

// Shipped visits the shipped corpus in the order of its files.
func Shipped(d *profile.Decoder, visit func(*Entry) error) error {
	names, err := fs.Glob(corpusFiles, "testdata/corpus/*.txt")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := corpusFiles.ReadFile(name)
		if err != nil {
			return err
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			digits, _, _ := strings.Cut(lines.Text(), " ")
			b, err := hex.DecodeString(digits)
			if err != nil || len(b) == 0 {
				continue
			}
			e := NewEntry(window(b), d)
			if e.Processor.Length == 0 {
				e.Bytes = b
			}
			if err := visit(&e); err != nil {
				return err
			}
		}
	}
	return nil
}

// window is the bytes, filled up with nops that decide nothing.
func window(b []byte) []byte {
	w := bytes.Repeat([]byte{0x90}, decoder.MaxInsnSize)
	copy(w, b)
	return w
}
