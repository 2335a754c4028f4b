package qemu

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"time"

	"kprobelab/x86"
)

// packetBytes is the number of bytes of memory in a packet of the debugger.
const packetBytes = 1024

// ReadMemory reads memory at a virtual address of the task that runs on the CPU that has
// stopped.
func (d *Debugger) ReadMemory(at x86.Addr, p []byte) error {
	for len(p) > 0 {
		n := min(len(p), packetBytes)
		answer, err := d.ask(fmt.Sprintf("m%x,%x", uint64(at), n))
		if err != nil {
			return err
		}
		b, err := hex.DecodeString(answer)
		if err != nil || len(b) != n {
			return fmt.Errorf("QEMU's debugger: no memory of %d bytes at %#x: %.20q", n, uint64(at), answer)
		}
		copy(p, b)
		p, at = p[n:], at+x86.Addr(n)
	}
	return nil
}

// WriteMemory writes it. The pages must be there; they may be read-only.
func (d *Debugger) WriteMemory(at x86.Addr, p []byte) error {
	for len(p) > 0 {
		n := min(len(p), packetBytes)
		if err := d.expect("OK", fmt.Sprintf("M%x,%x:%s", uint64(at), n, hex.EncodeToString(p[:n]))); err != nil {
			return err
		}
		p, at = p[n:], at+x86.Addr(n)
	}
	return nil
}

// Pass goes over an address where the machine has stopped, and on from there.
func (d *Debugger) Pass(at x86.Addr) error {
	if err := d.Clear(at); err != nil {
		return err
	}
	if _, err := d.Step(); err != nil {
		return err
	}
	if err := d.BreakAt(at); err != nil {
		return err
	}
	return d.Go()
}

// Form is the form of a dump by QEMU (dump-guest-memory): Paging leaves out memory that no page table
// maps, Format is as in its monitor, elf or kdump-zlib; "" is elf.
type Form struct {
	Paging bool
	Format string
}

// Formats lists the formats that this QEMU can write.
func (r *Running) Formats() ([]string, error) {
	var can struct{ Formats []string }
	return can.Formats, r.monitor.ask("query-dump-guest-memory-capability", nil, &can)
}

// DumpMemory writes the memory of the machine, which stands, and the registers of its
// CPUs to a file. Progress is called with how many bytes are written, and of how many.
func (r *Running) DumpMemory(file string, form Form, progress func(done, total int64)) error {
	file, err := filepath.Abs(file) // QEMU stands in a folder of its own
	if err != nil {
		return err
	}
	how := map[string]any{"paging": form.Paging, "protocol": "file:" + file, "detach": true}
	if form.Format != "" {
		how["format"] = form.Format
	}
	if err = r.monitor.do("dump-guest-memory", how); err != nil {
		return err
	}
	for {
		var state struct {
			Status           string
			Completed, Total int64
		}
		if err := r.monitor.ask("query-dump", nil, &state); err != nil {
			return err
		}
		progress(state.Completed, state.Total)
		switch state.Status {
		case "completed":
			return nil
		case "failed":
			return fmt.Errorf("QEMU does not save the machine's memory in %s: is there room on the disk?", file)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// human runs a command of QEMU's monitor for people, and returns its text.
func (r *Running) human(command string) (text string, err error) {
	return text, r.monitor.ask("human-monitor-command", map[string]any{"command-line": command}, &text)
}
