package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Since has the failures of an earlier check.
type Since struct {
	// Kernels are the kernels of that check, by release and by the word of --kernel.
	Kernels map[string]bool `json:"kernels"`
	// Faults are the faults of each probe on each kernel.
	Faults map[string][]string `json:"faults"`
}

// ReadSince reads what check --json has written.
func ReadSince(text []byte) (*Since, error) {
	var old Check
	if err := json.Unmarshal(text, &old); err != nil || len(old.Images) == 0 {
		return nil, errors.New("it is no output of check --json")
	}
	s := &Since{map[string]bool{}, map[string][]string{}}
	for i := range old.Images {
		for _, name := range old.Images[i].since() {
			s.Kernels[name] = true
		}
	}
	for i := range old.Probes {
		row := &old.Probes[i]
		if len(row.Cells) != len(old.Images) {
			return nil, fmt.Errorf("probe %d has %d answers of %d kernels: it is no output of check --json", i+1, len(row.Cells), len(old.Images))
		}
		for j := range row.Cells {
			if len(row.Cells[j].Faults) == 0 {
				continue
			}
			for _, name := range old.Images[j].since() {
				key := row.key(name)
				s.Faults[key] = append(s.Faults[key], row.Cells[j].Faults...)
			}
		}
	}
	return s, nil
}

// since are the names by which a kernel is found again: its release, then the word of --kernel, which may mean a newer kernel now.
func (i *CheckImage) since() []string {
	name := i.Release
	if i.Distribution != "" {
		name = i.Distribution + " " + name
	}
	if name == "" {
		name = i.Name
	}
	if i.Asked != "" && i.Asked != name {
		return []string{name, i.Asked}
	}
	return []string{name}
}

func (r *CheckRow) key(kernel string) string { return r.Text + "\t" + r.Program + "\t" + kernel }

// knows reports whether the earlier check found all the faults, on the same release or, if that was not asked then, by the same word.
func (s *Since) knows(row *CheckRow, image *CheckImage, faults []string) bool {
	if s == nil {
		return false
	}
	for _, name := range image.since() {
		if !s.Kernels[name] {
			continue
		}
		old := s.Faults[row.key(name)]
		return !slices.ContainsFunc(faults, func(f string) bool { return !slices.Contains(old, f) })
	}
	return false
}
