package module

import (
	"math/rand/v2"

	"kprobelab"
	"kprobelab/internal/sample"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/x86"
)

// ArticleKprobe is the article's first module: it prints the callers of schedule(),
// their CPUs, and the number of calls.
func ArticleKprobe(l *kprobelab.Lab, o *Options, say func(Event)) error {
	h, err := newHost(l, say)
	if err != nil {
		return err
	}
	m := &scheduleProbe{host: h, probe: Probe{Kind: "kprobe", Symbol: "schedule"}}
	return h.run(m, schedulers(o, l.Machine.NumCPU()))
}

type scheduleProbe struct {
	*host
	probe Probe
	kp    kprobes.Kprobe
	start uint64
}

func (m *scheduleProbe) init() error {
	m.kp = kprobes.Kprobe{Addr: m.lookup(m.probe.Symbol), PreHandler: m.pre, PostHandler: m.post}
	if err := m.lab.Kprobes.RegisterKprobe(&m.kp); err != nil {
		return m.refused(&m.probe, err, failed("register_kprobe"))
	}
	m.start, m.probe.Addr = m.lab.Machine.Now(), m.kp.Addr
	m.say(Event{Name: "planted", Line: sample.ArticleKprobeRegistered, Probe: &m.probe})
	return nil
}

func (m *scheduleProbe) pre(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
	m.probe.Hits++
	m.hit("pre", sample.ArticleBefore, regs)
	return 0
}

func (m *scheduleProbe) post(_ *kprobes.Kprobe, regs *x86.PtRegs, _ uint64) {
	m.hit("post", sample.ArticleAfter, regs)
}

func (m *scheduleProbe) hit(name string, line func(int, string, uint32) string, regs *x86.PtRegs) {
	at := m.current.place()
	m.say(Event{
		Name: name, Line: line(at.CPU, at.Comm, m.current.preemptCount()),
		Probe: &m.probe, At: at, Regs: regs,
	})
}

func (m *scheduleProbe) exit() {
	m.lab.Kprobes.UnregisterKprobe(&m.kp)
	ms := int64(m.lab.Machine.Now()-m.start) / 1e6
	m.say(Event{Name: "times", Line: sample.ArticleTimes(m.probe.Hits, ms), Probe: &m.probe})
	m.say(Event{Name: "unregistered", Line: sample.ArticleKprobeUnregistered, Probe: &m.probe})
	m.counters(&m.probe, m.kp.Nmissed)
}

// schedulers are the article's machine: swapper is the idle task of the last
// CPU and insmod runs on the first; the others run anywhere. Each gives its
// CPU away, and sleeps for some milliseconds.
func schedulers(o *Options, cpus int) []task {
	const tasks, calls = 4, 3
	rng := rand.New(rand.NewPCG(uint64(o.Seed), 1))
	list := []task{{comm: "swapper", pinned: true, cpu: cpus - 1}, {comm: "insmod", pinned: true}}
	for len(list) < or(o.Tasks, tasks) {
		list = append(list, task{comm: []string{"klogd", "syslogd", "events/0", "bash"}[(len(list)-2)%4]})
	}
	list = list[:or(o.Tasks, tasks)]
	for i := range list {
		for range or(o.Calls, calls) {
			list[i].calls = append(list[i].calls, machine.Invoke("schedule"), machine.Invoke("msleep", 1+rng.IntN(20)))
		}
	}
	return list
}

// ArticleKretprobe is the article's third module: sys_open's negative results,
// by a pool of one instance, so that calls at the same time are missed.
func ArticleKretprobe(l *kprobelab.Lab, o *Options, say func(Event)) error {
	h, err := newHost(l, say)
	if err != nil {
		return err
	}
	m := &openReturn{host: h, probe: Probe{Kind: "kretprobe", Symbol: "sys_open"}}
	m.rp.MaxActive = or(o.MaxActive, 1)
	return h.run(m, openers(o))
}

type openReturn struct {
	*host
	probe Probe
	rp    kprobes.Kretprobe
}

func (m *openReturn) init() error {
	m.rp.KP.Addr, m.rp.Handler = m.lookup(m.probe.Symbol), m.returned
	if err := m.lab.Kprobes.RegisterKretprobe(&m.rp); err != nil {
		return m.refused(&m.probe, err, failed("register_kretprobe"))
	}
	m.probe.Addr = m.rp.KP.Addr
	m.say(Event{Name: "planted", Line: sample.ArticleKretprobeRegistered, Probe: &m.probe})
	return nil
}

func (m *openReturn) returned(_ *kprobes.Instance, regs *x86.PtRegs) int {
	m.probe.Hits++
	e := Event{Name: "return", Probe: &m.probe, At: m.current.place(), Regs: regs, Value: regs.AX}
	if ret := int32(regs.AX); ret < 0 {
		e.Line = sample.ArticleOpenReturns(ret)
	}
	m.say(e)
	return 0
}

func (m *openReturn) exit() {
	m.lab.Kprobes.UnregisterKretprobe(&m.rp)
	m.say(Event{Name: "unregistered", Line: sample.ArticleKretprobeUnregistered, Probe: &m.probe})
	m.say(Event{Name: "missed", Line: sample.ArticleMissed(m.rp.Nmissed), Probe: &m.probe})
	m.counters(&m.probe, m.rp.Nmissed)
}

// missing are files that programs look for as they start, and that often do not
// exist.
var missing = []string{
	"/etc/ld.so.preload", "/usr/lib/locale/en_US.UTF-8/LC_CTYPE", "/usr/lib/gconv/gconv-modules.cache",
	"/usr/share/locale/locale.alias", "/etc/selinux/config", "/root/.bashrc",
}

// openers are the article's `ls -Rla /`, many at a time: each opens a file that
// exists, and files that do not, and waits a while in between. The guest kernel
// has just enough room for the open files of the first of them.
func openers(o *Options) []task {
	const tasks, calls, keepers = 8, 4, 32
	rng := rand.New(rand.NewPCG(uint64(o.Seed), 2))
	var list []task
	for n := range or(o.Tasks, tasks) {
		t := task{comm: "ls"}
		for i := range or(o.Calls, calls) {
			name := missing[i%len(missing)]
			if i == 0 && n < keepers {
				name = "/etc/ld.so.cache"
			}
			t.calls = append(t.calls, machine.Invoke("sleep_ns", rng.IntN(20_000)), machine.Invoke("sys_open", name, 0, 0))
		}
		list = append(list, t)
	}
	return list
}

func failed(register string) func(int) string {
	return func(ret int) string { return sample.ArticleFailed(register, ret) }
}
