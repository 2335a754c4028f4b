package kimage

import "encoding/binary"

// maxBTFSet bounds how many numbers a set has.
const maxBTFSet = 1 << 16

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
	if n > maxBTFSet {
		return nil
	}
	b := img.bytes(at.Add(4), 4*n)
	for ; len(b) >= 4; b = b[4:] {
		ids = append(ids, int(binary.LittleEndian.Uint32(b)))
	}
	return ids
}
