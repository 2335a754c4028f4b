package report

import (
	"fmt"
	"io"
	"strings"

	"kprobelab/internal/tracing/definition"
	"kprobelab/kimage"
	"kprobelab/kprobes/hazard"
	"kprobelab/kprobes/probepoint"
)

// Hazards implements Kernel.
func (k *ImageKernel) Hazards(p *probepoint.Point) []hazard.Finding {
	var row ScanRow
	k.scan.where = *p
	if err := k.scan.place(&row, &k.scan.where, k.scan.SlotAddr, nil); err != nil {
		return nil
	}
	return row.Hazards
}

func (k *checker) hazards(r probepoint.Request) []hazard.Finding {
	p, err := probepoint.Resolve(k, r, k.Profile())
	if err != nil {
		return nil
	}
	return k.Hazards(&p)
}

// harms reports whether a probe attaches and then does harm that is not allowed.
func (c *Check) harms(cell *CheckCell) bool {
	if !cell.Attaches {
		return false
	}
	for i := range cell.Hazards {
		if f := &cell.Hazards[i]; f.Effect.Harms() && !c.Allow[f.ID] {
			return true
		}
	}
	return false
}

// harm lists the hazards and their effects, for a cell of the matrix.
func (c *CheckCell) harm() (text string) {
	for i := range c.Hazards {
		text += fmt.Sprintf(", %s: %s", c.Hazards[i].ID, c.Hazards[i].Effect)
	}
	return text
}

// hazardous returns the words after the number of probes that attach.
func (c *Check) hazardous() string {
	if c.Hazardous == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of these with a hazard", c.Hazardous)
}

// explainHazards writes each hazard once, with its effect, the probes and the kernels; and the kernels about which nothing is known.
func (c *Check) explainHazards(w io.Writer) {
	var order []hazard.ID
	where := map[hazard.ID][]string{}
	for i := range c.Probes {
		on := map[hazard.Finding][]int{}
		var here []hazard.Finding
		for j := range c.Probes[i].Cells {
			cell := &c.Probes[i].Cells[j]
			for _, f := range cell.Hazards {
				if !cell.Attaches {
					continue
				}
				f.Lands = 0 // says has it
				if on[f] == nil {
					here = append(here, f)
				}
				on[f] = append(on[f], j)
			}
		}
		for _, f := range here {
			if where[f.ID] == nil {
				order = append(order, f.ID)
			}
			where[f.ID] = append(where[f.ID], fmt.Sprintf("%s on %s, %s: %s", c.Probes[i].Text, c.spans(on[f]), f.Effect, f.Says))
		}
	}
	for _, id := range order {
		h, _ := hazard.ByID(id)
		fmt.Fprintf(w, "\n%s: %s [%s]\n", id, h.Sentence, h.Span())
		if c.Allow[id] {
			fmt.Fprintln(w, "    allowed here")
		}
		fmt.Fprintf(w, "    %s\n", strings.Join(where[id], "\n    "))
	}
	unknown := 0
	for i := range c.Images {
		if c.Images[i].NoHazards {
			unknown++
		}
	}
	if unknown > 0 {
		fmt.Fprintf(w, "\nhazards were not asked about on %s: packed by an older kprobelab, which kept none\n", Counted(unknown, "kernel"))
	}
}

// ProbeHazard is a hazard of a probe.
type ProbeHazard struct {
	// Probe is the probe's text.
	Probe string
	hazard.Finding
}

// ProbeHazards lists the hazards of probes that the image's kernel accepts. Each probe
// is SYM[+OFF], ADDR[+OFF] or a definition for kprobe_events.
func ProbeHazards(img *kimage.Image, probes []string) (list []ProbeHazard) {
	k := newChecker(OfImage(img))
	for _, text := range probes {
		l := definition.ReadLine(text)
		if l.Empty() {
			continue
		}
		p := textProbe(l)
		r, err := requestOf(p.place)
		if p.bad != "" || err != nil {
			continue
		}
		for _, f := range k.hazards(r) {
			list = append(list, ProbeHazard{p.Text, f})
		}
	}
	return list
}
