package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"kprobelab/kprobes/hazard"
)

// hazardKey tells hazards apart in totals: one can have another effect at
// another point.
type hazardKey struct {
	id     hazard.ID
	effect hazard.Effect
}

// hazards notes what was found at the row's point.
func (row *ScanRow) hazards(list []hazard.Finding) {
	if len(list) == 0 {
		return
	}
	row.Hazards, row.Hazard = list, hazardIDs(list)
}

// hazardIDs are the names with commas.
func hazardIDs(list []hazard.Finding) string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = string(list[i].ID)
	}
	return strings.Join(names, ",")
}

// writeHazards writes how many points there are of each hazard and effect. A point can
// have several.
func (t *ScanTotals) writeHazards(w io.Writer, width int, line func(int, string)) {
	if len(t.Hazards) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%*s\n", width, "hazards (kprobelab hazards IMAGE lists the points)")
	for _, k := range sorted(t.Hazards, func(a, b hazardKey) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.effect, b.effect))
	}) {
		h, _ := hazard.ByID(k.id)
		line(t.Hazards[k], fmt.Sprintf("%s, %s: %s", k.id, k.effect, h.Sentence))
	}
}

// ExplainHazard is a hazard at the explained address.
type ExplainHazard struct {
	hazard.Finding
	// Sentence is the hazard in general, and Kernels the releases that have it.
	Sentence string `json:"sentence"`
	Kernels  string `json:"kernels"`
}

func explainHazards(found []hazard.Finding) []ExplainHazard {
	list := make([]ExplainHazard, len(found))
	for i, f := range found {
		h, _ := hazard.ByID(f.ID)
		list[i] = ExplainHazard{f, h.Sentence, h.Span().String()}
	}
	return list
}

// hazards writes what goes wrong although the probe is accepted.
func (w *explanationWriter) hazards() {
	if len(w.e.Hazards) == 0 {
		return
	}
	w.title("hazards")
	for i := range w.e.Hazards {
		h := &w.e.Hazards[i]
		fmt.Fprintf(w, "  %s  %s\n", w.red(string(h.ID)), h.Effect)
		fmt.Fprintf(w, "      %s\n", h.Says)
		fmt.Fprintf(w, "      %s\n      [%s]\n", h.Sentence, h.Kernels)
	}
}
