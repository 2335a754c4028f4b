package interp

import (
	"fmt"

	"kprobelab/machine"
	"kprobelab/x86"
)

// Two views of text. If the host changes a page of a booted kernel's text (an int3, a jump, the call of
// a trampoline), the guest reads and writes another page, which holds the text without the host's
// changes. The page that is executed, and that the host reads, has the guest's changes and the host's. If
// the guest changes bytes that the host has changed, the host gets a report. From then on the guest's bytes
// are executed, but for the first of a probe: an int3 stays there, so no hit is lost until the host has the
// report. The host can hold an int3 in a byte (HoldText), which is so even where the guest has one, too.

// view is a page of text that the host has changed. seen is the guest's view of it, was that view when the
// two were last made consistent.
type view struct {
	va   x86.Addr
	text *page
	seen *page
	was  page
}

// A change of the host's may be a jump or a call, of sizeOfChange bytes.
const (
	sizeOfChange = 5
	callRel      = 0xe8
	jumpRel      = 0xe9
)

// maxViews is the most pages of text that the host changes, as on the engine in C.
const maxViews = 8192

// seen is a page as the guest reads and writes it.
func (b *booted) seen(p *page) *page {
	if len(b.views) != 0 {
		if v := b.views[p]; v != nil {
			return v.seen
		}
	}
	return p
}

// viewAt is the view of an address, and the offset in it; nil where there is none.
func (b *booted) viewAt(a x86.Addr) (*view, x86.Addr) {
	p := b.e.page(a, 0)
	if p == nil {
		return nil, 0
	}
	return b.views[p], a % pageSize
}

// changed is the byte that the host has changed at an address, 0 where it has not.
func (b *booted) changed(a x86.Addr) byte {
	if v, at := b.viewAt(a); v != nil && v.text[at] != v.was[at] {
		return v.text[at]
	}
	return 0
}

// yieldToGuest: the guest has changed a byte of a change of the host's: all of that is the guest's again, but for an
// int3 in its first byte.
func (b *booted) yieldToGuest(a x86.Addr) {
	first, n := a, x86.Addr(1)
	for at := a - sizeOfChange + 1; at <= a; at++ {
		if c := b.changed(at); c == jumpRel || c == callRel {
			first, n = at, sizeOfChange
			break
		}
	}
	stays := n == sizeOfChange || b.changed(a) == x86.Int3 || b.held[a]
	for at := first; at < first+n; at++ {
		if v, i := b.viewAt(at); v != nil {
			v.text[i], v.was[i] = v.seen[i], v.seen[i]
			b.dropPage(v.text, uint64(i), uint64(i)+1)
		}
	}
	if v, i := b.viewAt(first); v != nil && stays {
		v.text[i] = x86.Int3
	}
}

// merge: what the guest has written is executed from now on.
func (b *booted) merge(v *view) {
	if *v.seen == v.was {
		return
	}
	for i := range v.seen {
		if v.seen[i] == v.was[i] {
			continue
		}
		at := v.va + x86.Addr(i)
		if v.text[i] != v.was[i] || b.held[at] {
			b.taken = append(b.taken, at)
			b.yieldToGuest(at)
			continue
		}
		v.text[i], v.was[i] = v.seen[i], v.seen[i]
		b.dropPage(v.text, uint64(i), uint64(i)+1)
	}
}

// HideText precedes a change of text by the host: the guest goes on to see the text as it is now.
func (e bootedEngine) HideText(addr x86.Addr, n int) error {
	b := e.b
	if b.cur == nil || n == 0 {
		return nil
	}
	for at := pageDown(addr); at < addr.Add(int64(n)); at += pageSize {
		if e.region(at) != nil {
			continue
		}
		p := e.page(at, 0)
		if p == nil || b.views[p] != nil {
			continue
		}
		if len(b.views) == maxViews {
			return fmt.Errorf("text on more than %d pages of a booted kernel: %w", maxViews, machine.ErrNoMemory)
		}
		v := &view{va: at, text: p, seen: newPage(), was: *p}
		*v.seen = *p
		b.views[p] = v
		b.flush()
	}
	return nil
}

// GuestText reads text as the guest sees it.
func (e bootedEngine) GuestText(addr x86.Addr, to []byte) {
	for i := range to {
		if v, at := e.b.viewAt(addr.Add(int64(i))); v != nil {
			to[i] = v.seen[at]
		}
	}
}

// HoldText keeps the int3 that the host has written to a byte, whatever the guest writes there, or lets go of it.
func (e bootedEngine) HoldText(at x86.Addr, on bool) error {
	if on {
		e.b.held[at] = true
	} else {
		delete(e.b.held, at)
	}
	return nil
}

// tellTaken reports the host's changes that the guest has overwritten.
func (b *booted) tellTaken() {
	if len(b.taken) == 0 {
		return
	}
	list := b.taken
	b.taken = nil
	b.e.host.Taken(list)
}
