package kimage

import (
	"encoding/binary"
	"errors"
	"sync"

	"kprobelab/internal/bounded"
	"kprobelab/kimage/btf"
)

// ErrNoBTF says that the image has no type information.
var ErrNoBTF = errors.New("the image has no BTF")

// btfCache is the parsed BTF of an image and of its modules. It is made when a
// prototype is first needed: parsing costs more than opening.
type btfCache struct {
	once  sync.Once
	types *btf.Types
	err   error
}

// Types returns the types of the image's BTF; it has none if the image has no BTF, or
// if the BTF cannot be read.
func (img *Image) Types() *btf.Types {
	c := &img.tables.btf
	c.once.Do(func() { c.load(img) })
	return c.types
}

// BTFError says why there are no prototypes: ErrNoBTF, or the fault in the image's BTF;
// nil if the BTF could be read.
func (img *Image) BTFError() error {
	img.Types()
	return img.tables.btf.err
}

// BTF returns the image's BTF as it is in the file, and its modules'; nil if there is none.
func (img *Image) BTF() (raw []byte, modules [][]byte) {
	if s := img.section(".BTF"); s != nil {
		for _, m := range img.modules {
			if len(m.btf) > 0 {
				modules = append(modules, m.btf)
			}
		}
		return s.Data, modules
	}
	return nil, nil
}

// ModuleBTF returns the BTF of a loaded module, nil if it has none.
func (img *Image) ModuleBTF(name string) []byte {
	for _, m := range img.modules {
		if m.name == name {
			return m.btf
		}
	}
	return nil
}

func (c *btfCache) load(img *Image) {
	raw, modules := img.BTF()
	if len(raw) == 0 {
		c.types, c.err = &btf.Types{}, ErrNoBTF
		return
	}
	var err error
	if c.types, err = btf.New(raw, modules); err != nil {
		c.err = badFormat(img.name, -1, "the section .BTF cannot be read: %v", err)
	}
}

// Proto is Types().Proto.
func (img *Image) Proto(name string) (btf.Proto, bool) { return img.Types().Proto(name) }

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
