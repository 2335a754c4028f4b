package qemu

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

// stub is the other side of a debugger: it answers each packet from the table, and
// sends stop after a continue.
func stub(t *testing.T, conn net.Conn, answers map[string]string, stop bool) {
	in := bufio.NewReader(conn)
	say := func(p string) { fmt.Fprintf(conn, "$%s#%02x", p, sum(p)) }
	for {
		if _, err := in.ReadString('$'); err != nil {
			return
		}
		p, err := in.ReadString('#')
		if err != nil {
			return
		}
		fmt.Fprint(conn, "+")
		p = strings.TrimSuffix(p, "#")
		if strings.HasPrefix(p, "P") {
			say("OK")
			continue
		}
		if p == "s" {
			say("T05thread:01;")
			continue
		}
		if p == "c" {
			if stop {
				say("T05thread:01;")
			}
			continue
		}
		say(answers[p])
	}
}

func debugger(t *testing.T, stop bool) *Debugger {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	go stub(t, theirs, map[string]string{
		"Z1,ffffffff81000005,1": "OK", "z1,ffffffff81000005,1": "OK",
		"g": strings.Repeat("00", 16*8) + "05000081ffffffff" + "46020000" + "1000",
	}, stop)
	return &Debugger{conn: ours, in: bufio.NewReader(ours)}
}

func TestDebuggerStopsAtAnAddress(t *testing.T) {
	const at x86.Addr = 0xffffffff81000005
	d := debugger(t, true)
	require.NoError(t, d.BreakAt(at))
	require.Error(t, d.BreakAt(at+1))
	require.NoError(t, d.Go())
	where, err := d.Stopped(time.Minute)
	require.NoError(t, err)
	require.Equal(t, at, where)
	require.NoError(t, d.Clear(at))
}

func TestDebuggerDoesNotWaitForEver(t *testing.T) {
	d := debugger(t, false)
	require.NoError(t, d.Go())
	_, err := d.Stopped(time.Millisecond)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestDebuggerSteps(t *testing.T) {
	d := debugger(t, false)
	r, err := d.Step()
	require.NoError(t, err)
	require.Equal(t, x86.Addr(0xffffffff81000005), r.IP())
	require.Equal(t, uint64(0x246), r[flagsAt])
	other := r
	other.SetIP(0x10)
	require.NoError(t, d.SetRegisters(&other))
	require.Empty(t, r.Differ(&other), "only general registers count")
	other[3] = 7
	require.Equal(t, "rdx is 0x7, not 0x0", other.Differ(&r))
}

// Memory goes in packets that the debugger takes.
func TestDebuggerReadsAndWritesMemory(t *testing.T) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	go stub(t, theirs, map[string]string{
		"m1000,400": strings.Repeat("5a", 1024), "m1400,1": "5b", "m2000,4": "E14",
		"M3000,2:0102": "OK", "M4000,1:00": "E14",
	}, false)
	d := &Debugger{conn: ours, in: bufio.NewReader(ours)}
	p := make([]byte, 1025)
	require.NoError(t, d.ReadMemory(0x1000, p))
	require.Equal(t, strings.Repeat("Z", 1024)+"[", string(p))
	require.ErrorContains(t, d.ReadMemory(0x2000, p[:4]), "no memory of 4 bytes at 0x2000")
	require.NoError(t, d.WriteMemory(0x3000, []byte{1, 2}))
	require.Error(t, d.WriteMemory(0x4000, []byte{0}))
}
