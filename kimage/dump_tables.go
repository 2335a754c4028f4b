package kimage

import (
	"bytes"

	"kprobelab/internal/bounded"
	"kprobelab/kimage/internal/opened"
	"kprobelab/kimage/internal/processor"
	"kprobelab/kimage/internal/structures"
	"kprobelab/x86"
)

// Tables that boot frees are missing in a dump: the table of ftrace sites, the
// blacklist, the alternatives. The kernel keeps lists of its own of the first two.

// liveTables reads them.
func (d *dump) liveTables() error {
	for _, t := range []struct {
		name, symbol string
		read         func(head x86.Addr) error
	}{
		{"ftrace sites", "ftrace_pages_start", d.ftraceSites},
		{"kprobes blacklist", "kprobe_blacklist", d.blacklist},
	} {
		head, ok := d.img.symbolAddr(t.symbol)
		if !ok {
			continue
		}
		if err := t.read(head); err != nil {
			d.fact(t.name, "not known", err.Error())
		}
	}
	d.img.tables.sort()
	return nil
}

// ftraceSites reads the pages of records (kernel/trace/ftrace.c, struct ftrace_page),
// the modules' among them.
func (d *dump) ftraceSites(head x86.Addr) error {
	at, err := d.Places("ftrace_page.next", "ftrace_page.records", "ftrace_page.index", "dyn_ftrace.ip")
	if err != nil {
		return err
	}
	size := d.Size("dyn_ftrace")
	page := d.Word(head)
	for left := bounded.DumpList; left > 0; { // a page counts as a record, too
		if page == 0 {
			return nil
		}
		n := min(int(d.Half(page.Add(int64(at["ftrace_page.index"])))), bounded.DumpRecords, left)
		left -= n + 1
		records := d.Read(d.Word(page.Add(int64(at["ftrace_page.records"]))), n*size)
		for ; len(records) >= size; records = records[size:] {
			site := opened.Abs64(records[at["dyn_ftrace.ip"]:])
			if d.img.inExec(site) {
				d.img.tables.addSite(SiteFtrace, site, 5)
			} else if site != 0 {
				d.img.ignore("ftrace_pages", site)
			}
		}
		page = d.Word(page.Add(int64(at["ftrace_page.next"])))
	}
	return nil
}

// blacklist reads kprobe_blacklist (kernel/kprobes.c), which has the modules' elements,
// too. It replaces the list that was gathered from the areas.
func (d *dump) blacklist(head x86.Addr) error {
	at, err := d.Places("kprobe_blacklist_entry.list", "kprobe_blacklist_entry.start_addr", "kprobe_blacklist_entry.end_addr")
	if err != nil {
		return err
	}
	img := d.img
	var list []BlacklistEntry
	err = d.List(head, at["kprobe_blacklist_entry.list"], func(e x86.Addr) bool {
		r := x86.Range{
			Start: d.Word(e.Add(int64(at["kprobe_blacklist_entry.start_addr"]))),
			End:   d.Word(e.Add(int64(at["kprobe_blacklist_entry.end_addr"]))),
		}
		s, ok := img.SymbolAt(r.Start)
		if !ok || !img.InText(r.Start) {
			img.ignore("kprobe_blacklist", r.Start)
			return true
		}
		list = append(list, BlacklistEntry{Range: r, Symbol: s.Name, Module: s.Module, By: img.listedBy(r.Start)})
		return true
	})
	if err != nil {
		return err
	}
	// A function that is listed twice was named first, and lies in a marked area.
	last := map[x86.Addr]int{}
	for i, e := range list {
		last[e.Start] = i
	}
	for i := range list {
		if last[list[i].Start] != i {
			list[i].By = ByName
		}
	}
	img.tables.blacklist.list = list
	img.tables.blacklist.index()
	return nil
}

// listedBy returns the mark by which code at an address is on the list: marked
// areas are on it whole, and all code outside them was named.
func (img *Image) listedBy(at x86.Addr) BlacklistedBy {
	for i := range img.tables.blacklist.list {
		if e := &img.tables.blacklist.list[i]; e.By != ByName && e.Start == at {
			return e.By
		}
	}
	return ByName
}

// findPerCPU takes the area of the first CPU in place of the template, which boot has
// freed. As in the template, the running task is init_task: others are not in the
// kernel's own mapping.
func (d *dump) findPerCPU() error {
	start, ok1 := d.img.symbolAddr("__per_cpu_start")
	end, ok2 := d.img.symbolAddr("__per_cpu_end")
	offsets, ok3 := d.img.symbolAddr("__per_cpu_offset")
	if !ok1 || !ok2 || !ok3 || start >= end || end.Sub(start) > bounded.DumpPerCPU {
		return nil
	}
	if data := bytes.Clone(d.Read(start+d.Word(offsets), int(end.Sub(start)))); data != nil {
		for _, name := range structures.CurrentTask {
			at, ok := d.img.symbolAddr(name)
			task, known := d.img.symbolAddr("init_task")
			if off := at.Sub(start); ok && known && off >= 0 && off+8 <= int64(len(data)) {
				le.PutUint64(data[off:], uint64(task))
			}
		}
		d.img.percpu = &Section{Name: ".data..percpu", Addr: start, Data: data, Size: uint64(len(data)), Align: pageSize, Alloc: true, Write: true}
		d.img.other = append(d.img.other, d.img.percpu)
	}
	return nil
}

// findCPU makes the processor of the kernel's record of the CPU on which it booted
// (struct cpuinfo_x86).
func (d *dump) findCPU() error {
	at, ok := d.img.symbolAddr("boot_cpu_data")
	if !ok {
		return nil
	}
	p, err := d.Places("cpuinfo_x86.x86", "cpuinfo_x86.x86_model", "cpuinfo_x86.x86_vendor_id", "cpuinfo_x86.x86_model_id", "cpuinfo_x86.x86_capability")
	if err != nil {
		return nil
	}
	names := d.img.featureNames()
	has := func(f feature) bool {
		word := d.Half(at.Add(int64(p["cpuinfo_x86.x86_capability"]) + int64(f/32*4)))
		return word>>(f%32)&1 != 0
	}
	m := &processor.Model{
		Name: d.Text(at.Add(int64(p["cpuinfo_x86.x86_model_id"])), 64), Vendor: d.Text(at.Add(int64(p["cpuinfo_x86.x86_vendor_id"])), 16),
		Flags: map[string]bool{}, Bugs: map[string]bool{}, Updated: true,
	}
	if b := d.Read(at, 1+max(p["cpuinfo_x86.x86"], p["cpuinfo_x86.x86_model"])); b != nil {
		m.Family, m.Number = int(b[p["cpuinfo_x86.x86"]]), int(b[p["cpuinfo_x86.x86_model"]])
	}
	for name, f := range names.flags {
		if has(f) {
			m.Flags[name] = true
		}
	}
	for name, f := range names.bugs {
		if has(f) {
			m.Bugs[name] = true
		}
	}
	d.img.cpu = m
	d.fact("CPU", m.Name, "boot_cpu_data")
	return nil
}
