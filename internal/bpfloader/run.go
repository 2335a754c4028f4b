//go:build linux

package main

import (
	"errors"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/perf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"kprobelab/bpf/answer"
	"kprobelab/internal/bounded"
)

// perfBuffer is the size of each processor's perf buffer, 64 pages as libbpf-tools have it.
const perfBuffer = 64 << 12

// running is an object whose programs are attached.
type running struct {
	l    *loader
	c    *ebpf.Collection
	tell func(answer.Line) error

	mutex sync.Mutex
	told  int
	err   error

	readers sync.WaitGroup
	// stops end the readers, after the records that there are.
	stops []func()
}

// run loads programs together, attaches them, tells that they are ready, and reads what they say until SIGINT. Then it tells the maps.
func (l *loader) run(names []string, tell func(answer.Line) error) error {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, unix.SIGINT)
	r := &running{l: l, tell: tell}
	if err := r.load(names); err != nil {
		return tell(answer.Line{Run: &answer.Run{Error: err.Error()}})
	}
	defer r.c.Close()
	if err := r.read(); err != nil {
		return tell(answer.Line{Run: &answer.Run{Error: err.Error()}})
	}
	done := &answer.Run{}
	for _, name := range names {
		at, err := l.attachTo(l.spec.Programs[name], r.c)
		switch {
		case err == nil:
			done.Attached = append(done.Attached, name)
			defer func() { _ = at.Close() }()
		case !errors.Is(err, errNotAsked):
			done.Error = name + ": " + refused(err)
		}
	}
	if err := tell(answer.Line{Ready: true}); err != nil {
		return err
	}
	<-interrupted
	for _, stop := range r.stops {
		stop()
	}
	r.readers.Wait()
	if r.err != nil {
		return r.err
	}
	done.Dropped = max(0, r.told-bounded.BPFRecords)
	for _, name := range slices.Sorted(maps.Keys(r.c.Maps)) {
		if c, ok := l.contents(name, r.c.Maps[name]); ok {
			if err := tell(answer.Line{Contents: c}); err != nil {
				return err
			}
		}
	}
	return tell(answer.Line{Run: done})
}

// load loads programs with one set of maps.
func (r *running) load(names []string) error {
	spec := r.l.spec.Copy()
	spec.Variables = nil
	maps.DeleteFunc(spec.Programs, func(name string, _ *ebpf.ProgramSpec) bool { return !slices.Contains(names, name) })
	for _, p := range spec.Programs {
		if err := errors.Join(r.l.typedVariables(p.Instructions), r.l.target(p)); err != nil {
			return err
		}
	}
	for _, m := range spec.Maps {
		m.Contents = slices.DeleteFunc(m.Contents, func(kv ebpf.MapKV) bool {
			name, ok := kv.Value.(string)
			return ok && m.Type == ebpf.ProgramArray && spec.Programs[name] == nil
		})
	}
	maps.DeleteFunc(spec.Maps, func(_ string, m *ebpf.MapSpec) bool { return m.Type == ebpf.StructOpsMap })
	var err error
	r.c, err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: r.l.kernel, Programs: ebpf.ProgramOptions{KernelTypes: r.l.types}})
	return err
}

// put tells an event.
func (r *running) put(e answer.Event) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.told++; r.told <= bounded.BPFRecords && r.err == nil {
		r.err = r.tell(answer.Line{Event: &e})
	}
}

// read begins to read each buffer, and the lines of bpf_printk.
func (r *running) read() error {
	for _, name := range slices.Sorted(maps.Keys(r.c.Maps)) {
		m, record := r.c.Maps[name], r.l.recordOf(name)
		switch m.Type() {
		case ebpf.RingBuf:
			from, err := ringbuf.NewReader(m)
			if err != nil {
				return err
			}
			r.each(func() { _ = from.Flush() }, func() error {
				got, err := from.Read()
				if err == nil {
					r.put(answer.Event{Map: name, Value: decode(record, got.RawSample)})
				}
				return err
			})
		case ebpf.PerfEventArray:
			from, err := perf.NewReader(m, perfBuffer)
			if err != nil {
				return err
			}
			r.each(func() { _ = from.Flush() }, func() error {
				got, err := from.Read()
				switch {
				case err != nil:
				case got.LostSamples > 0:
					r.put(answer.Event{Map: name, CPU: got.CPU, Lost: got.LostSamples})
				default:
					r.put(answer.Event{Map: name, CPU: got.CPU, Value: decode(record, got.RawSample)})
				}
				return err
			})
		}
	}
	return r.lines()
}

// recordOf returns the type of a buffer's records, from the contract, or from the map's value if the map has one.
func (l *loader) recordOf(name string) btf.Type {
	if c := l.contract.Maps[name]; c.Record != "" {
		return l.record(c.Record)
	}
	if m := l.spec.Maps[name]; m.Type == ebpf.RingBuf {
		return m.Value
	}
	return nil
}

// each reads with one until it fails. stop makes it fail after what there is.
func (r *running) each(stop func(), one func() error) {
	r.stops = append(r.stops, stop)
	r.readers.Go(func() {
		for one() == nil {
		}
	})
}

// lines begins to read trace_pipe.
func (r *running) lines() error {
	fd, err := unix.Open("/sys/kernel/tracing/trace_pipe", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "trace_pipe")
	const moment = 200 * time.Millisecond // the kernel wakes readers of trace_pipe later than it writes
	pending := ""
	r.each(func() { _ = f.SetReadDeadline(time.Now().Add(moment)) }, func() error {
		b := make([]byte, 4096)
		n, err := f.Read(b)
		pending += string(b[:n])
		for {
			line, rest, ok := strings.Cut(pending, "\n")
			if !ok {
				break
			}
			pending = rest
			if _, text, ok := strings.Cut(line, "bpf_trace_printk: "); ok {
				r.put(answer.Event{Printed: text, Line: strings.TrimSpace(line)})
			}
		}
		if len(pending) > bounded.GuestFile {
			return io.ErrShortBuffer
		}
		if n > 0 && err == nil {
			return nil
		}
		_ = f.Close()
		return errors.Join(err, io.EOF)
	})
	return nil
}
