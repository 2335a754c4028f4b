//go:build linux

// Command lossy is a tracer that loses on purpose, in one way, and writes as JSON what it knows by its own counts. It runs in a guest;
// tests compare its counts with the ledger.
//
// It must not know that the kernel is a guest of ours.
//
//	lossy WAY N [MAXACTIVE]
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/perf"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// Counts are the tool's own.
type Counts struct {
	// Calls are the calls that the tool has made, Runs the runs that the program has counted in a map.
	Calls uint64 `json:"calls"`
	Runs  uint64 `json:"runs"`
	// Gave are the records that the program counted as submitted, Read the ones that the tool read.
	Gave uint64 `json:"gave"`
	Read uint64 `json:"read"`
	// Second are the runs of the second program.
	Second uint64 `json:"second"`
	// Lost is the perf buffer's own count.
	Lost uint64 `json:"lost"`
}

const probed = "__x64_sys_getppid"

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "lossy WAY N [MAXACTIVE]")
		os.Exit(2)
	}
	if os.Args[1] == "child" {
		n, _ := strconv.Atoi(os.Args[2])
		for range n {
			unix.Getppid()
		}
		return
	}
	n, _ := strconv.Atoi(os.Args[2])
	way, ok := ways[os.Args[1]]
	if !ok {
		fmt.Fprintln(os.Stderr, "lossy: no such way")
		os.Exit(2)
	}
	c := &Counts{}
	t := &tool{Counts: c}
	err := errors.Join(rlimit.RemoveMemlock(), t.make())
	if err == nil {
		err = way(t, n)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lossy:", err)
		os.Exit(1)
	}
	t.close()
	c.Runs, c.Gave, c.Second = t.count(0), t.count(1)+t.printed, t.count(2)
	_ = json.NewEncoder(os.Stdout).Encode(c)
}

var ways = map[string]func(*tool, int) error{
	"ring": (*tool).ringWay, "filter": (*tool).filterWay, "perf": (*tool).perfWay, "map": (*tool).mapWay, "disabled": (*tool).disabledWay,
	"nested": (*tool).nestedWay, "breakpoint": (*tool).breakpointWay, "active": (*tool).activeWay, "printk": (*tool).printkWay, "pool": (*tool).poolWay, "empty": (*tool).emptyWay, "exits": (*tool).exitsWay,
	"inside": (*tool).insideWay, "fexit": (*tool).fexitWay, "multi": (*tool).multiWay, "many": (*tool).manyWay, "object": (*tool).objectWay,
}

// tool has the maps of the programs.
type tool struct {
	*Counts
	counts, ring, events, full *ebpf.Map
	links                      []link.Link
	printed                    uint64
}

func (t *tool) make() (err error) {
	if t.counts, err = ebpf.NewMap(&ebpf.MapSpec{Name: "counts", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 8}); err != nil {
		return err
	}
	if t.ring, err = ebpf.NewMap(&ebpf.MapSpec{Name: "ring", Type: ebpf.RingBuf, MaxEntries: 4096}); err != nil {
		return err
	}
	if t.events, err = ebpf.NewMap(&ebpf.MapSpec{Name: "events", Type: ebpf.PerfEventArray}); err != nil {
		return err
	}
	t.full, err = ebpf.NewMap(&ebpf.MapSpec{Name: "full", Type: ebpf.Hash, KeySize: 8, ValueSize: 8, MaxEntries: 16})
	return err
}

func (t *tool) close() {
	for _, l := range t.links {
		_ = l.Close()
	}
}

func (t *tool) count(n uint32) (v uint64) {
	_ = t.counts.Lookup(n, &v)
	return v
}

// add counts in the map; r6 is the old value.
func (t *tool) add(n int32, label string) asm.Instructions {
	return asm.Instructions{
		asm.StoreImm(asm.RFP, -4, int64(n), asm.Word).WithSymbol(label),
		asm.LoadMapPtr(asm.R1, t.counts.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R6, asm.R0, 0, asm.DWord),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
	}
}

func end() asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSymbol("out"), asm.Return()}
}

// output puts 8 bytes into the ring buffer, and counts them if that goes.
func (t *tool) output() asm.Instructions {
	list := asm.Instructions{
		asm.StoreMem(asm.RFP, -16, asm.R6, asm.DWord),
		asm.LoadMapPtr(asm.R1, t.ring.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -16),
		asm.Mov.Imm(asm.R3, 8), asm.Mov.Imm(asm.R4, 1), // BPF_RB_NO_WAKEUP
		asm.FnRingbufOutput.Call(),
		asm.JNE.Imm(asm.R0, 0, "out"),
	}
	return append(list, t.add(1, "")...)
}

func join(lists ...asm.Instructions) (all asm.Instructions) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return append(all, end()...)
}

func load(name string, kind ebpf.ProgramType, code asm.Instructions, to string) (*ebpf.Program, error) {
	s := &ebpf.ProgramSpec{Name: name, Type: kind, Instructions: code, License: "GPL"}
	if kind == ebpf.Tracing {
		s.AttachTo, s.AttachType = to, ebpf.AttachTraceFEntry
		if name == "leaves" {
			s.AttachType = ebpf.AttachTraceFExit
		}
	}
	return ebpf.NewProgram(s)
}

func (t *tool) kprobe(name, symbol string, code asm.Instructions, o *link.KprobeOptions) error {
	p, err := load(name, ebpf.Kprobe, code, "")
	if err != nil {
		return err
	}
	l, err := link.Kprobe(symbol, p, o)
	if err == nil {
		t.links = append(t.links, l)
	}
	return err
}

func (t *tool) kretprobe(name, symbol string, code asm.Instructions, o *link.KprobeOptions) error {
	p, err := load(name, ebpf.Kprobe, code, "")
	if err != nil {
		return err
	}
	l, err := link.Kretprobe(symbol, p, o)
	if err == nil {
		t.links = append(t.links, l)
	}
	return err
}

func (t *tool) call(n int) {
	for range n {
		unix.Getppid()
	}
	t.Calls += uint64(n)
}

// readRing reads what the ring buffer has.
func (t *tool) readRing(r *ringbuf.Reader) error {
	for {
		r.SetDeadline(time.Now())
		_, err := r.Read()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		t.Read++
	}
}

// ringWay reads every 1000 calls: more records than the ring buffer holds. At the end it leaves some unread.
func (t *tool) ringWay(n int) error {
	if err := t.kprobe("ring", probed, join(t.add(0, ""), t.output()), nil); err != nil {
		return err
	}
	r, err := ringbuf.NewReader(t.ring)
	if err != nil {
		return err
	}
	for range n / 1000 {
		t.call(1000)
		if err := t.readRing(r); err != nil {
			return err
		}
	}
	t.call(7)
	t.close()
	return r.Close()
}

// filterWay gives a record for each fourth call, reserves and discards one for the next, and does nothing for the others.
func (t *tool) filterWay(n int) error {
	code := join(t.add(0, ""), asm.Instructions{
		asm.Mov.Reg(asm.R7, asm.R6), asm.And.Imm(asm.R7, 3),
		asm.JGT.Imm(asm.R7, 1, "out"),
		asm.LoadMapPtr(asm.R1, t.ring.FD()), asm.Mov.Imm(asm.R2, 24), asm.Mov.Imm(asm.R3, 0),
		asm.FnRingbufReserve.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.StoreMem(asm.R8, 0, asm.R6, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R8), asm.Mov.Imm(asm.R2, 1),
		asm.JEq.Imm(asm.R7, 0, "submit"),
		asm.FnRingbufDiscard.Call(),
		asm.Ja.Label("out"),
		asm.FnRingbufSubmit.Call().WithSymbol("submit"),
	}, t.add(1, ""))
	if err := t.kprobe("filter", probed, code, nil); err != nil {
		return err
	}
	r, err := ringbuf.NewReader(t.ring)
	if err != nil {
		return err
	}
	for range n / 50 {
		t.call(50)
		if err := t.readRing(r); err != nil {
			return err
		}
	}
	return r.Close()
}

// perfWay has a perf buffer of a page for each CPU, and reads every 1000 calls.
func (t *tool) perfWay(n int) error {
	code := join(asm.Instructions{asm.Mov.Reg(asm.R9, asm.R1)}, t.add(0, ""), asm.Instructions{
		asm.StoreMem(asm.RFP, -16, asm.R6, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R9),
		asm.LoadMapPtr(asm.R2, t.events.FD()),
		asm.LoadImm(asm.R3, 0xffffffff, asm.DWord),
		asm.Mov.Reg(asm.R4, asm.RFP), asm.Add.Imm(asm.R4, -16),
		asm.Mov.Imm(asm.R5, 8),
		asm.FnPerfEventOutput.Call(),
		asm.JNE.Imm(asm.R0, 0, "out"),
	}, t.add(1, ""))
	r, err := perf.NewReaderWithOptions(t.events, 4096, perf.ReaderOptions{Watermark: 4000})
	if err != nil {
		return err
	}
	if err := t.kprobe("perf", probed, code, nil); err != nil {
		return err
	}
	for range n / 1000 {
		t.call(1000)
		for {
			r.SetDeadline(time.Now())
			rec, err := r.Read()
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return err
			}
			if rec.LostSamples > 0 {
				t.Lost += rec.LostSamples
			} else {
				t.Read++
			}
		}
	}
	t.close()
	return r.Close()
}

// mapWay keeps each call under a key of its own, in a map of 16.
func (t *tool) mapWay(n int) error {
	code := join(t.add(0, ""), asm.Instructions{
		asm.StoreMem(asm.RFP, -16, asm.R6, asm.DWord),
		asm.LoadMapPtr(asm.R1, t.full.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -16),
		asm.Mov.Reg(asm.R3, asm.R2), asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call(),
		asm.JNE.Imm(asm.R0, 0, "out"),
	}, t.add(1, ""))
	if err := t.kprobe("map", probed, code, nil); err != nil {
		return err
	}
	t.call(n)
	return nil
}

// disabledWay switches all kprobes off for half of the calls.
func (t *tool) disabledWay(n int) error {
	if err := t.kprobe("disabled", probed, join(t.add(0, "")), nil); err != nil {
		return err
	}
	t.call(n / 2)
	const file = "/sys/kernel/debug/kprobes/enabled"
	if err := os.WriteFile(file, []byte("0"), 0); err != nil {
		return err
	}
	t.call(n - n/2)
	return os.WriteFile(file, []byte("1"), 0)
}

// comm calls a helper, which another probe is on.
func comm() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, -32),
		asm.Mov.Imm(asm.R2, 16),
		asm.FnGetCurrentComm.Call(),
	}
}

// nestedWay hits a probe in the handler of another one.
func (t *tool) nestedWay(n int) error {
	if err := t.kprobe("inner", "bpf_get_current_comm", join(t.add(2, "")), nil); err != nil {
		return err
	}
	if err := t.kprobe("outer", probed, join(t.add(0, ""), comm()), nil); err != nil {
		return err
	}
	t.call(n)
	return nil
}

// breakpointWay is nestedWay with a breakpoint in the function.
func (t *tool) breakpointWay(n int) error {
	var err error
	for _, off := range []uint64{5, 9, 12, 16} { // where an instruction begins, by kernel
		if err = t.kprobe("inner", "bpf_get_current_comm", join(t.add(2, "")), &link.KprobeOptions{Offset: off}); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	if err := t.kprobe("outer", probed, join(t.add(0, ""), comm()), nil); err != nil {
		return err
	}
	t.call(n)
	return nil
}

// activeWay has a program that calls the function that it is on.
func (t *tool) activeWay(n int) error {
	p, err := load("again", ebpf.Tracing, join(t.add(2, ""), comm()), "bpf_get_current_comm")
	if err != nil {
		return err
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: p})
	if err != nil {
		return err
	}
	t.links = append(t.links, l)
	if err := t.kprobe("outer", probed, join(t.add(0, ""), comm()), nil); err != nil {
		return err
	}
	t.call(n)
	return nil
}

// printkWay hits a tracepoint in a program.
func (t *tool) printkWay(n int) error {
	p, err := load("point", ebpf.TracePoint, join(t.add(2, "")), "")
	if err != nil {
		return err
	}
	l, err := link.Tracepoint("bpf_trace", "bpf_trace_printk", p, nil)
	if err != nil {
		return err
	}
	t.links = append(t.links, l)
	code := join(t.add(0, ""), asm.Instructions{
		asm.Mov.Imm(asm.R1, 0x6968), // "hi"
		asm.StoreMem(asm.RFP, -8, asm.R1, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, -8),
		asm.Mov.Imm(asm.R2, 3),
		asm.FnTracePrintk.Call(),
	})
	if err := t.kprobe("outer", probed, code, nil); err != nil {
		return err
	}
	t.call(n)
	return nil
}

// poolWay sleeps in N threads at once, with a pool of MAXACTIVE.
func (t *tool) poolWay(n int) error {
	active := 1
	if len(os.Args) > 3 {
		active, _ = strconv.Atoi(os.Args[3])
	}
	if err := t.kretprobe("pool", "hrtimer_nanosleep", join(t.add(0, "")), &link.KprobeOptions{RetprobeMaxActive: active}); err != nil {
		return err
	}
	var all, ready sync.WaitGroup
	ready.Add(n)
	for i := range n {
		all.Add(1)
		go func() {
			defer all.Done()
			runtime.LockOSThread()
			ready.Done()
			ready.Wait()
			ts := unix.NsecToTimespec(int64(100+i) * 1e6)
			_ = unix.Nanosleep(&ts, nil)
		}()
	}
	t.Calls += uint64(n)
	all.Wait()
	return nil
}

// emptyWay has nine threads that sleep in a function again and again, and a pool of four for them. The function is none that Go's own threads call.
func (t *tool) emptyWay(n int) error {
	if err := t.kretprobe("empty", "__x64_sys_ppoll", join(t.add(0, "")), &link.KprobeOptions{RetprobeMaxActive: 4}); err != nil {
		return err
	}
	const threads = 9
	var all sync.WaitGroup
	for range threads {
		all.Go(func() {
			runtime.LockOSThread()
			for range n / threads {
				_, _ = unix.Poll(nil, 1)
			}
		})
	}
	all.Wait()
	t.Calls += uint64(n / threads * threads)
	return nil
}

// exitsWay has children that end in a function whose return is probed: they find no program to execute.
func (t *tool) exitsWay(n int) error {
	child := func() error {
		if _, err := syscall.ForkExec("/nosuch", nil, nil); !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("/nosuch: %w", err)
		}
		return nil
	}
	if err := t.kretprobe("exits", "__x64_sys_exit", join(t.add(0, "")), &link.KprobeOptions{RetprobeMaxActive: 256}); err != nil {
		return err
	}
	for range n {
		if err := child(); err != nil {
			return err
		}
	}
	t.Calls += uint64(n)
	return nil
}

// insideWay takes the probe away while threads are in the function.
func (t *tool) insideWay(n int) error {
	if err := t.kretprobe("inside", "__x64_sys_pause", join(t.add(0, "")), &link.KprobeOptions{RetprobeMaxActive: 64}); err != nil {
		return err
	}
	for range n {
		go func() {
			runtime.LockOSThread()
			_ = unix.Pause()
		}()
	}
	ts := unix.NsecToTimespec(1e8)
	_ = unix.Nanosleep(&ts, nil)
	t.Calls += uint64(n)
	return nil
}

// fexitWay is at the return of a function; half of the calls are by a child.
func (t *tool) fexitWay(n int) error {
	var p *ebpf.Program
	err := errors.New("no function")
	for _, f := range []string{"__do_sys_getppid", probed} { // of two names of a function, BTF has one
		if p, err = load("leaves", ebpf.Tracing, join(t.add(0, ""), t.output()), f); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: p})
	if err != nil {
		return err
	}
	t.links = append(t.links, l)
	t.call(n - n/2)
	if err := exec.Command(os.Args[0], "child", strconv.Itoa(n/2)).Run(); err != nil {
		return err
	}
	t.Calls += uint64(n / 2)
	return nil
}

// multiWay is a multi-probe on two functions.
func (t *tool) multiWay(n int) error {
	s := &ebpf.ProgramSpec{Name: "multi", Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceKprobeMulti, Instructions: join(t.add(0, ""), t.output()), License: "GPL"}
	p, err := ebpf.NewProgram(s)
	if err != nil {
		return err
	}
	l, err := link.KprobeMulti(p, link.KprobeMultiOptions{Symbols: []string{probed, "__x64_sys_getuid"}})
	if err != nil {
		return err
	}
	t.links = append(t.links, l)
	t.call(n)
	for range n {
		unix.Getuid()
	}
	t.Calls += uint64(n)
	return nil
}

// manyWay is a multi-probe on the functions of all system calls.
func (t *tool) manyWay(n int) error {
	text, err := os.ReadFile("/sys/kernel/tracing/available_filter_functions")
	if err != nil {
		return err
	}
	var names []string
	for name := range strings.FieldsSeq(string(text)) {
		if strings.HasPrefix(name, "__x64_sys_") {
			names = append(names, name)
		}
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "many", Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceKprobeMulti, Instructions: join(t.add(0, "")), License: "GPL"})
	if err != nil {
		return err
	}
	l, err := link.KprobeMulti(p, link.KprobeMultiOptions{Symbols: names})
	if err != nil {
		return err
	}
	t.links = append(t.links, l)
	t.call(n)
	return nil
}

// objectWay loads the program covered of an object, and counts the lines that it has printed.
func (t *tool) objectWay(n int) error {
	spec, err := ebpf.LoadCollectionSpec("/covered.bpf.o")
	if err != nil {
		return err
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		return err
	}
	l, err := link.Kprobe(probed, c.Programs["covered"], nil)
	if err != nil {
		return err
	}
	t.call(n)
	_ = l.Close()
	text, err := os.ReadFile("/sys/kernel/tracing/trace")
	t.printed = uint64(strings.Count(string(text), "bpf_trace_printk: "))
	return err
}
