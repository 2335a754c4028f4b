package boottext

import (
	"encoding/binary"
	"slices"
	"sort"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// A kernel that is built for FineIBT draws a seed on each boot and makes the hashes of indirect calls' types
// anew. The bytes of a hash are explained where one seed makes all that differ.

// hashSize is the size of a hash in bytes.
const hashSize = 4

// hashes are the places of the hashes, by address, and whether one seed makes the live ones.
type hashes struct {
	list  []kimage.CFIHash
	asked bool
	made  bool
}

func newHashes(img *kimage.Image) hashes {
	list := img.CFIHashes()
	sort.Slice(list, func(i, j int) bool { return list[i].Addr < list[j].Addr })
	return hashes{list: list}
}

// hashed reports whether the byte at addr is of a hash that the machine's seed makes.
func (c *causes) hashed(addr x86.Addr) bool {
	h := &c.hashes
	i := sort.Search(len(h.list), func(i int) bool { return h.list[i].Addr > addr })
	if i == 0 || !addr.In(h.list[i-1].Addr, h.list[i-1].Addr.Add(hashSize)) {
		return false
	}
	if !h.asked {
		h.asked, h.made = true, oneSeed(c.liveHashes())
	}
	return h.made
}

// hash is one as the compiler wrote it, and as it is.
type hash struct{ was, is uint32 }

// oneSeed reports whether one seed makes all the hashes.
func oneSeed(list []hash) bool {
	// The first one tells the seed, unless it was an ENDBR's and was made again.
	const tries = 4
	for _, h := range list[:min(tries, len(list))] {
		seed := h.was ^ h.is
		if !slices.ContainsFunc(list, func(h hash) bool { return rehash(h.was, seed) != h.is }) {
			return true
		}
	}
	return false
}

// liveHashes lists the hashes of what was read.
func (c *causes) liveHashes() (list []hash) {
	for _, h := range c.hashes.list {
		off := h.Addr.Sub(c.base)
		if off < 0 || off+hashSize > int64(len(c.live)) {
			continue
		}
		var code [hashSize]byte
		c.img.CodeAt(h.Addr, code[:])
		one := hash{binary.LittleEndian.Uint32(code[:]), binary.LittleEndian.Uint32(c.live[off:])}
		if h.Negative {
			one = hash{-one.was, -one.is}
		}
		list = append(list, one)
	}
	return list
}

// rehash returns a kCFI hash that is changed by the boot's seed. As in cfi_rehash, neither the result nor its negative
// is the encoding of an ENDBR.
func rehash(hash, seed uint32) uint32 {
	const feedback = 0x80200003
	hash ^= seed
	for isEndbr(hash) || isEndbr(-hash) {
		low := hash & 1
		hash >>= 1
		if low != 0 {
			hash ^= feedback
		}
	}
	return hash
}

// isEndbr reports whether the four bytes are an endbr64, an endbr32, or what replaces one.
func isEndbr(v uint32) bool {
	const (
		endbr64 = 0xfa1e0ff3
		endbr32 = 0xfb1e0ff3
		nop4    = 0x001f0f66
		nopl4   = 0xd6401f0f
	)
	return v == endbr64 || v == endbr32 || v == nop4 || v == nopl4
}
