package bench

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/callsyntax"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/machine"
	"kprobelab/profile"
	"kprobelab/x86"
)

// own is a place of the guest kernel as a target, by the rules of a release.
func own(t testing.TB, release, symbol string, offset uint32, call string) *Target {
	t.Helper()
	c, ok := profile.Named(release)
	require.True(t, ok)
	return &Target{
		Open: func(modules ...string) (*kimage.Image, error) {
			return kimage.FromBytes(kprobelab.GuestKernel, kprobelab.GuestELF(), &kimage.Options{Profile: c, Modules: modules})
		},
		Place: probepoint.Request{Symbol: symbol, Offset: offset},
		Call:  call,
	}
}

func TestTarget(t *testing.T) {
	r, err := Run(&Options{Rounds: 1, Hits: 100, Target: own(t, "6.1", placeOptimizable, 0, ""), Others: []int{0, 5}})
	require.NoError(t, err)
	require.Equal(t, &Measured{
		Image: kprobelab.GuestKernel, Release: "6.1.0-kprobelab", Profile: "6.1", Place: "opt_yes", Call: "opt_yes(0, 5)", HitsPerCall: 1,
	}, r.Target)
	var names []string
	parts := map[string]Parts{}
	for _, p := range Paths() {
		parts[p.Name] = p.parts
	}
	for i, res := range r.Paths {
		require.Equal(t, 5*(i%2), res.Others)
		require.Equal(t, parts[res.Path], res.Parts, res.Path)
		require.Zero(t, res.Allocs, res.Path)
		if i%2 == 0 {
			names = append(names, res.Path)
		}
	}
	require.Equal(t, "k k-post b o r rb ro kr nested disabled next-door", strings.Join(names, " "))
	names = nil
	for _, s := range r.Skipped {
		names = append(names, s.Path)
		require.NotEmpty(t, s.Reason)
	}
	require.Equal(t, "k-tf emulated ftrace r-ftrace r-missed", strings.Join(names, " "))
	require.Equal(t, "6.1 (no PREEMPTION)", r.Find("b").Profile)
}

// A place that a call reaches several times: the figures are per hit.
func TestTargetOfSeveralHits(t *testing.T) {
	r, err := Run(&Options{
		Rounds: 1, Hits: 100, Paths: []string{"ftrace", "r-ftrace", "next-door"},
		Target: own(t, "6.1", "put_char", 0, `snprintf(buf[64], 64, "%d%%", 12345)`),
	})
	require.NoError(t, err)
	require.Equal(t, len("12345%"), r.Target.HitsPerCall)
	require.Len(t, r.Paths, 3)
	require.Equal(t, Parts{Tracers: 1}, r.Find("ftrace").Parts)
	require.Equal(t, Parts{Tracers: 1, Trampolines: 1}, r.Find("r-ftrace").Parts)
}

// What no hit can be measured on is an error, in a sentence.
func TestTargetRefuses(t *testing.T) {
	run := func(target *Target) error {
		_, err := Run(&Options{Rounds: 1, Hits: 10, Paths: []string{"k"}, Target: target})
		return err
	}
	err := run(own(t, "6.1", "gcd", 5, `strlen("abc")`))
	require.ErrorIs(t, err, ErrUnmeasurable)
	require.EqualError(t, err, `strlen("abc"): it cannot be measured: it does not come to gcd+0x5`)

	var refused *probepoint.Refusal
	require.ErrorAs(t, run(own(t, "6.1", "gcd", 1, "gcd(1, 1)")), &refused)
	require.Equal(t, rule.NotBoundary, refused.Rule)

	var fault *machine.Fault
	err = run(own(t, "6.1", "strlen", 0, "strlen(1)"))
	require.ErrorAs(t, err, &fault)
	require.Regexp(t, `^strlen\(1\): page fault at strlen[^\n]*$`, err.Error())

	require.ErrorIs(t, run(own(t, "6.1", "runaway", 0, "runaway()")), machine.ErrBudget)

	var syntax *callsyntax.Error
	require.ErrorAs(t, run(own(t, "6.1", "gcd", 0, "nosuch(1)")), &syntax)

	other := own(t, "6.1", "gcd", 0, "")
	other.Open = func(modules ...string) (*kimage.Image, error) {
		return kimage.FromBytes("vmlinux", kprobelab.GuestELF(), &kimage.Options{Modules: modules})
	}
	require.ErrorIs(t, run(other), ErrUnmeasurable)

	broken := errors.New("no such file")
	other.Open = func(...string) (*kimage.Image, error) { return nil, broken }
	require.ErrorIs(t, run(other), broken)
}

// Calls that make more hits each time have no cost per hit.
func TestTargetOfUnevenHits(t *testing.T) {
	s, err := guestKernel(nil, false, 0).make()
	require.NoError(t, err)
	defer s.Close()
	hits, more := uint64(0), uint64(0)
	require.NoError(t, s.Kprobes.RegisterKprobe(&kprobes.Kprobe{
		Addr:       s.symbol(placeOptimizable),
		PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { more++; hits += more; return 0 },
	}))
	require.NoError(t, s.aim(s.symbol(placeOptimizable), guestWords))
	_, err = (&target{measured: Measured{Call: "f()"}}).try(s, &hits)
	require.ErrorIs(t, err, ErrUnmeasurable)
	require.EqualError(t, err, "f(): it cannot be measured: its calls make 2, 3 and 4 hits, and have to be alike")
}

// The rules of a place agree with its hits: at every instruction of some functions, each path that
// no rule bars is taken.
func TestRulesAndHitsAgree(t *testing.T) {
	for _, release := range []string{"4.4", "5.8", "5.10", "6.1", "6.12"} {
		t.Run(release, func(t *testing.T) {
			taken := map[string]int{}
			for name, call := range map[string]string{"gcd": "gcd(12, 18)", placeOptimizable: "opt_yes(0, 5)"} {
				rulesAndHitsAgree(t, own(t, release, name, 0, call), taken)
			}
			t.Log(taken)
			for _, path := range []string{"k-post", "b", "ftrace", "r-ftrace", "nested", "disabled", "next-door"} {
				require.NotZero(t, taken[path], path)
			}
		})
	}
}

func rulesAndHitsAgree(t *testing.T, target *Target, taken map[string]int) {
	img, err := target.Open()
	require.NoError(t, err)
	function := img.Lookup(target.Place.Symbol)[0]
	n, step := -1, 2
	if testing.Short() {
		step = 6
	}
	for s := range kimage.NewWalker(img, &img.Profile().Decoder).Function(function) {
		if n++; n%step == 0 {
			target.Place.Offset = uint32(s.Addr.Sub(function.Addr))
			ruleAndHitAgree(t, target, taken)
		}
	}
}

func ruleAndHitAgree(t *testing.T, target *Target, taken map[string]int) {
	r := &run{o: &Options{Others: []int{0}}, stands: map[standKey]*kprobelab.Lab{}}
	defer r.close()
	var refused *probepoint.Refusal
	var err error
	if r.target, err = r.aim(target); errors.Is(err, ErrUnmeasurable) || errors.As(err, &refused) {
		return
	}
	require.NoError(t, err)
	for _, p := range Paths() {
		require.NoError(t, r.add(&p, 0))
	}
	for i, p := range r.paths {
		require.Equal(t, p.parts, r.results[i].Parts)
		taken[p.Name]++
	}
	for _, s := range r.skipped {
		require.NotContains(t, s.Reason, "a hit is made of", "%s at %s", s.Path, target.Place)
		require.NotContains(t, s.Reason, "are counted", "%s at %s", s.Path, target.Place)
	}
}

// The function gets the words as a compiler passes them.
func TestLoopPassesWords(t *testing.T) {
	s, err := guestKernel(nil, false, 0).make()
	require.NoError(t, err)
	defer s.Close()
	var want, got []uint64
	hits := 0
	require.NoError(t, s.Kprobes.RegisterKprobe(&kprobes.Kprobe{
		Addr: s.symbol(placeOptimizable),
		PreHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
			hits++
			got = []uint64{regs.DI, regs.SI, regs.DX, regs.CX, regs.R8, regs.R9}[:min(len(want), 6)]
			for i := 6; i < len(want); i++ {
				b := make([]byte, 8)
				require.NoError(t, s.Machine.ReadMem(x86.Addr(regs.SP).Add(int64(8*(i-5))), b))
				got = append(got, le64(b))
			}
			require.Equal(t, uint64(8), regs.SP%16, "the stack is aligned at the call")
			require.Zero(t, regs.AX)
			return 0
		},
	}))
	for n := range 12 {
		want = nil
		for i := range n {
			want = append(want, 0x1111_0000_ffff_0000+uint64(i))
		}
		require.NoError(t, s.aim(s.symbol(placeOptimizable), want))
		hits, got = 0, nil
		require.NoError(t, s.calls(3))
		require.Equal(t, 3, hits)
		require.Equal(t, fmt.Sprintf("%x", want), fmt.Sprintf("%x", got))
	}
}

func le64(b []byte) (v uint64) {
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}
