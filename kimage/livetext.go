package kimage

import (
	"os"
	"strings"

	"kprobelab/internal/container"
	"kprobelab/kimage/evidence"
	"kprobelab/x86"
)

// layLiveText lays the text that Options.LiveText names over the image's: .text
// and .rodata of an ELF at their addresses, or raw bytes.
func (img *Image) layLiveText() error {
	if img.opts.LiveText == "" {
		return nil
	}
	path, at, err := img.liveTextPlace()
	if err != nil {
		return err
	}
	b, err := readMaybePacked(path, img.opts.Progress)
	if err != nil {
		return err
	}
	if container.IsELF(b) {
		return img.overlayELF(path, b)
	}
	return img.overlayText(path, at, b)
}

// liveTextPlace splits FILE@ADDR. A file that really has the whole name wins.
func (img *Image) liveTextPlace() (path string, at x86.Addr, err error) {
	path, at = img.opts.LiveText, img.bounds.stext
	i := strings.LastIndexByte(path, '@')
	if i < 0 {
		return path, at, nil
	}
	if _, err := os.Stat(path); err == nil {
		return path, at, nil
	}
	at, ok := parseHex(path[i+1:])
	if !ok {
		return "", 0, badFormat(path, -1, "a hexadecimal address is wanted after the @")
	}
	return path[:i], at, nil
}

func (img *Image) overlayELF(path string, b []byte) error {
	f, err := parseELF(path, b)
	if err != nil {
		return err
	}
	text := f.section(".text")
	if text == nil || text.typ == shtNobits {
		return badFormat(path, -1, "the ELF has no .text to be live text")
	}
	if err := img.overlayText(path, x86.Addr(text.addr), f.content(text)); err != nil {
		return err
	}
	if ro := f.section(".rodata"); ro != nil && ro.typ != shtNobits {
		img.overlay(x86.Addr(ro.addr), f.content(ro))
	}
	return nil
}

// judged is the number of bytes of live text from which on they are compared with
// the image's.
const judged = 512

// overlayText lays bytes over the text and notes their range. Text of another
// image is refused: booting changes some bytes in a hundred, while another
// kernel, or a file that is no text, has few bytes in common with the image.
func (img *Image) overlayText(path string, at x86.Addr, b []byte) error {
	n, same := 0, 0
	img.overlaps(at, b, func(now, live []byte) {
		n += len(now)
		for i := range now {
			if now[i] == live[i] {
				same++
			}
		}
	})
	switch {
	case n == 0:
		return badFormat(path, -1, "it is no text of this image: %d bytes at %v are outside of the image's text", len(b), at)
	case n >= judged && same < n/2:
		return badFormat(path, -1, "it is no text of this image: of %d bytes at %v only %d equal the image's", n, at, same)
	}
	img.overlay(at, b)
	img.live = x86.Range{Start: at, End: at + x86.Addr(len(b))}
	img.facts.Add(evidence.Fact{Name: "live text", Value: img.live.Start.String() + "-" + img.live.End.String(), Evidence: path})
	return nil
}

// overlay copies b over the content of all sections it overlaps.
func (img *Image) overlay(at x86.Addr, b []byte) {
	img.overlaps(at, b, func(now, live []byte) { copy(now, live) })
}

// overlaps calls do for the content of each section that b overlaps, with the
// part of b that lies over it.
func (img *Image) overlaps(at x86.Addr, b []byte, do func(now, live []byte)) {
	end := at + x86.Addr(len(b))
	for _, s := range img.sections {
		from, to := max(s.Addr, at), min(s.Addr+x86.Addr(len(s.Data)), end)
		if from < to {
			do(s.Data[from-s.Addr:to-s.Addr], b[from-at:to-at])
		}
	}
}
