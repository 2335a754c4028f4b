// Package written makes kernel images from functions that a test gives as bytes, which no real
// kernel's function has.
package written

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// Base is the address of the text.
const Base x86.Addr = 0xffffffff81000000

// size is the size of each function in bytes; int3 follows its code.
const size = 64

// Image is an image whose functions are the given code, in hexadecimal, in the order of their names.
func Image(t *testing.T, functions map[string]string) *kimage.Image {
	t.Helper()
	dir := t.TempDir()
	text := bytes.Repeat([]byte{0xcc}, size*len(functions))
	symbols := fmt.Sprintf("%x T _text\n%x T _stext\n", uint64(Base), uint64(Base))
	at := 0
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		code := functions[name]
		b, err := hex.DecodeString(strings.ReplaceAll(code, " ", ""))
		if err != nil || len(b) > size {
			t.Fatalf("code of %s: %d bytes, %v", name, len(b), err)
		}
		copy(text[at:], b)
		symbols += fmt.Sprintf("%x T %s\n", uint64(Base)+uint64(at), name)
		at += size
	}
	symbols += fmt.Sprintf("%x T _etext\n", uint64(Base)+uint64(at))
	textFile, mapFile := filepath.Join(dir, "text"), filepath.Join(dir, "System.map")
	for file, b := range map[string][]byte{textFile: text, mapFile: []byte(symbols)} {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	img, err := kimage.Open("../../testdata/guest.elf", &kimage.Options{
		SystemMap: mapFile, LiveText: fmt.Sprintf("%s@%x", textFile, uint64(Base)), NoBoot: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return img
}
