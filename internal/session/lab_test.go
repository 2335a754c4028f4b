package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/callsyntax"
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/profile"
	"kprobelab/x86"
)

func newLab(t testing.TB, o *kprobelab.Options) *Session {
	lab, err := kprobelab.New(guest(t), o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = lab.Close() })
	l := New(lab)
	return l
}

func call(t testing.TB, l *Session, text string) *Call {
	c, err := BindCall(l.Image, text)
	require.NoError(t, err)
	return c
}

func TestCallFillsBuffers(t *testing.T) {
	l := newLab(t, nil)
	r, err := l.Make(call(t, l, `snprintf(buf[8], 8, "%d%c", -42, 'x')`))
	require.NoError(t, err)
	require.EqualValues(t, 4, r.Value)
	require.Len(t, r.Buffers, 2)
	require.Len(t, r.Shown(), 1, "the format was not changed")
	require.Equal(t, "-42x\x00\x00\x00\x00", string(r.Shown()[0].After))

	r, err = l.Make(call(t, l, `memset({01 02 03}, 0xff, 2)`))
	require.NoError(t, err)
	require.Equal(t, []byte{0xff, 0xff, 3}, r.Shown()[0].After)
	require.True(t, r.Buffers[0].Changed())
}

func TestResultPointsIntoAnArgument(t *testing.T) {
	l := newLab(t, nil)
	r, err := l.Make(call(t, l, `strchr("abc", 0x63)`))
	require.NoError(t, err)
	arg, off, ok := r.Into()
	require.True(t, ok)
	require.Equal(t, []int{0, 2}, []int{arg, int(off)})
	r, err = l.Make(call(t, l, `strchr("abc", 0x64)`))
	require.NoError(t, err)
	_, _, ok = r.Into()
	require.False(t, ok)
}

func TestCallGivesItsBuffersBack(t *testing.T) {
	l := newLab(t, nil)
	at := make([]x86.Addr, 2)
	for i := range at {
		r, err := l.Make(call(t, l, "strnlen(buf[100], 100)"))
		require.NoError(t, err)
		at[i] = r.Buffers[0].addr
	}
	require.Equal(t, at[0], at[1])
}

// TestNoTimeWithoutEntryHandlers: 2.6.18 runs nothing at the entry that could
// take the time.
func TestNoTimeWithoutEntryHandlers(t *testing.T) {
	old, ok := profile.Named("2.6.18")
	require.True(t, ok)
	img, err := kprobelab.OpenImage("", &kimage.Options{Profile: old})
	require.NoError(t, err)
	lab, err := kprobelab.New(img, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = lab.Close() })
	l := New(lab)
	var took []int64
	p, err := l.Plant(callsyntax.Probe{Return: true, Addr: img.Lookup("gcd")[0].Addr}, Handlers{
		Returned: func(_ *Planted, _ Where, _ uint64, ns int64) { took = append(took, ns) },
	})
	require.NoError(t, err)
	_, err = l.Make(call(t, l, "gcd(12, 18)"))
	require.NoError(t, err)
	l.Unplant(p)
	require.Equal(t, []int64{-1}, took)
}

func TestPlantCounts(t *testing.T) {
	l := newLab(t, nil)
	var seen []string
	h := Handlers{
		Pre:  func(p *Planted, at Where, regs *x86.PtRegs) { seen = append(seen, "pre "+p.Name) },
		Post: func(p *Planted, at Where, regs *x86.PtRegs) { seen = append(seen, "post "+p.Name) },
		Returned: func(p *Planted, at Where, v uint64, ns int64) {
			seen = append(seen, "ret "+p.Name)
			require.EqualValues(t, 6, v)
			require.Positive(t, ns)
		},
	}
	var in []*Planted
	for _, text := range []string{"gcd", "gcd+0x5"} {
		probe, err := callsyntax.ParseKprobe(text)
		require.NoError(t, err)
		p, err := l.Plant(probe, h)
		require.NoError(t, err)
		in = append(in, p)
	}
	p, err := l.Plant(callsyntax.Probe{Return: true, Addr: l.Image.Lookup("gcd")[0].Addr}, h)
	require.NoError(t, err)
	require.Equal(t, "gcd", p.Name)
	in = append(in, p)

	_, err = l.Make(call(t, l, "gcd(12, 18)"))
	require.NoError(t, err)
	for _, p := range in {
		l.Unplant(p)
		require.EqualValues(t, 1, p.Hits)
		require.Zero(t, p.Missed)
	}
	require.Equal(t, []string{"pre gcd", "post gcd", "pre gcd", "post gcd", "ret gcd"}, seen)
	require.Zero(t, l.Kprobes.Registered())
}

func TestMissedInstancesAreCounted(t *testing.T) {
	l := newLab(t, nil)
	p, err := l.Plant(callsyntax.Probe{Return: true, Symbol: "recurse", MaxActive: 2}, Handlers{})
	require.NoError(t, err)
	_, err = l.Make(call(t, l, "recurse(5)"))
	require.NoError(t, err)
	l.Unplant(p)
	require.EqualValues(t, 2, p.Hits)
	require.NotZero(t, p.Missed)
}

func TestRunInterleavesTasks(t *testing.T) {
	l := newLab(t, &kprobelab.Options{CPUs: 2, Seed: 1})
	var sequences [][]*Call
	for _, text := range []string{"spin(5000); gcd(12, 18)", "spin(3000)", "gcd(2, 4); fault_ud2(); gcd(1, 1)"} {
		calls, err := BindTask(l.Image, text)
		require.NoError(t, err)
		sequences = append(sequences, calls)
	}
	list, err := l.Run(sequences)
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.Len(t, list[0].Results, 2)
	require.EqualValues(t, 6, list[0].Results[1].Value)
	require.Nil(t, list[1].Failed)
	require.Equal(t, "fault_ud2", list[2].Failed.Name)
	var f *machine.Fault
	require.ErrorAs(t, list[2].Err, &f)
	require.Len(t, list[2].Results, 1)
}

func TestRunKeepsToTheBudget(t *testing.T) {
	l := newLab(t, &kprobelab.Options{Budget: 10_000})
	calls, err := BindTask(l.Image, "runaway()")
	require.NoError(t, err)
	_, err = l.Run([][]*Call{calls})
	require.ErrorIs(t, err, machine.ErrBudget)
	_, err = l.Make(calls[0])
	require.ErrorIs(t, err, machine.ErrBudget)
}

// Whatever processor the text is made for, the machine has one that runs it.
func TestEveryProcessorRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cpuinfo")
	require.NoError(t, os.WriteFile(file, []byte("vendor_id\t: GenuineIntel\nflags\t: fpu cx16 movbe\nbugs\t:\n"), 0o600))
	for _, cpu := range append(kimage.CPUModels(), kimage.HostCPU, file, file+",-cx16") {
		img, err := kimage.FromBytes("guest kernel", kprobelab.GuestELF(), &kimage.Options{CPU: cpu})
		require.NoError(t, err, cpu)
		l, err := kprobelab.New(img, nil)
		require.NoError(t, err, cpu)
		ret, err := l.Machine.Call("gcd", 12, 18)
		require.NoError(t, err, cpu)
		require.EqualValues(t, 6, ret, cpu)
		if strings.HasPrefix(cpu, file) {
			_, err = l.Machine.Call("form_movbe")
			require.NoError(t, err)
		}
		l.Close()
	}
	_, err := newLab(t, nil).Machine.Call("form_movbe") // which qemu64 has not
	require.ErrorContains(t, err, "invalid opcode")
}
