package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"kprobelab/internal/printable"
	"kprobelab/kernels"
)

// State tells whether the machine has a thing.
type State string

// The states of a thing: it is there, it comes when it is needed, it is not there, or it is there and little.
const (
	OK      State = "ok"
	Later   State = "later"
	Short   State = "short"
	Missing State = "missing"
)

// Check is one line of a report.
type Check struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// What says what is there, or why not.
	What string `json:"what"`
	// Next is the next command, or how to get one; "" if nothing is to be done.
	Next string `json:"next,omitempty"`
}

// Ability is a job of the program, and the checks that keep this machine from it.
type Ability struct {
	Name     string   `json:"name"`
	Commands []string `json:"commands"`
	Can      bool     `json:"can"`
	Lacks    []string `json:"lacks,omitempty"`
}

// Report is a judgement of facts.
type Report struct {
	// Works is whether the basic things work: probes of the guest kernel, and of images and programs.
	Works     bool      `json:"works"`
	Checks    []Check   `json:"checks"`
	Abilities []Ability `json:"abilities"`
}

// oldestLibc is the glibc from which on Debian 13's archive of Unicorn links.
const oldestLibc = "2.34"

// The memory and the room below which the usual jobs may fail. A program on a booted kernel of 128 MiB took 160 MiB, QEMU
// takes more than its guest has; one kernel with its dump, and QEMU, are 215 MiB in the folder.
const (
	usualMemory = 512 << 20
	usualRoom   = 512 << 20
)

// Report judges the facts. The order of its lines is fixed.
func (f *Facts) Report() *Report {
	r := &Report{Works: f.EngineErr == nil}
	r.Checks = []Check{
		f.program(), f.engine(), f.machine(), f.memory(), f.image(), f.folder(), f.kept(), f.network(), f.keys(),
		f.qemu(), f.kvm(), f.mount(), f.namespaces(), f.compiler(), f.headers(),
	}
	r.Abilities = []Ability{
		r.ability("probe functions and programs", []string{"run", "explain", "check", "scan", "stap", "bpftrace", "uprobe"}, "engine"),
		r.ability("fetch kernels", []string{"kernels fetch"}, "folder", "network", "keys"),
		r.ability("boot kernels", []string{"boot", "kernels boot"}, "folder", "qemu"),
		r.booted(f),
		r.ability("build modules", []string{"exec --build"}, "folder", "compiler", "headers"),
		r.ability("mount tracing files", []string{"mount"}, "engine", "mount"),
	}
	return r
}

// ability looks whether the checks of some names keep from a job.
func (r *Report) ability(name string, commands []string, needs ...string) Ability {
	a := Ability{Name: name, Commands: commands}
	for _, c := range r.Checks {
		for _, need := range needs {
			if c.Name == need && c.State == Missing {
				a.Lacks = append(a.Lacks, c.Name)
			}
		}
	}
	a.Can = a.Lacks == nil
	return a
}

// booted needs a dump, or what makes one.
func (r *Report) booted(f *Facts) Ability {
	a := r.ability("run programs on booted kernels", []string{"exec", "run DUMP"}, "engine")
	if f.Dumps == 0 {
		a = r.ability(a.Name, a.Commands, "engine", "folder", "qemu")
	}
	return a
}

func (f *Facts) program() Check {
	c := Check{"program", OK, f.System + "/" + f.Arch, ""}
	switch {
	case f.Static:
		c.What += ", static"
	case f.Libc != "":
		c.What += ", with the system's glibc " + f.Libc
	default:
		c.What += ", with shared libraries"
	}
	if f.Libc != "" && older(f.Libc, oldestLibc) {
		c.State, c.What = Short, fmt.Sprintf("%s; the system's glibc %s is older than %s, so make build links no Unicorn here", c.What, f.Libc, oldestLibc)
		c.Next = "take the release's program, or make build-nocgo in a checkout"
	}
	return c
}

// older compares two versions of two numbers.
func older(a, b string) bool {
	var x, y [2]int
	_, _ = fmt.Sscanf(a, "%d.%d", &x[0], &x[1])
	_, _ = fmt.Sscanf(b, "%d.%d", &y[0], &y[1])
	return x[0] < y[0] || x[0] == y[0] && x[1] < y[1]
}

func (f *Facts) engine() Check {
	switch {
	case f.EngineErr != nil:
		return Check{"engine", Missing, fmt.Sprintf("%s does not run the guest kernel: %v", f.Engine, f.EngineErr), nextEngine}
	case !f.Unicorn:
		return Check{"engine", Short, f.Engine + "; booted kernels run slower than on Unicorn, and without x87 and MMX", nextEngine}
	}
	return Check{"engine", OK, f.Engine, ""}
}

func (f *Facts) machine() Check {
	c := Check{"machine", OK, fmt.Sprintf("%d CPUs", f.CPUs), ""}
	if f.CPUs == 1 {
		c.What = "1 CPU"
	}
	if f.Kind != "" {
		c.What += ", " + f.Kind
	}
	return c
}

func (f *Facts) memory() Check {
	switch {
	case f.Memory == 0:
		return Check{"memory", OK, "unknown", ""}
	case f.Memory < usualMemory:
		return Check{"memory", Short, size(f.Memory) + " free; to boot a kernel may take " + size(usualMemory), "give the machine or the container more memory"}
	}
	return Check{"memory", OK, size(f.Memory) + " free", ""}
}

func (f *Facts) image() Check {
	switch {
	case f.Running == nil:
		return Check{"image", OK, "the running kernel's image can be read", ""}
	case f.Kind == "WSL2":
		return Check{"image", Short, "WSL2 has no image of its kernel in /boot", nextImage}
	case f.Kind != "":
		return Check{"image", Short, "a container has no image of its kernel in /boot", nextImage}
	}
	return Check{"image", Short, f.Running.Error(), nextImage}
}

func (f *Facts) folder() Check {
	switch {
	case f.FolderErr != nil:
		return Check{"folder", Missing, f.FolderErr.Error(), nextFolder}
	case f.Free != 0 && f.Free < usualRoom:
		return Check{"folder", Short, fmt.Sprintf("%s has %s free; a kernel and QEMU may take %s", f.Folder, size(f.Free), size(usualRoom)), nextRoom}
	case f.Free != 0:
		return Check{"folder", OK, fmt.Sprintf("%s, %s free", f.Folder, size(f.Free)), ""}
	}
	return Check{"folder", OK, f.Folder, ""}
}

func (f *Facts) kept() Check {
	c := Check{"kernels", OK, fmt.Sprintf("%d kept, %d of them booted", f.Kernels, f.Dumps), ""}
	switch {
	case f.Dumps > 0:
	case f.fetches() && f.qemu().State != Missing:
		c.State, c.Next = Later, "kprobelab kernels boot 6.12"
	default:
		c.State, c.Next = Missing, nextImport
	}
	return c
}

func (f *Facts) network() Check {
	switch {
	case errors.Is(f.MirrorErr, kernels.ErrMirror):
		return Check{"network", Missing, "apt's sources name no mirror of Debian's", nextMirror}
	case f.MirrorErr != nil:
		return Check{"network", Missing, f.MirrorErr.Error(), Next(f.MirrorErr)}
	case f.Offline:
		return Check{"network", OK, f.Mirror + ", not asked (--offline)", ""}
	case f.NetworkErr != nil:
		return Check{"network", Missing, f.NetworkErr.Error(), nextNetwork}
	}
	return Check{"network", OK, f.Mirror + " answers", ""}
}

func (f *Facts) keys() Check {
	switch {
	case f.MirrorErr != nil:
		return Check{"keys", Missing, "no mirror, so no keys of it", Next(f.MirrorErr)}
	case f.KeysErr != nil:
		return Check{"keys", Missing, f.KeysErr.Error(), nextKeys}
	}
	return Check{"keys", OK, "the signatures of the archive can be checked", ""}
}

// fetches reports whether packages can be fetched.
func (f *Facts) fetches() bool {
	return f.FolderErr == nil && f.MirrorErr == nil && f.NetworkErr == nil && f.KeysErr == nil
}

func (f *Facts) qemu() Check {
	switch {
	case f.QEMUErr == nil:
		return Check{"qemu", OK, "QEMU " + f.QEMU, ""}
	case errors.Is(f.QEMUErr, kernels.ErrOffline) && f.fetches() && f.Shell:
		return Check{"qemu", Later, "it is fetched when it is needed (38 MB)", "kprobelab kernels qemu"}
	case !f.Shell:
		return Check{"qemu", Missing, "there is none, and no /bin/sh to start a fetched one with", nextQEMU}
	}
	return Check{"qemu", Missing, "there is none that is new enough, and none can be fetched", nextQEMU}
}

func (f *Facts) kvm() Check {
	if f.KVMErr != nil {
		return Check{"kvm", OK, fmt.Sprintf("/dev/kvm cannot be used (%v); nothing here needs it", f.KVMErr), ""}
	}
	return Check{"kvm", OK, "/dev/kvm is there; nothing here needs it", ""}
}

func (f *Facts) mount() Check {
	if f.MountErr != nil {
		return Check{"mount", Missing, f.MountErr.Error(), nextMount}
	}
	return Check{"mount", OK, "FUSE can be used", ""}
}

func (f *Facts) namespaces() Check {
	if f.NamespaceErr != nil {
		return Check{"userns", OK, fmt.Sprintf("no user namespaces (%v); no command needs them", f.NamespaceErr), ""}
	}
	return Check{"userns", OK, "user namespaces can be made; no command needs them", ""}
}

func (f *Facts) compiler() Check {
	if len(f.Missing) > 0 {
		return Check{"compiler", Missing, strings.Join(f.Missing, " and ") + " cannot be found in PATH", nextCompiler}
	}
	return Check{"compiler", OK, "gcc and make", ""}
}

func (f *Facts) headers() Check {
	switch {
	case f.Headers > 0:
		return Check{"headers", OK, fmt.Sprintf("of %d kernels", f.Headers), ""}
	case f.fetches():
		return Check{"headers", Later, "they are fetched when exec --build needs them", ""}
	}
	return Check{"headers", Missing, "there are none, and none can be fetched", f.nextFetch()}
}

// nextFetch returns the next command for a machine that cannot fetch.
func (f *Facts) nextFetch() string {
	switch {
	case f.MirrorErr != nil:
		return Next(f.MirrorErr)
	case f.KeysErr != nil:
		return nextKeys
	case f.FolderErr != nil:
		return nextFolder
	}
	return nextNetwork
}

// size is a number of bytes in words.
func size(n uint64) string {
	if n < 10<<30 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d GiB", n>>30)
}

// WriteJSON writes the report as one object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes a line for each check, with the next command below it, and a line for each ability.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-8s %-8s  %s\n", c.State, c.Name, printable.Name(c.What))
		if c.Next != "" {
			fmt.Fprintf(&b, "%18s  next: %s\n", "", c.Next)
		}
	}
	b.WriteString("\nthis machine can\n")
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, a := range r.Abilities {
		can := "yes"
		if !a.Can {
			can = "no: " + strings.Join(a.Lacks, ", ")
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", a.Name, strings.Join(a.Commands, ", "), can)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}
