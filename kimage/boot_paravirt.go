package kimage

import (
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// paravirtSite is one struct paravirt_patch_site: a call through a table of
// operations, pv_ops; to 4.19, one of several.
type paravirtSite struct {
	addr x86.Addr
	len  int
}

// paravirtSites reads the owner's table (to 6.6). An entry is 16 bytes, the
// last one may lack its padding.
func (o tableOwner) paravirtSites() []paravirtSite {
	_, data := o.table(paraInstructions)
	var list []paravirtSite
	for off := 0; off+10 <= len(data); off += 16 {
		s := paravirtSite{addr: opened.Abs64(data[off:]), len: int(data[off+9])}
		if !o.img.inExec(s.addr) || o.img.bytes(s.addr, s.len) == nil {
			o.img.ignore(paraInstructions.section, s.addr)
			continue
		}
		list = append(list, s)
	}
	return list
}

func (img *Image) readParavirtSites(o tableOwner) {
	for _, s := range o.paravirtSites() {
		img.tables.addSite(SiteParavirt, s.addr, s.len)
	}
}
