package report

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"kprobelab/kimage"
	"kprobelab/kimage/evidence"
)

// Image describes an image.
type Image struct {
	// Name is the name the image was opened by.
	Name string `json:"name"`
	// Kind is "kernel", "object" or "program".
	Kind string `json:"kind"`
	// Profile is the kernel behaviour that the facts chose.
	Profile string `json:"profile"`
	// Describes is the profile in one line.
	Describes string `json:"describes"`
	// Standing says how far the profile can be trusted (kimage's Standing).
	Standing string `json:"standing"`
	// Facts are the inferred facts, each with its evidence.
	Facts []Fact `json:"facts"`
	// Behaviour is every field of the profile, each with its evidence.
	Behaviour []Behaviour `json:"behaviour"`
	// Tables are the tables that the kernel's checks read, each with its size.
	Tables []Table `json:"tables"`
	// Sections are the image's, allocated ones by address first.
	Sections []Section `json:"sections"`
	// Tasks are the tasks of a memory dump.
	Tasks []Task `json:"tasks,omitempty"`
}

// Task is a task of a running kernel.
type Task struct {
	PID  int    `json:"pid"`
	TGID int    `json:"tgid"`
	Comm string `json:"comm"`
	// State is the letter that ps shows.
	State string `json:"state"`
	// Kernel: it has no memory of a program.
	Kernel bool `json:"kernel"`
}

// Fact is one inferred property of the kernel.
type Fact struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	Evidence string `json:"evidence"`
	// From is the kind of evidence: measured, configuration, symbol, code, release, or asked for;
	// "" if no evidence decides.
	From evidence.Source `json:"from,omitempty"`
	// Against is the evidence that says otherwise and was not followed.
	Against []Against `json:"against,omitempty"`
}

// Against is a kind of evidence that says otherwise.
type Against struct {
	Value    string          `json:"value"`
	Evidence string          `json:"evidence"`
	From     evidence.Source `json:"from"`
}

func factOf(f *evidence.Fact) Fact {
	fact := Fact{Name: f.Name, Value: f.Value, Evidence: f.Evidence, From: f.From}
	for _, w := range f.Against {
		fact.Against = append(fact.Against, Against{w.Value, w.Evidence, w.From})
	}
	return fact
}

// Behaviour is one field of the profile.
type Behaviour struct {
	Fact
}

// Table is one table of the image.
type Table struct {
	Name    string `json:"name"`
	Entries int    `json:"entries"`
}

// Section is one section of the image.
type Section struct {
	Name string `json:"name"`
	Addr Addr   `json:"addr"`
	// Size in bytes.
	Size uint64 `json:"size"`
	// Flags are r, w and x as in "r-x", and "---" for a section that is not
	// in memory.
	Flags string `json:"flags"`
	// Module is the owning module, "" for the image itself.
	Module string `json:"module"`
}

// DescribeImage gathers what is known about the image.
func DescribeImage(img *kimage.Image) *Image {
	r := &Image{
		Name: img.Name(), Kind: kindNames[img.Kind()],
		Facts: []Fact{}, Behaviour: []Behaviour{}, Tables: tables(img), Sections: []Section{},
	}
	if p := img.Profile(); p != nil {
		r.Profile, r.Describes, r.Standing = p.Name, p.Line(), img.Standing()
		for _, f := range img.Behaviour() {
			r.Behaviour = append(r.Behaviour, Behaviour{factOf(&f)})
		}
	}
	for _, f := range img.Facts() {
		r.Facts = append(r.Facts, factOf(&f))
	}
	for _, s := range img.Sections() {
		r.Sections = append(r.Sections, Section{
			Name: s.Name, Addr: known(s.Addr), Size: s.Size, Flags: flags(s), Module: s.Module,
		})
	}
	for _, t := range img.Tasks() {
		r.Tasks = append(r.Tasks, Task{t.PID, t.TGID, t.Comm, t.State, t.Kernel})
	}
	return r
}

// WriteTasks writes the tasks as a table.
func (r *Image) WriteTasks(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprint(t, "pid\ttgid\tstate\tcomm\n")
	for _, k := range r.Tasks {
		comm := k.Comm
		if k.Kernel {
			comm = "[" + comm + "]"
		}
		fmt.Fprintf(t, "%d\t%d\t%s\t%s\n", k.PID, k.TGID, k.State, comm)
	}
	return t.Flush()
}

var kindNames = map[kimage.Kind]string{
	kimage.KindKernel: "kernel", kimage.KindObject: "object", kimage.KindProgram: "program",
}

// siteNames are the kernel's names of the tables of patch sites.
var siteNames = [kimage.NumSiteKinds]string{
	kimage.SiteFtrace:      "ftrace sites",
	kimage.SiteJumpLabel:   "jump labels",
	kimage.SiteStaticCall:  "static calls",
	kimage.SiteSMPLock:     "SMP locks",
	kimage.SiteAlternative: "alternatives",
	kimage.SiteParavirt:    "paravirt sites",
	kimage.SiteReturn:      "return sites",
	kimage.SiteRetpoline:   "retpoline sites",
}

func tables(img *kimage.Image) []Table {
	list := []Table{
		{"symbols", len(img.Symbols())},
		{"exception table", len(img.ExceptionTable())},
		{"kprobes blacklist", len(img.Blacklist())},
		{"bug table", len(img.BugTable())},
	}
	for kind, name := range siteNames {
		list = append(list, Table{name, len(img.Sites(kimage.SiteKind(kind)))})
	}
	if n := img.Unspoken(); n > 0 {
		list = append(list, Table{"patched sites of which the image says nothing", n})
	}
	return list
}

func flags(s *kimage.Section) string {
	if !s.Alloc {
		return "---"
	}
	f := []byte("r--")
	if s.Write {
		f[1] = 'w'
	}
	if s.Exec {
		f[2] = 'x'
	}
	return string(f)
}

// WriteJSON writes one JSON object.
func (r *Image) WriteJSON(w io.Writer) error {
	return writeObject(w, r)
}

func (r *Image) isBehaviour(name string) bool {
	return slices.ContainsFunc(r.Behaviour, func(b Behaviour) bool { return b.Name == name })
}

// writeDisputed writes about which facts the evidence disagrees: a line for each that was not followed.
func (r *Image) writeDisputed(w io.Writer) {
	title := "\ndisputed\n"
	for i := range r.Facts {
		f := &r.Facts[i]
		for _, a := range f.Against {
			fmt.Fprintf(w, "%s  %s\t%s\t%s\tbut %s by %s (%s)\n", title, f.Name, short(f.Value), f.Evidence, short(a.Value), a.From, a.Evidence)
			title = ""
		}
	}
}

// writeBehaviour writes the fields that something confirms, each with its evidence,
// and below them the others.
func (r *Image) writeBehaviour(w io.Writer) {
	var others []Behaviour
	fmt.Fprint(w, "\nbehaviour\n")
	for _, b := range r.Behaviour {
		if b.From == evidence.Dated || b.From == evidence.Asked {
			others = append(others, b)
			continue
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", b.Name, short(b.Value), b.From, b.Evidence)
	}
	if len(others) == 0 {
		return
	}
	from := "those of the release"
	if others[0].From == evidence.Asked {
		from = "as asked for"
	}
	fmt.Fprintf(w, "\nbehaviour that nothing in the image confirms: %d of %d fields, %s (%s)\n", len(others), len(r.Behaviour), from, others[0].Evidence)
	for _, b := range others {
		value := b.Value
		if value == "" {
			value = short(value)
		}
		fmt.Fprintf(w, "  %s\t%s\n", b.Name, value)
	}
}

// short shortens a value to fit a column; the JSON form has all of it.
func short(value string) string {
	switch {
	case value == "":
		return "(none)"
	case len(value) <= 32:
		return value
	}
	return fmt.Sprintf("%s… (%d)", value[:16], len(value))
}

// WriteText writes it for people, in columns.
func (r *Image) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "%s: %s, profile %s (%s): %s\n", r.Name, r.Kind, r.Profile, r.Standing, r.Describes)
	fmt.Fprint(t, "\nfacts\n")
	for _, f := range r.Facts {
		if !r.isBehaviour(f.Name) {
			fmt.Fprintf(t, "  %s\t%s\t%s\n", f.Name, f.Value, f.Evidence)
		}
	}
	r.writeDisputed(t)
	r.writeBehaviour(t)
	fmt.Fprint(t, "\ntables\n")
	for _, e := range r.Tables {
		fmt.Fprintf(t, "  %s\t%d\n", e.Name, e.Entries)
	}
	fmt.Fprint(t, "\nsections\n")
	for _, s := range r.Sections {
		name := s.Name
		if s.Module != "" {
			name += " [" + s.Module + "]"
		}
		fmt.Fprintf(t, "  %s\t%s\t%#x\t%s\n", name, s.Addr, s.Size, s.Flags)
	}
	return t.Flush()
}
