package kimage

import (
	"encoding/binary"

	"kprobelab/internal/bounded"
)

// BTFSet is a set of functions that the kernel's code has by their numbers in BTF
// (BTF_SET_START), by the name of its symbol; nil where no symbol leads to one.
func (img *Image) BTFSet(name string) (ids []int) {
	found := img.Lookup(name)
	if len(found) != 1 {
		return nil
	}
	at := found[0].Addr
	head := img.bytes(at, 4)
	if head == nil {
		return nil
	}
	n := int(binary.LittleEndian.Uint32(head))
	if n > bounded.BTFSet {
		return nil
	}
	b := img.bytes(at.Add(4), 4*n)
	for ; len(b) >= 4; b = b[4:] {
		ids = append(ids, int(binary.LittleEndian.Uint32(b)))
	}
	return ids
}
