package bench

// Compared pairs a path here with the same path of a real kernel. Times are nanoseconds of the same
// host per hit.
type Compared struct {
	Path string `json:"path"`
	// Form distinguishes the probed instructions on the real kernel's path.
	Form string `json:"form,omitempty"`
	// Profile and Handler are the result's here, "" if the path is not measured here.
	Profile string  `json:"profile,omitempty"`
	Handler string  `json:"handler,omitempty"`
	NS      float64 `json:"ns,omitempty"`
	// Kernel is the real one, "" where none ran that path.
	Kernel string `json:"kernel,omitempty"`
	// RealNS is the median of its rounds, RealLow and RealHigh their
	// quartiles; RealError says why there is none.
	RealNS    float64 `json:"real_ns,omitempty"`
	RealLow   float64 `json:"real_low_ns,omitempty"`
	RealHigh  float64 `json:"real_high_ns,omitempty"`
	RealError string  `json:"real_error,omitempty"`
	// Times is RealNS divided by NS; 0 if one of them is missing, or if a hit's parts cost nothing.
	Times float64 `json:"times,omitempty"`
}

// Twice reports whether the path is at least twice as fast here.
func (c *Compared) Twice() bool { return c.Times > 0 && c.RealNS >= 2*c.NS }

// Against compares the results without other probes with real kernels' figures: each path with the
// same release if that was measured, else with all releases. The real kernels' paths that are not
// measured here come last.
func (r *Report) Against(m *RealKernels) []Compared {
	var list []Compared
	known := map[string]bool{}
	for i := range r.Paths {
		p := &r.Paths[i]
		if p.Others != 0 || known[p.Path] {
			continue
		}
		known[p.Path] = true
		list = append(list, p.against(m)...)
	}
	for i := range m.Rows {
		if row := &m.Rows[i]; !known[row.Path] {
			list = append(list, row.compared(Compared{}))
		}
	}
	return list
}

// against is a line for each row that the real kernels have of the path, and one
// line without a kernel where they have none.
func (p *Result) against(m *RealKernels) (list []Compared) {
	here := Compared{Path: p.Path, Profile: p.Profile, Handler: p.Handler, NS: p.NS}
	for _, row := range m.path(p) {
		c := row.compared(here)
		if c.RealNS > 0 && c.NS > 0 && p.Parts != (Parts{}) {
			c.Times = round2(c.RealNS / c.NS)
		}
		list = append(list, c)
	}
	if list == nil {
		list = append(list, here)
	}
	return list
}

func (m *RealKernels) path(p *Result) (rows []*Real) {
	var others []*Real
	for i := range m.Rows {
		row := &m.Rows[i]
		switch {
		case row.Path != p.Path:
		case majorMinor(row.Kernel) == majorMinor(p.Profile):
			rows = append(rows, row)
		default:
			others = append(others, row)
		}
	}
	if rows == nil {
		rows = others
	}
	return rows
}

// compared is c with the real kernel's figures.
func (r *Real) compared(c Compared) Compared {
	c.Path, c.Form, c.Kernel, c.RealError = r.Path, r.Form, r.Config(), r.Error
	if r.Error == "" {
		low, ns, high := quartiles(r.Samples)
		c.RealLow, c.RealNS, c.RealHigh = round2(low), round2(ns), round2(high)
	}
	return c
}
