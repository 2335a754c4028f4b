//go:build linux && amd64

// Command guest is the first process of a kernel whose hazards are tried. It runs
// workloads, with probes and without, and tells the host what came of them.
//
// It must not judge what happens.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kprobelab/internal/qemu/frame"
	"kprobelab/internal/qemu/wire"
	"kprobelab/internal/tools/conformance/hazards"
)

const tracing = "/sys/kernel/tracing/"

func main() {
	if len(os.Args) == 3 && os.Args[1] == "workload" {
		workload(os.Args[2])
		return
	}
	wire.Init(work)
}

func work() error {
	if err := mount(); err != nil {
		return err
	}
	var alike []string
	if _, err := os.Stat(frame.DefinitionsFile); err == nil {
		alike = learn()
	}
	// A tty, so that lines are read as they come.
	lines := bufio.NewReader(os.Stdin)
	wire.Send(hazards.Ready, []byte(strings.Join(alike, "\n")))
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		words := strings.Fields(line)
		switch {
		case len(words) == 1 && words[0] == hazards.Discover:
			err = discover(alike)
		case len(words) >= 3 && words[0] == hazards.Try:
			err = try(words[1], strings.Join(words[2:], " "))
		case len(words) >= 2 && words[0] == hazards.Load:
			err = load(strings.Join(words[1:], " "))
		}
		if err != nil {
			return err
		}
	}
}

func mount() error {
	for _, m := range []struct{ dir, kind string }{
		{"/proc", "proc"}, {"/sys", "sysfs"}, {"/sys/kernel/debug", "debugfs"}, {"/sys/kernel/tracing", "tracefs"}, {"/dev", "devtmpfs"}, {"/tmp", "tmpfs"},
	} {
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("none", m.dir, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.dir, err)
		}
	}
	// An oops is to be on the console in full.
	if err := os.WriteFile("/proc/sys/kernel/printk", []byte("8"), 0); err != nil {
		return err
	}
	return os.WriteFile(tracing+"tracing_on", []byte("0"), 0)
}

func names() (list []string) {
	for name := range workloads {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// limit is the time that a workload may take.
const limit = 30 * time.Second

// run runs a workload in a process of its own, and returns what it wrote and how it
// ended.
func run(name string) (text, status string) {
	cmd := exec.Command("/proc/self/exe", "workload", name)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return "", err.Error()
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		status = "exit status 0"
		if err != nil {
			status = err.Error()
		}
	case <-time.After(limit):
		status = hazards.NotEnded
	}
	return out.String(), status
}

// usual holds the output and the status of each workload without a probe, by its name.
var usual = map[string][2]string{}

// learn runs every workload three times, and returns the workloads whose second and third
// run have the same output and succeed. The first run makes what later runs find.
func learn() (alike []string) {
	for _, name := range names() {
		run(name)
	}
	for _, name := range names() {
		text, status := run(name)
		again, status2 := run(name)
		if text != again || status != "exit status 0" || status2 != status {
			fmt.Printf("workload %s does not end alike each time: %s, %s\n", name, status, status2)
			continue
		}
		usual[name] = [2]string{text, status}
		alike = append(alike, name)
	}
	return alike
}

// discover counts, for each of the workloads, how often each definition of the list is
// hit, in two runs, so that what happens by chance is not taken for its work. Those that are hit without a workload are counted for "idle".
func discover(alike []string) error {
	list, err := os.ReadFile(frame.DefinitionsFile)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(list)) {
		_ = define(line) // one that is refused is not hit
	}
	if err := os.WriteFile(tracing+"events/"+frame.Group+"/enable", []byte("1"), 0); err != nil {
		return err
	}
	time.Sleep(time.Second)
	var out bytes.Buffer
	count := func(do func()) (map[string]int, error) {
		before, err := hits()
		if err != nil {
			return nil, err
		}
		do()
		after, err := hits()
		for event := range after {
			after[event] -= before[event]
		}
		return after, err
	}
	write := func(name string, hit map[string]int) {
		for event, n := range hit {
			if n > 0 {
				fmt.Fprintf(&out, "%s\t%s\t%d\n", name, event, n)
			}
		}
	}
	idle, err := count(func() { time.Sleep(3 * time.Second) })
	if err != nil {
		return err
	}
	write(hazards.Idle, idle)
	for _, name := range alike {
		first, err := count(func() { run(name) })
		if err != nil {
			return err
		}
		second, err := count(func() { run(name) })
		if err != nil {
			return err
		}
		for event := range first {
			first[event] = min(first[event], second[event])
		}
		write(name, first)
	}
	wire.Send(hazards.Hits, out.Bytes())
	return nil
}

func define(line string) error {
	f, err := os.OpenFile(tracing+"kprobe_events", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(line)
	return err
}

// hits reads how often each event was hit; hits that were missed count too.
func hits() (map[string]int, error) {
	text, err := os.ReadFile(tracing + "kprobe_profile")
	if err != nil {
		return nil, err
	}
	list := map[string]int{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 3 {
			n, _ := strconv.Atoi(words[1])
			missed, _ := strconv.Atoi(words[2])
			list[words[0]] = n + missed
		}
	}
	return list, nil
}

// try runs a workload with the probe, and after it without. The second frame says that
// the machine goes on.
func try(name, definition string) error {
	enable := tracing + "events/" + frame.Group + "/enable"
	return tried(name, usual[name], func() error {
		if err := define(definition + "\n"); err != nil {
			return err
		}
		return os.WriteFile(enable, []byte("1"), 0)
	}, func() (n int) {
		list, _ := hits()
		for _, k := range list {
			n = k
		}
		return n
	}, func() error {
		if err := os.WriteFile(enable, []byte("0"), 0); err != nil {
			return err
		}
		// A group without an event: the next try has one of its own.
		return define("-:" + frame.Group + "/" + hazards.Event + "\n")
	})
}

// module is the name under which the kernel knows the module.
const module = "kprobelab_hazards"

// load does the same with a probe that the module sets, or with what it runs itself.
func load(parameters string) error {
	file, err := os.ReadFile(frame.ModuleFile)
	if err != nil {
		return err
	}
	// A probe that has become a jump has no hazard, and how soon it does is chance.
	if err := os.WriteFile("/proc/sys/debug/kprobes-optimization", []byte("0"), 0); err != nil {
		return err
	}
	const idle = "none"
	text, status := run(idle)
	return tried(idle, [2]string{text, status}, func() error {
		if err := unix.InitModule(file, parameters); err != nil {
			return err
		}
		time.Sleep(time.Second)
		return nil
	}, func() int {
		text, _ := os.ReadFile("/sys/module/" + module + "/parameters/hits")
		n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return n
	}, func() error { return unix.DeleteModule(module, 0) })
}

// tried runs a workload with what on sets and off removes.
func tried(name string, usual [2]string, on func() error, hits func() int, off func() error) error {
	r := hazards.Tried{Before: usual[0], StatusBefore: usual[1]}
	log, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(log)
	if _, err := unix.Seek(log, 0, unix.SEEK_END); err != nil {
		return err
	}
	if err := on(); err != nil {
		r.Refused = err.Error()
		return send(hazards.Ran, &r)
	}
	r.With, r.Status = run(name)
	r.Hits, r.Log = hits(), logged(log)
	if err := send(hazards.Ran, &r); err != nil {
		return err
	}
	if err := off(); err != nil {
		return err
	}
	r.After, r.StatusAfter = run(name)
	r.Log = logged(log)
	return send(hazards.Alive, &r)
}

func send(name string, r *hazards.Tried) error {
	b, err := json.Marshal(r)
	if err == nil {
		wire.Send(name, b)
	}
	return err
}

// logged are the kernel's messages since.
func logged(fd int) string {
	var out strings.Builder
	b := make([]byte, 8192)
	for {
		n, err := unix.Read(fd, b)
		if err != nil || n <= 0 {
			return out.String()
		}
		_, text, _ := strings.Cut(string(b[:n]), ";")
		text, _, _ = strings.Cut(text, "\n")
		out.WriteString(text + "\n")
	}
}
