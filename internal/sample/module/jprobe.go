package module

import (
	"kprobelab"
	"kprobelab/internal/sample"
	"kprobelab/kprobes"
	"kprobelab/machine"
)

// jprobe is the common part of the two jprobe modules: a handler in the guest, whose
// lines are its own.
type jprobe struct {
	*host
	probe   Probe
	jp      kprobes.Jprobe
	planted func() string
	failed  func(ret int) string
	gone    func() string
}

func (m *jprobe) init() error {
	if err := m.lab.Kprobes.RegisterJprobe(&m.jp); err != nil {
		return m.refused(&m.probe, err, m.failed)
	}
	m.probe.Addr = m.jp.KP.Addr
	m.lab.Kprobes.Observe(m.step)
	m.say(Event{Name: "planted", Line: m.planted(), Probe: &m.probe})
	return nil
}

// step counts the handler's runs: it is guest code, which counts nothing.
func (m *jprobe) step(e kprobes.Event) {
	if e.Kind == kprobes.EventJprobeReturn && e.Probe == &m.jp.KP {
		m.probe.Hits++
		m.say(Event{Name: "pre", Probe: &m.probe, At: m.current.place(), Regs: e.Regs})
	}
}

func (m *jprobe) exit() {
	m.lab.Kprobes.UnregisterJprobe(&m.jp)
	m.lab.Kprobes.Observe(nil)
	m.say(Event{Name: "unregistered", Line: m.gone(), Probe: &m.probe})
	m.counters(&m.probe, m.jp.KP.Nmissed)
}

// Jprobe is samples/kprobes/jprobe_example.c, of the releases up to 4.14: the
// arguments of the function that makes tasks, as a function of the guest with
// the same signature sees them. In later releases it is refused.
func Jprobe(l *kprobelab.Lab, o *Options, say func(Event)) error {
	h, err := newHost(l, say)
	if err != nil {
		return err
	}
	m := &jprobe{host: h, probe: Probe{Kind: "jprobe", Symbol: h.c.Sample.Function}, failed: h.lines.FailedJprobe}
	m.jp = kprobes.Jprobe{KP: h.kprobe(m.probe.Symbol), EntrySymbol: "j_do_fork"}
	m.planted = func() string { return h.lines.PlantedJprobe(m.probe.Addr, m.jp.Entry) }
	m.gone = func() string { return h.lines.UnregisteredJprobe(m.probe.Addr) }
	return h.run(m, h.session(o))
}

// ArticleJprobe is the article's second module: sys_open's arguments, while
// cat shows a file and rmmod unloads the module.
func ArticleJprobe(l *kprobelab.Lab, o *Options, say func(Event)) error {
	h, err := newHost(l, say)
	if err != nil {
		return err
	}
	m := &jprobe{host: h, probe: Probe{Kind: "jprobe", Symbol: "sys_open"}, failed: failed("register_jprobe")}
	m.jp = kprobes.Jprobe{KP: kprobes.Kprobe{Addr: h.lookup(m.probe.Symbol)}, EntrySymbol: "jsys_open"}
	m.planted = func() string { return sample.ArticleJprobeRegistered }
	m.gone = func() string { return sample.ArticleJprobeUnregistered }
	return h.run(m, readers(o), []task{{comm: "rmmod", calls: opens(rmmodOpens, len(rmmodOpens))}})
}

// open is a call of sys_open. If the flags need no mode, mode is the old content of the register.
type open struct {
	name        string
	flags, mode int32
}

// Files that the article's cat and rmmod open.
var (
	catOpens = []open{
		{"/etc/ld.so.cache", 0, 0}, {"/lib/libc.so.6", 0, -524289},
		{"/usr/lib/locale/locale-archive", 32768, 1}, {"/usr/share/locale/locale.alias", 0, 438},
		{"/usr/lib/locale/en_US.UTF-8/LC_CTYPE", 0, 0}, {"/usr/lib/locale/en_US.utf8/LC_CTYPE", 0, 0},
		{"/usr/lib/gconv/gconv-modules.cache", 0, 0}, {"kprobe-exam.c", 32768, 0},
	}
	rmmodOpens = []open{{"/etc/ld.so.cache", 0, 0}, {"/lib/libc.so.6", 0, -524289}, {"/proc/modules", 0, 438}}
)

func readers(o *Options) []task {
	var list []task
	for range or(o.Tasks, 1) {
		list = append(list, task{comm: "cat", calls: opens(catOpens, or(o.Calls, len(catOpens)))})
	}
	return list
}

func opens(files []open, n int) []machine.Invocation {
	var calls []machine.Invocation
	for i := range n {
		f := files[i%len(files)]
		calls = append(calls, machine.Invoke("sys_open", f.name, f.flags, f.mode))
	}
	return calls
}
