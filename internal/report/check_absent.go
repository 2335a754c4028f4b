package report

import (
	"fmt"
	"strings"

	"kprobelab/internal/systemcall"
	"kprobelab/kprobes/rule"
)

// Absence says more of a name that a kernel has not.
type Absence struct {
	// Renamed is the name that the function has in this kernel, and Since the
	// release that gave it.
	Renamed string `json:"renamed,omitempty"`
	Since   string `json:"since,omitempty"`
	// InlinedIn are the functions that have the function's code. InlinedKnown is false
	// where no DWARF tells.
	InlinedIn    []string `json:"inlined_in,omitempty"`
	InlinedKnown bool     `json:"inlined_known"`
	// Elsewhere are the kernels of the list that have it.
	Elsewhere []string `json:"elsewhere,omitempty"`
}

// rename is a function that got another name, or gave its work to another one.
type rename struct{ old, new, since string }

// renames lists renamed functions that tools probe.
var renames = []rename{
	{"do_fork", "kernel_clone", "5.10"},
	{"_do_fork", "kernel_clone", "5.10"},
	{"generic_make_request", "submit_bio_noacct", "5.9"},
	{"blk_account_io_start", "__blk_account_io_start", "5.16"},
	{"blk_account_io_done", "__blk_account_io_done", "5.16"},
	{"__do_page_cache_readahead", "do_page_cache_ra", "5.10"},
	{"__page_cache_alloc", "filemap_alloc_folio", "5.16"},
	{"__page_cache_alloc", "filemap_alloc_folio_noprof", "6.10"},
	{"account_page_dirtied", "folio_account_dirtied", "5.16"},
	{"mark_page_accessed", "folio_mark_accessed", "5.16"},
	{"add_to_page_cache_lru", "filemap_add_folio", "5.16"},
	{"__alloc_pages_nodemask", "__alloc_pages", "5.13"},
	{"__alloc_pages_nodemask", "__alloc_pages_noprof", "6.10"},
	{"kfree_skb", "kfree_skb_reason", "5.17"},
	{"kfree_skb", "sk_skb_reason_drop", "6.11"},
	{"kfree_skb_reason", "sk_skb_reason_drop", "6.11"},
}

// counted is the suffix of the functions of allocations that are counted.
var counted = struct{ suffix, since string }{"_noprof", "6.10"}

// renamed returns the present name of a function, "" if none is known.
func (k *checker) renamed(name string) (now, since string) {
	for _, r := range renames {
		if _, ok := k.first(r.new); ok && r.old == name {
			return r.new, r.since
		}
	}
	if now, since, ok := systemcall.Now(name); ok {
		if k.has(now) {
			return now, since
		}
	}
	if now := name + counted.suffix; k.has(now) {
		return now, counted.since
	}
	return "", ""
}

// absent says why a name is not there, as far as it can be known.
func (k *checker) absent(c *CheckCell, p *Probe) {
	if c.Found != FoundAbsent || c.Reason == rule.Line || c.Reason == rule.Definition || c.Errno == 0 {
		return
	}
	_, name, _ := p.symbol()
	a := &Absence{}
	a.Renamed, a.Since = k.renamed(name)
	a.InlinedIn, a.InlinedKnown = k.Inlined(name)
	c.Absent = a
	if says := a.says(); says != "" {
		c.Detail += "; " + says
	}
}

// mostCallers is the most functions that are named as containing an inlined function's code.
const mostCallers = 5

// says is the absence in words.
func (a *Absence) says() string {
	switch {
	case a.Renamed != "":
		return fmt.Sprintf("%s does its work (since %s)", a.Renamed, a.Since)
	case len(a.InlinedIn) > 0:
		return "the compiler has put its code into " + firstOf(a.InlinedIn, mostCallers)
	case a.InlinedKnown:
		return "its code is in no other function"
	}
	return "no DWARF says whether it is inlined, and modules that are not loaded were not asked"
}

// brief is the absence in a word or two.
func (a *Absence) brief() string {
	switch {
	case a == nil:
		return ""
	case a.Renamed != "":
		return ", now " + a.Renamed
	case len(a.InlinedIn) > 0:
		return ", inlined in " + firstOf(a.InlinedIn, 2)
	}
	return ""
}

// firstOf are the first names of a list, and how many there are more.
func firstOf(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// Compare looks at the columns together, once all have been asked: it tells kernels of
// one release apart, notes for each absent name which other kernels have it, and finds the cells that fail (Judge).
func (c *Check) Compare() {
	c.tellApart()
	for i := range c.Probes {
		row := &c.Probes[i]
		var have []string
		for j := range row.Cells {
			if cell := &row.Cells[j]; cell.Found != FoundAbsent && !cell.NotAsked {
				have = append(have, c.Images[j].named())
			}
		}
		for j := range row.Cells {
			if a := row.Cells[j].Absent; a != nil && a.Elsewhere == nil && len(have) > 0 {
				a.Elsewhere = have
				row.Cells[j].Detail += "; only " + firstOf(have, 3) + " of the list " + has(len(have))
			}
		}
	}
	c.Judge(&Gate{Allow: c.Allow}, "")
}

func has(n int) string {
	if n == 1 {
		return "has it"
	}
	return "have it"
}
