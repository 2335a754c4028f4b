package bpftrace

import (
	"fmt"
	"strings"

	"kprobelab/errno"
)

// Attachment describes how a script's probes were attached, in bpftrace's words.
type Attachment struct {
	// Attached is the number of probes that bpftrace counts; if it is 0, bpftrace attaches nothing.
	Attached int
	// Log holds the text that bpftrace writes to standard error while it attaches them.
	Log string
	// Failed: an error ended the script while it attached its probes.
	Failed bool
}

// Said returns the log, with or without its warnings.
func (a *Attachment) Said(warnings bool) (text string) {
	for line := range strings.Lines(a.Log) {
		if warnings || !strings.HasPrefix(line, "WARNING: ") {
			text += line
		}
	}
	return text
}

// attachment finds out which probes the kernel accepts, and takes the others away.
func (c *checker) attachment() (a Attachment) {
	list := c.programs()
	if len(c.problems.list) > 0 {
		return a
	}
	for name := range c.seen {
		if name == "BEGIN" || name == "END" {
			a.Attached++
		}
	}
	if a.Attached += len(list); a.Attached == 0 {
		return a
	}
	if most := c.setting("max_probes", maxProbes); a.Attached > most {
		c.plain("Can't attach to %d probes because it exceeds the current limit of %d probes.\nYou can increase the limit through the BPFTRACE_MAX_PROBES environment variable, but BE CAREFUL since a high number of probes attached can cause your system to crash.", a.Attached, most)
		return a
	}
	var log strings.Builder
	a.Failed = !c.load(&log, list) || !c.attachAll(&log, list)
	a.Log = log.String()
	return a
}

// setting is a number of the script's configuration.
func (c *checker) setting(name string, otherwise int) int {
	if v, ok := c.config[name]; ok {
		n := 0
		if _, err := fmt.Sscan(v, &n); err == nil {
			return n
		}
	}
	return otherwise
}

// mayFail says that a program that cannot be attached is left out: it is one of several of
// its block, unless the script says that this is an error (missing_probes).
func (c *checker) mayFail(p *bpfProgram) bool { return p.name != p.block }

// load loads the programs, as one object.
func (c *checker) load(log *strings.Builder, list []*bpfProgram) bool {
	if c.k == nil || c.k.Ways == nil {
		return true
	}
	for _, p := range list {
		if p.pt.provider != "fentry" && p.pt.provider != "fexit" {
			continue
		}
		module, function := p.place()
		if _, ok := c.k.Ways.Typed(function, module); ok {
			continue
		}
		target := function
		if module != "" {
			target = module + ":" + function
		}
		if !c.mayFail(p) || c.config["missing_probes"] == "error" {
			fmt.Fprintf(log, "ERROR: No BTF found for %s\n", target)
			return false
		}
		if c.config["missing_probes"] != "ignore" {
			fmt.Fprintf(log, "WARNING: No BTF found for %s, skipping.\n", target)
		}
		p.drop()
		p.left = true
	}
	names := map[string]bool{}
	for _, p := range list {
		if names[p.function] {
			log.WriteString("ERROR: Unknown BPF object load failure. Try using the \"-d libbpf\" option to see the full loading log.\n" + notLoaded)
			return false
		}
		names[p.function] = true
	}
	for _, p := range list {
		if ret := p.pt.provider == "fexit"; (ret || p.pt.provider == "fentry") && !p.left {
			_, function := p.place()
			if verified, err := c.k.Ways.Trampoline(function, ret); verified && err != nil {
				fmt.Fprintf(log, "ERROR: Error loading BPF program for %s. Use -v for full kernel error log.\n%s", p.function, notLoaded)
				return false
			}
		}
	}
	return true
}

const notLoaded = "ERROR: Loading BPF object(s) failed.\n"

// attachAll attaches the programs in bpftrace's order: first those of kretprobe, fexit, tracepoint and
// other providers that run in the order of their attachment, from first to last; then those of kprobe,
// uprobe, uretprobe and fentry, from last to first.
func (c *checker) attachAll(log *strings.Builder, list []*bpfProgram) bool {
	later := func(p *bpfProgram) bool {
		switch p.pt.provider {
		case "kprobe", "uprobe", "uretprobe", "fentry":
			return true
		}
		return false
	}
	for _, p := range list {
		if !later(p) && !c.attach(log, p) {
			return false
		}
	}
	for i := len(list) - 1; i >= 0; i-- {
		if later(list[i]) && !c.attach(log, list[i]) {
			return false
		}
	}
	return true
}

// attach attaches one program. It returns false if the script ends.
func (c *checker) attach(log *strings.Builder, p *bpfProgram) bool {
	if c.k == nil {
		return true
	}
	ways := c.k.Ways != nil
	switch p.pt.provider {
	case "kprobe", "kretprobe":
		return !ways || c.attachKprobe(log, p)
	case "fentry", "fexit":
		_, function := p.place()
		if p.left || !ways {
			return true
		}
		if _, err := c.k.Ways.Trampoline(function, p.pt.provider == "fexit"); err != nil {
			fmt.Fprintf(log, "ERROR: Error attaching probe: %s\n", p.name)
			return false
		}
	case "uprobe", "uretprobe":
		return c.attachUprobe(log, p)
	case "rawtracepoint":
		if c.k.Tracepoints != nil && len(p.probes) == 0 {
			fmt.Fprintf(log, "ERROR: Probe does not exist: %s\n", p.name)
			return false
		}
	case "tracepoint":
		if c.k.Events == nil || len(p.probes) > 0 {
			return true
		}
		if file := fmt.Sprintf("/sys/kernel/debug/tracing/events/%s/%s/id", p.pt.target, p.pt.name); c.formats()[p.pt.target+":"+p.pt.name] {
			fmt.Fprintf(log, "perf_event_open(%s): Invalid argument\n", file)
		} else {
			fmt.Fprintf(log, "open(%s): No such file or directory\n", file)
		}
		if !c.mayFail(p) {
			fmt.Fprintf(log, "ERROR: Error attaching probe: %s\n", p.name)
			return false
		}
	}
	return true
}

// attachUprobe attaches a program to a place in a file.
func (c *checker) attachUprobe(log *strings.Builder, p *bpfProgram) bool {
	switch pt := p.pt; {
	case pt.unresolved != "" && c.mayFail(p) && c.config["missing_probes"] != "error":
		if c.config["missing_probes"] != "ignore" {
			fmt.Fprintf(log, "WARNING: %s, skipping probe.\n", pt.unresolved)
		}
	case pt.unresolved != "":
		fmt.Fprintf(log, "ERROR: %s, cannot attach probe.\n", pt.unresolved)
		return false
	case pt.refused != "":
		fmt.Fprintf(log, "ERROR: %s\n", pt.refused)
		return false
	}
	return true
}

// attachKprobe attaches a program to a function, or to many by one link.
func (c *checker) attachKprobe(log *strings.Builder, p *bpfProgram) bool {
	if p.functions != nil {
		if c.k.Ways.Link(p.functions) != nil {
			fmt.Fprintf(log, "ERROR: Error attaching probe: %s\n", p.name)
			return false
		}
		return true
	}
	module, place := p.place()
	traced := place
	if module != "" && module != vmlinux {
		if !c.k.Ways.Loaded(module) {
			message := fmt.Sprintf("specified module %s in probe %s is not loaded.", module, p.name)
			if !c.mayFail(p) {
				fmt.Fprintf(log, "ERROR: Error attaching probe: %s: %s\n", p.name, message)
				return false
			}
			fmt.Fprintf(log, "WARNING: %s\n", message)
		}
		place = module + ":" + place
		traced = place
	}
	if _, ok := c.traceable()[traced]; !ok && c.mayFail(p) && c.config["missing_probes"] == "ignore" {
		p.drop()
		return true
	}
	if p.pt.offset != 0 {
		place = fmt.Sprintf("%s+%d", place, p.pt.offset)
	}
	err := c.k.Ways.Kprobe(place, p.pt.provider == "kretprobe")
	if err == nil {
		return true
	}
	no := errno.Of(err)
	if no == errno.ENOENT {
		log.WriteString("cannot attach kprobe, probe entry may not exist\n")
	} else {
		fmt.Fprintf(log, "cannot attach kprobe, %s\n", no.Text())
	}
	if setting, set := c.config["missing_probes"]; c.mayFail(p) && (!set || setting == "warn") {
		fmt.Fprintf(log, "WARNING: could not attach probe %s, skipping.\n", p.name)
		p.drop()
		return true
	}
	if no == errno.EILSEQ {
		log.WriteString("ERROR: Possible attachment attempt in the middle of an instruction, try a different offset.\n")
	}
	fmt.Fprintf(log, "ERROR: Error attaching probe: %s\n", p.name)
	return false
}
