// Package printk reads what a booted kernel has logged from its memory: the
// ring buffer of 5.10 and later (kernel/printk/printk_ringbuffer.h), whose
// structures are laid out as the image's BTF says.
//
// It must not know how memory is read.
package printk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// ErrUnknown is a kernel whose log is not known here.
var ErrUnknown = errors.New("this kernel's log cannot be read: it has no prb, or BTF does not say how it is laid out")

// Record is one message.
type Record struct {
	Seq   uint64
	Nanos uint64
	Text  string
}

// String is the record as dmesg prints it.
func (r Record) String() string {
	return fmt.Sprintf("[%5d.%06d] %s", r.Nanos/1e9, r.Nanos%1e9/1e3, r.Text)
}

// Log reads a kernel's log from memory.
type Log struct {
	read func(x86.Addr, []byte) error
	prb  x86.Addr
	at   map[string]x86.Addr
	// Sizes of a descriptor and of what is known of its message.
	desc, info x86.Addr
}

// Of finds the log of an image's kernel; read reads its memory.
func Of(img *kimage.Image, read func(x86.Addr, []byte) error) (*Log, error) {
	l := &Log{read: read, at: map[string]x86.Addr{}}
	prb := img.Lookup("prb")
	if len(prb) == 0 {
		return nil, ErrUnknown
	}
	var err error
	if l.prb, err = l.pointer(prb[0].Addr); err != nil {
		return nil, err
	}
	for _, path := range [][]string{
		{"printk_ringbuffer", "desc_ring", "count_bits"}, {"printk_ringbuffer", "desc_ring", "descs"},
		{"printk_ringbuffer", "desc_ring", "infos"}, {"printk_ringbuffer", "desc_ring", "head_id"},
		{"printk_ringbuffer", "desc_ring", "tail_id"}, {"printk_ringbuffer", "text_data_ring", "size_bits"},
		{"printk_ringbuffer", "text_data_ring", "data"}, {"prb_desc", "state_var"},
		{"prb_desc", "text_blk_lpos", "begin"}, {"prb_desc", "text_blk_lpos", "next"},
		{"printk_info", "seq"}, {"printk_info", "ts_nsec"}, {"printk_info", "text_len"},
	} {
		t, ok := img.Types().Struct(path[0])
		if !ok {
			return nil, ErrUnknown
		}
		switch path[0] {
		case "prb_desc":
			l.desc = x86.Addr(t.Size())
		case "printk_info":
			l.info = x86.Addr(t.Size())
		}
		at := x86.Addr(0)
		for _, name := range path[1:] {
			m, ok := t.Member(name)
			if !ok {
				return nil, ErrUnknown
			}
			at, t = at+x86.Addr(m.Offset/8), m.Type
		}
		l.at[strings.Join(path[1:], ".")] = at
	}
	return l, nil
}

func (l *Log) number(at x86.Addr, size int) (uint64, error) {
	var b [8]byte
	err := l.read(at, b[:size])
	return binary.LittleEndian.Uint64(b[:]), err
}

func (l *Log) pointer(at x86.Addr) (x86.Addr, error) {
	v, err := l.number(at, 8)
	return x86.Addr(v), err
}

// A descriptor's state is in the two highest bits of state_var, its ID in the rest.
const (
	stateShift = 62
	idMask     = 1<<stateShift - 1
	committed  = 1
	finalized  = 2
)

// Since are the messages from a sequence number on.
func (l *Log) Since(seq uint64) (list []Record, err error) {
	get := func(name string, size int) (v uint64) {
		if err == nil {
			v, err = l.number(l.prb+l.at[name], size)
		}
		return v
	}
	bits, size := get("desc_ring.count_bits", 4), get("text_data_ring.size_bits", 4)
	descs, infos := x86.Addr(get("desc_ring.descs", 8)), x86.Addr(get("desc_ring.infos", 8))
	head, tail := get("desc_ring.head_id", 8), get("desc_ring.tail_id", 8)
	data := x86.Addr(get("text_data_ring.data", 8))
	if err != nil {
		return nil, err
	}
	if bits > bounded.PrintkBits || size > 2*bounded.PrintkBits {
		return nil, ErrUnknown
	}
	for n := range uint64(1) << bits {
		id := (tail + n) & idMask
		slot := x86.Addr(id & (1<<bits - 1))
		r, ok, err := l.record(id, descs+slot*l.desc, infos+slot*l.info, data, 1<<size)
		if err != nil {
			return nil, err
		}
		if ok && r.Seq >= seq {
			list = append(list, r)
		}
		if id == head&idMask {
			break
		}
	}
	return list, nil
}

// record reads one message; false where there is none.
func (l *Log) record(id uint64, desc, info, data x86.Addr, size uint64) (r Record, ok bool, err error) {
	get := func(at x86.Addr, n int) (v uint64) {
		if err == nil {
			v, err = l.number(at, n)
		}
		return v
	}
	state := get(desc+l.at["state_var"], 8)
	if s := state >> stateShift; err != nil || state&idMask != id || s != committed && s != finalized {
		return r, false, err
	}
	begin, next := get(desc+l.at["text_blk_lpos.begin"], 8), get(desc+l.at["text_blk_lpos.next"], 8)
	r.Seq, r.Nanos = get(info+l.at["seq"], 8), get(info+l.at["ts_nsec"], 8)
	n := get(info+l.at["text_len"], 2)
	if err != nil || begin&1 != 0 { // an odd position: there is no text
		return r, err == nil, err
	}
	// A block that would go past the end is at the buffer's start; its ID comes first.
	if begin/size != next/size && next%size != 0 {
		begin = 0
	}
	text := make([]byte, n)
	err = l.read(data+x86.Addr(begin%size+8), text)
	r.Text = string(text)
	return r, true, err
}
