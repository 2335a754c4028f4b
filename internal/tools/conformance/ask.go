package conformance

import (
	"errors"
	"fmt"

	"kprobelab/internal/tools/qemu"
	"kprobelab/internal/tools/qemu/frame"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// Booted is what a booted machine sent.
type Booted struct {
	// Frames are what init sent, by name.
	Frames map[string][]byte
	// Text and Settled are the kernel's text as boot left it, and with the
	// probes in place.
	Text, Settled []byte
}

// TextOf is the range of a kernel's text.
func TextOf(img *kimage.Image) (r x86.Range, err error) {
	start, end := img.Lookup("_stext"), img.Lookup("_etext")
	if len(start) != 1 || len(end) != 1 {
		return r, fmt.Errorf("%s: no _stext and _etext", img.Name())
	}
	return x86.Range{Start: start[0].Addr, End: end[0].Addr}, nil
}

// Ask boots the machine, whose kernel's text is the given range, and waits
// until init is done. say is told what happens.
func Ask(m *qemu.Machine, text x86.Range, say func(string)) (*Booted, error) {
	b := &Booted{Frames: map[string][]byte{}}
	return b, m.Boot(func(r *qemu.Running) error { return b.follow(r, text, say) })
}

// follow reads frames to the last one.
func (b *Booted) follow(r *qemu.Running, text x86.Range, say func(string)) error {
	for {
		name, data, err := r.Frame()
		if err != nil {
			return err
		}
		b.Frames[name] = data
		switch name {
		case frame.Booted:
			say("booted; reading its text")
			if b.Text, err = r.Memory(text); err != nil {
				return err
			}
			if err := r.Tell("go on"); err != nil {
				return err
			}
		case frame.Errnos:
			say("every definition is written")
		case frame.Attached:
			say("every program is attached or refused")
		case frame.Failed:
			return errors.New("init: " + string(data))
		case frame.Done:
			b.Settled, err = r.Memory(text)
			return err
		}
	}
}
