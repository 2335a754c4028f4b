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
	conn, err := dial(r.debugSocket())
	if err != nil {
		return nil, err
	}
	d := &Debugger{conn: conn, in: bufio.NewReader(conn)}
	_, err = d.ask("?")
	return d, err
}

// BreakAt stops the machine before it runs what stands at an address.
func (d *Debugger) BreakAt(at x86.Addr) error { return d.set("Z1", at) }

// Clear takes the breakpoint away.
func (d *Debugger) Clear(at x86.Addr) error { return d.set("z1", at) }

func (d *Debugger) set(kind string, at x86.Addr) error {
	answer, err := d.ask(fmt.Sprintf("%s,%x,1", kind, uint64(at)))
	if err == nil && answer != "OK" {
		err = fmt.Errorf("QEMU's debugger, %s at %v: %q", kind, at, answer)
	}
	return err
}

// Go lets the machine go on. Stopped tells when it stops again.
func (d *Debugger) Go() error { return d.send("c") }

// Stopped waits until the machine stops, and returns where. The error is a timeout
// (os.ErrDeadlineExceeded) when it does not within the limit.
func (d *Debugger) Stopped(limit time.Duration) (x86.Addr, error) {
	if err := d.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return 0, err
	}
	defer d.conn.SetReadDeadline(time.Time{})
	if _, err := d.receive(); err != nil {
		return 0, err
	}
	return d.ip()
}

// ripAt is where rip is among the registers, in bytes: after 16 of 8 bytes.
const ripAt = 16 * 8

func (d *Debugger) ip() (x86.Addr, error) {
	answer, err := d.ask("g")
	if err != nil {
		return 0, err
	}
	b, err := hex.DecodeString(answer[:min(len(answer), 2*(ripAt+8))])
	if err != nil || len(b) < ripAt+8 {
		return 0, fmt.Errorf("QEMU's debugger: no registers in %.40q", answer)
	}
	return x86.Addr(binary.LittleEndian.Uint64(b[ripAt:])), nil
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
	if _, err := d.in.ReadString('$'); err != nil { // acknowledgements stand before it
		return "", err
	}
	packet, err := d.in.ReadString('#')
	if err != nil {
		return "", err
	}
	var check [2]byte
	for i := range check {
		if check[i], err = d.in.ReadByte(); err != nil {
			return "", err
		}
	}
	packet = strings.TrimSuffix(packet, "#")
	if want := fmt.Sprintf("%02x", sum(packet)); want != string(check[:]) {
		return "", fmt.Errorf("QEMU's debugger: packet %.40q has the sum %s, not %s", packet, check, want)
	}
	_, err = d.conn.Write([]byte("+"))
	return packet, err
}

func sum(packet string) (s byte) {
	for i := range len(packet) {
		s += packet[i]
	}
	return s
}
