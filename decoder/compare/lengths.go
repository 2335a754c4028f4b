package compare

import (
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"os"

	"kprobelab/decoder"
	"kprobelab/profile"
)

// KernelLength returns the length that the kernel's decoder finds, 0 for an error.
func KernelLength(b []byte, d *profile.Decoder) byte {
	k, err := decoder.DecodeKernel(b, d)
	if err != nil {
		return 0
	}
	return byte(k.Length)
}

// WriteLengths writes lengths of enumerated strings, a byte each, compressed.
func WriteLengths(name string, lengths []byte) error {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(lengths); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// Draw visits n strings at random: a third uniform, a third with prefixes and escapes, a
// third that begin with VEX, EVEX, XOP or REX2. The same seed makes the same strings.
func Draw(seed uint64, n int, visit func(b []byte)) {
	r := rand.New(rand.NewPCG(seed, 0x6b70726f6265))
	var b [40]byte
	for i := range n {
		w := b[:0]
		switch i % 3 {
		case 1:
			for range r.IntN(6) {
				w = append(w, prefixes[r.IntN(len(prefixes))])
			}
			switch r.IntN(4) {
			case 0:
				w = append(w, 0x40|byte(r.IntN(16)))
			case 1:
				w = append(w, 0xD5, byte(r.IntN(256)))
			}
			w = append(w, escapes[r.IntN(len(escapes))]...)
		case 2:
			if r.IntN(4) == 0 {
				w = append(w, prefixes[r.IntN(len(prefixes))])
			}
			w = append(w, []byte{0xC4, 0xC5, 0x62, 0x8F, 0xD5}[r.IntN(5)])
		}
		for len(w) < decoder.MaxInsnSize {
			w = append(w, byte(r.IntN(256)))
		}
		visit(w[:decoder.MaxInsnSize])
	}
}

var escapes = [][]byte{{}, {0x0F}, {0x0F, 0x38}, {0x0F, 0x3A}, {0xC4}, {0xC5}, {0x62}, {0x8F}}
