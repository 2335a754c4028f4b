package report

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"kprobelab/kimage"
)

// Image is what an image tells about itself.
type Image struct {
	// Name is the name the image was opened by.
	Name string `json:"name"`
	// Kind is "kernel", "object" or "program".
	Kind string `json:"kind"`
	// Profile is the kernel behaviour that the facts chose.
	Profile string `json:"profile"`
	// Describes is the profile in one line.
	Describes string `json:"describes"`
	// Facts are what was inferred, each with its evidence.
	Facts []Fact `json:"facts"`
	// Tables are what the kernel's checks consult, each with its size.
	Tables []Table `json:"tables"`
	// Sections are the image's, allocated ones by address first.
	Sections []Section `json:"sections"`
}

// Fact is one inferred property of the kernel.
type Fact struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	Evidence string `json:"evidence"`
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
		Facts: []Fact{}, Tables: tables(img), Sections: []Section{},
	}
	if p := img.Profile(); p != nil {
		r.Profile, r.Describes = p.Name, p.Describes
	}
	for _, f := range img.Facts() {
		r.Facts = append(r.Facts, Fact(f))
	}
	for _, s := range img.Sections() {
		r.Sections = append(r.Sections, Section{
			Name: s.Name, Addr: known(s.Addr), Size: s.Size, Flags: flags(s), Module: s.Module,
		})
	}
	return r
}

var kindNames = map[kimage.Kind]string{
	kimage.KindKernel: "kernel", kimage.KindObject: "object", kimage.KindProgram: "program",
}

// siteNames are the kernel's names of the tables that patch sites come from.
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
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteText writes it for people, in columns.
func (r *Image) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "%s: %s, profile %s (%s)\n", r.Name, r.Kind, r.Profile, r.Describes)
	fmt.Fprint(t, "\nfacts\n")
	for _, f := range r.Facts {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", f.Name, f.Value, f.Evidence)
	}
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
