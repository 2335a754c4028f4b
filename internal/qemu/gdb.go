package qemu

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// Debugger is a connection to QEMU's debugger (GDB's remote protocol). It stops the
// machine at addresses without a change of its text. While it is connected and nothing
// goes on, the machine stands still.
type Debugger struct {
	conn net.Conn
	in   *bufio.Reader
}

// Debug connects to the debugger of a machine that is Debugged, which stops.
func (r *Running) Debug() (*Debugger, error) {
	conn, err := dial(r.debugSocket(), r.ended)
	if err != nil {
		return nil, err
	}
	d := &Debugger{conn: conn, in: bufio.NewReader(conn)}
	_, err = d.ask("?")
	return d, err
}

// BreakAt stops the machine before it executes the instruction at an address.
func (d *Debugger) BreakAt(at x86.Addr) error { return d.set("Z1", at) }

// Clear takes the breakpoint away.
func (d *Debugger) Clear(at x86.Addr) error { return d.set("z1", at) }

func (d *Debugger) set(kind string, at x86.Addr) error {
	return d.expect("OK", fmt.Sprintf("%s,%x,1", kind, uint64(at)))
}

func (d *Debugger) expect(want, packet string) error {
	answer, err := d.ask(packet)
	if err == nil && answer != want {
		err = fmt.Errorf("QEMU's debugger, %s: %q", packet, answer)
	}
	return err
}

// Go lets the machine go on. Stopped tells when it stops again.
func (d *Debugger) Go() error { return d.send("c") }

// Stopped waits until the machine stops, and returns where. The error is a timeout
// (os.ErrDeadlineExceeded) when it does not within the limit; 0 is no limit.
func (d *Debugger) Stopped(limit time.Duration) (x86.Addr, error) {
	if limit > 0 {
		if err := d.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
			return 0, err
		}
		defer d.conn.SetReadDeadline(time.Time{})
	}
	if _, err := d.receive(); err != nil {
		return 0, err
	}
	r, err := d.Registers()
	return r.IP(), err
}

// Registers are the general registers in the order of GDB's protocol, then rip and the
// flags.
type Registers [len(names) + 2]uint64

// Where rip and the flags are among the registers.
const (
	ripAt   = len(names)
	flagsAt = ripAt + 1
)

var names = [...]string{"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

// IP is the address of the next instruction.
func (r *Registers) IP() x86.Addr { return x86.Addr(r[ripAt]) }

// AX is rax, a system call's number, and SetAX sets its result.
func (r *Registers) AX() uint64     { return r[0] }
func (r *Registers) SetAX(v uint64) { r[0] = v }

// Arg is the first, second or third argument of a function or a system call.
func (r *Registers) Arg(i int) uint64 { return r[[...]int{5, 4, 3}[i]] }

// SetIP sets it.
func (r *Registers) SetIP(a x86.Addr) { r[ripAt] = uint64(a) }

// Differ names the first general register in which two differ, with both values; "" when
// they are alike.
func (r *Registers) Differ(from *Registers) string {
	for i, name := range names {
		if r[i] != from[i] {
			return fmt.Sprintf("%s is %#x, not %#x", name, r[i], from[i])
		}
	}
	return ""
}

// Registers reads the registers of the machine, which must be stopped.
func (d *Debugger) Registers() (r Registers, err error) {
	answer, err := d.ask("g")
	if err != nil {
		return r, err
	}
	const size = 8*flagsAt + 4 // the flags have 4 bytes
	b, err := hex.DecodeString(answer[:min(len(answer), 2*size)])
	if err != nil || len(b) < size {
		return r, fmt.Errorf("QEMU's debugger: no registers in %.40q", answer)
	}
	for i := range flagsAt {
		r[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	r[flagsAt] = uint64(binary.LittleEndian.Uint32(b[8*flagsAt:]))
	return r, nil
}

// cr3At is the number of cr3 among QEMU's registers, and spaceBits the bits of it with the address
// of the page tables, without PCID and without the bit that selects the tables of user mode (page
// table isolation).
const (
	cr3At     = 29
	spaceBits = 1<<52 - 1<<13
)

// Space returns the address of the page tables of the stopped CPU, which differs between address
// spaces.
func (d *Debugger) Space() (uint64, error) {
	answer, err := d.ask(fmt.Sprintf("p%x", cr3At))
	if err != nil {
		return 0, err
	}
	b, err := hex.DecodeString(answer)
	if err != nil || len(b) != 8 {
		return 0, fmt.Errorf("QEMU's debugger: no cr3 in %.40q", answer)
	}
	return binary.LittleEndian.Uint64(b) & spaceBits, nil
}

// SetRegisters writes them.
func (d *Debugger) SetRegisters(r *Registers) error {
	for i, v := range r {
		size := 8
		if i == flagsAt {
			size = 4
		}
		value := hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, v)[:size])
		if err := d.expect("OK", fmt.Sprintf("P%x=%s", i, value)); err != nil {
			return err
		}
	}
	return nil
}

// Step runs one instruction, without interrupts, and returns the registers after it.
func (d *Debugger) Step() (Registers, error) {
	if _, err := d.ask("s"); err != nil {
		return Registers{}, err
	}
	return d.Registers()
}

// Close ends the connection. The machine goes on.
func (d *Debugger) Close() error {
	return errors.Join(d.send("D"), d.conn.Close())
}

func (d *Debugger) ask(packet string) (string, error) {
	if err := d.send(packet); err != nil {
		return "", err
	}
	return d.receive()
}

func (d *Debugger) send(packet string) error {
	_, err := fmt.Fprintf(d.conn, "$%s#%02x", packet, sum(packet))
	return err
}

// receive reads the next packet and acknowledges it.
func (d *Debugger) receive() (string, error) {
	if _, err := d.until('$'); err != nil { // acknowledgements stand before it
		return "", err
	}
	packet, err := d.until('#')
	if err != nil {
		return "", err
	}
	var check [2]byte
	for i := range check {
		if check[i], err = d.in.ReadByte(); err != nil {
			return "", err
		}
	}
	if want := fmt.Sprintf("%02x", sum(packet)); want != string(check[:]) {
		return "", fmt.Errorf("QEMU's debugger: packet %.40q has the sum %s, not %s", packet, check, want)
	}
	_, err = d.conn.Write([]byte("+"))
	return packet, err
}

// until reads to the end of a packet, or of the bytes before it, without the end.
func (d *Debugger) until(end byte) (string, error) {
	var b strings.Builder
	for b.Len() < bounded.DebuggerPacket {
		c, err := d.in.ReadByte()
		if err != nil {
			return "", err
		}
		if c == end {
			return b.String(), nil
		}
		b.WriteByte(c)
	}
	return "", fmt.Errorf("QEMU's debugger: a packet of more than %d bytes", bounded.DebuggerPacket)
}

func sum(packet string) (s byte) {
	for i := range len(packet) {
		s += packet[i]
	}
	return s
}
