package machine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "kprobelab/machine"
	"kprobelab/x86"
)

// TestTimeoutEndsWhatTheBudgetWouldNot: real time ends a run wherever the guest
// is, also in calls of handlers, and the machine goes on.
func TestTimeoutEndsWhatTheBudgetWouldNot(t *testing.T) {
	var m *Machine
	var spin x86.Addr
	nested := func(*x86.PtRegs) bool {
		_, err := m.CallAddr(spin)
		return errors.Is(err, ErrBudget)
	}
	for _, c := range []struct {
		name  string
		code  []byte
		traps *trapFuncs
	}{
		{name: "jump to itself", code: []byte{0xeb, 0xfe}},
		{name: "yields", code: []byte{0xe6, 0xe1, 0xeb, 0xfc}},
		{name: "sleeps", code: []byte{0x31, 0xff, 0xe6, 0xe2, 0xeb, 0xfa}},
		{name: "probed loop", code: []byte{0xcc, 0xeb, 0xfd}, traps: &trapFuncs{OnInt3: func(*x86.PtRegs) bool { return true }}},
		{name: "faults that are taken", code: []byte{0x0f, 0x0b}, traps: &trapFuncs{OnFault: func(*x86.PtRegs, int) bool { return true }}},
		{name: "a handler's call", code: []byte{0xcc, 0xeb, 0xfd}, traps: &trapFuncs{OnInt3: nested}},
	} {
		for _, every := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				img := &tinyImage{}
				at := img.Add("endless", c.code...)
				spin = img.Add("spin", 0xeb, 0xfe)
				img.Add("seven", 0xb8, 7, 0, 0, 0, 0xc3)
				m = boot(t, img, &Options{Budget: 1 << 60, Timeout: 20 * time.Millisecond, EveryInstruction: every})
				m.SetAllowed(1 << 60)
				m.SetTraps(nil)
				if c.traps != nil {
					m.SetTraps(c.traps)
				}
				for range 2 {
					_, err := m.CallAddr(at)
					var over *BudgetError
					require.ErrorAs(t, err, &over)
					require.Equal(t, 20*time.Millisecond, over.Time)
					got, err := m.Call("seven")
					require.NoError(t, err)
					require.Equal(t, uint64(7), got)
				}
			})
		}
	}
}
