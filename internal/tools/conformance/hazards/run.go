package hazards

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"kprobelab"
	"kprobelab/internal/qemu"
	"kprobelab/internal/qemu/frame"
	"kprobelab/internal/report"
	"kprobelab/kimage"
)

// Options say what to try on which kernel.
type Options struct {
	QEMU, Kernel, CPU, Dir string
	Init                   []byte
	// Module is the module of the folder module, built for the kernel; nil leaves out
	// what needs it.
	Module []byte
	Points int
	Seed   uint64
	Limit  time.Duration
}

// ErrNotRun: the machine did not come as far as to be tried.
var ErrNotRun = errors.New("the guest did not run")

// Run boots the kernel once, saves the machine, and tries the drawn points on copies of
// it.
func (o *Options) Run(say func(string)) (*Report, error) {
	img, err := kprobelab.OpenImage(o.Kernel, &kimage.Options{CPU: o.CPU})
	if err != nil {
		return nil, err
	}
	say("listing the hazards of " + filepath.Base(o.Kernel))
	list, err := report.HazardPoints(img, nil)
	if err != nil {
		return nil, err
	}
	d := newDraw(img, list, rand.New(rand.NewPCG(o.Seed, 0)))
	m := &qemu.Machine{
		QEMU: o.QEMU, Kernel: o.Kernel, CPU: o.CPU, CPUs: 1, Limit: o.Limit, Init: o.Init, SurvivesOops: true, Megabytes: 512, Debugged: true,
		Files: map[string][]byte{frame.DefinitionsFile: []byte(d.definitions())},
	}
	say(fmt.Sprintf("%d points can be asked for by kprobe_events", len(d.candidates)))
	if m.From, err = o.booted(m, say); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRun, err)
	}
	var hits []byte
	say("looking which of them the workloads come to")
	err = m.Boot(func(r *qemu.Running) (err error) {
		if err = r.Tell(Discover); err == nil {
			hits, err = wait(r, Hits)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRun, err)
	}
	reached := d.reached(hits)
	points := append(d.points(o.Points), d.faults...)
	out := &Report{Listed: len(list), Candidates: len(d.candidates), Reached: reached, CPU: o.CPU, Seed: o.Seed}
	say(fmt.Sprintf("%d of them are reached; %d points and neighbours are drawn", reached, len(points)))
	out.Results = o.try(m, points, counted[*Result](say, len(points)))
	if o.Module == nil {
		return out, nil
	}
	if m, err = o.withModule(say); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRun, err)
	}
	if points, err = o.others(m, img, list); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRun, err)
	}
	say(fmt.Sprintf("%d points by the module", len(points)))
	out.Others = o.try(m, points, counted[*Result](say, len(points)))
	out.Reproduced = o.reproduce(m, img.Profile(), counted[*Reproduction](say, len(cases)))
	return out, nil
}

// counted says what came of each of n, with how many there are by now.
func counted[T fmt.Stringer](say func(string), n int) func(T) {
	var one sync.Mutex
	i := 0
	return func(r T) {
		one.Lock()
		defer one.Unlock()
		i++
		say(fmt.Sprintf("%3d/%d  %s", i, n, r.String()))
	}
}

// booted is a file with the machine as it is when init is ready. It is kept in the
// folder: a run that was stopped needs no other boot.
func (o *Options) booted(m *qemu.Machine, say func(string)) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, m.CPU, m.CPUs, m.Megabytes)
	h.Write(m.Init)
	for _, name := range []string{frame.DefinitionsFile, frame.ModuleFile} {
		h.Write(m.Files[name])
	}
	state := filepath.Join(o.Dir, fmt.Sprintf("%s-%x", filepath.Base(o.Kernel), h.Sum(nil)[:8]))
	if _, err := os.Stat(state); err == nil {
		return state, nil
	}
	say("booting")
	if err := m.Boot(func(r *qemu.Running) error { return save(r, state+".part") }); err != nil {
		return "", err
	}
	return state, os.Rename(state+".part", state)
}

// save waits until init is ready, and saves the machine.
func save(r *qemu.Running, state string) error {
	if _, err := wait(r, Ready); err != nil {
		return err
	}
	time.Sleep(time.Second) // init reads its console now
	return r.Save(state)
}

// wait reads frames to the one with that name.
func wait(r *qemu.Running, want string) ([]byte, error) {
	for {
		name, data, err := r.Frame()
		switch {
		case err != nil:
			return nil, err
		case name == want:
			return data, nil
		case name == frame.Failed:
			return nil, errors.New("init: " + string(data))
		}
	}
}
