package compare

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"

	"kprobelab/decoder"
)

// Serve answers the line protocol by a Go function: lines of hex from r, answers to w,
// which are flushed when no question waits. It returns at the end of r.
func Serve(r io.Reader, w io.Writer, decode func(b []byte) Answer) error {
	in, out := bufio.NewReaderSize(r, 1<<16), bufio.NewWriterSize(w, 1<<16)
	var b [decoder.MaxInsnSize]byte
	var line []byte
	for {
		text, err := in.ReadSlice('\n')
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return firstError(err, out.Flush())
		}
		text = trimLine(text)
		if len(text) > 2*len(b) {
			text = text[:2*len(b)]
		}
		n, err := hex.Decode(b[:], text)
		if err != nil {
			return firstError(fmt.Errorf("%q is not bytes in hex", text), out.Flush())
		}
		line = append(decode(b[:n]).append(line[:0]), '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func trimLine(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
