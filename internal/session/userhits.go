package session

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"kprobelab/errno"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// userHits are the functions to call when the kernel's uprobe events are hit. Kprobes of this
// program at the kernel's functions for such hits call them.
type userHits struct {
	at   map[place][]*UserHit
	made int
	// Offsets in the kernel's struct trace_uprobe of its consumer, its file's name and the offset
	// in the file.
	consumer, file, offset int64
	name                   [4096]byte
}

// place is the file, offset and kind of a uprobe.
type place struct {
	file   string
	offset uint64
	ret    bool
}

// UserHit gets the address of the probed instruction (for a function that returns, of its first
// instruction) and the program's registers.
type UserHit func(at uint64, regs *x86.PtRegs)

// userGroup is the group of the events that Hit makes.
const userGroup = "kprobelab"

// Hit makes the kernel put a uprobe at an offset in a file, with ret at the returns of the function
// there, and calls hit for each of its hits. remove ends it. The error is a *UprobeRefused if the
// kernel refuses it.
func (u *Uprobes) Hit(file string, offset uint64, ret bool, hit UserHit) (remove func() error, err error) {
	if u.hits == nil {
		if err := u.watchHits(); err != nil {
			return nil, err
		}
	}
	h, key := u.hits, place{file, offset, ret}
	if len(h.at[key]) == 0 {
		if err := u.startHits(key); err != nil {
			return nil, err
		}
	}
	h.at[key] = append(h.at[key], &hit)
	return func() error {
		list := h.at[key]
		for i, one := range list {
			if one == &hit {
				h.at[key] = append(list[:i:i], list[i+1:]...)
			}
		}
		return nil
	}, nil
}

// startHits defines an event, and enables it; Close takes it away with all others.
func (u *Uprobes) startHits(p place) error {
	kind := "p"
	if p.ret {
		kind = "r"
	}
	u.hits.made++
	name := fmt.Sprintf("%s/u%d", userGroup, u.hits.made)
	if err := u.Define(fmt.Sprintf("%s:%s %s:0x%x", kind, name, p.file, p.offset)); err != nil {
		return err
	}
	if err := u.write(tracefs+"events/"+name+"/enable", "1"); err != nil {
		return err
	}
	if u.hits.made == 1 {
		u.groups = append(u.groups, userGroup)
	}
	return nil
}

// watchHits probes the functions that the kernel calls for each hit of an event: one with the
// consumer and the registers, and for returns one with the consumer, the function and the registers.
func (u *Uprobes) watchHits() error {
	h := &userHits{at: map[place][]*UserHit{}}
	t, ok := u.l.Image.Types().Struct("trace_uprobe")
	for name, to := range map[string]*int64{"consumer": &h.consumer, "filename": &h.file, "offset": &h.offset} {
		m, found := t.Member(name)
		*to, ok = int64(m.Offset/8), ok && found
	}
	if !ok {
		return fmt.Errorf("this kernel's uprobe events are not understood: %w", errno.EOPNOTSUPP)
	}
	for name, pre := range map[string]func(regs *x86.PtRegs){
		"uprobe_dispatcher":    func(regs *x86.PtRegs) { h.fire(u.l, x86.Addr(regs.DI), 0, x86.Addr(regs.SI), false) },
		"uretprobe_dispatcher": func(regs *x86.PtRegs) { h.fire(u.l, x86.Addr(regs.DI), regs.SI, x86.Addr(regs.DX), true) },
	} {
		p := &kprobes.Kprobe{SymbolName: name, PreHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
			pre(regs)
			return 0
		}}
		if err := u.l.Kprobes.RegisterKprobe(p); err != nil {
			return err
		}
	}
	u.hits = h
	return nil
}

// fire calls the functions for the hits of a consumer.
func (h *userHits) fire(l *Session, consumer x86.Addr, function uint64, at x86.Addr, ret bool) {
	var regs x86.PtRegs
	if l.Machine.ReadMem(at, (*[x86.PtRegsSize]byte)(unsafe.Pointer(&regs))[:]) != nil {
		return
	}
	event := consumer.Add(-h.consumer)
	key := place{file: h.text(l, x86.Addr(h.word(l, event.Add(h.file)))), offset: h.word(l, event.Add(h.offset)), ret: ret}
	if !ret {
		function = regs.IP
	}
	for _, hit := range h.at[key] {
		(*hit)(function, &regs)
	}
}

func (h *userHits) word(l *Session, at x86.Addr) uint64 {
	if l.Machine.ReadMem(at, h.name[:8]) != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(h.name[:])
}

// text is a string of the kernel's.
func (h *userHits) text(l *Session, at x86.Addr) string {
	for n := range h.name {
		if l.Machine.ReadMem(at.Add(int64(n)), h.name[n:n+1]) != nil || h.name[n] == 0 {
			return string(h.name[:n])
		}
	}
	return ""
}
