package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// answers holds perf's answers to probes, and keeps them in a file for later runs: perf takes most of a run's time.
type answers struct {
	file *os.File // nil where nothing is kept
	of   map[string]string
}

// readAnswers reads the answers of a perf, an image and a kernel's README, named by about. The file has these names in
// its first line, then a line for each probe.
func readAnswers(path string, about ...string) (answers, error) {
	a := answers{of: map[string]string{}}
	if path == "" {
		return a, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return a, err
	}
	a.file = f
	in := json.NewDecoder(f)
	var of []string
	switch err := in.Decode(&of); {
	case errors.Is(err, io.EOF):
		return a, json.NewEncoder(f).Encode(about)
	case err != nil || !slices.Equal(of, about):
		return a, fmt.Errorf("%s has no answers of %q", path, about)
	}
	for {
		var one [2]string
		switch err := in.Decode(&one); {
		case errors.Is(err, io.EOF):
			return a, nil
		case err != nil:
			return a, fmt.Errorf("%s: %w", path, err)
		}
		a.of[one[0]] = one[1]
	}
}

// keep adds an answer.
func (a *answers) keep(probe, said string) error {
	if _, had := a.of[probe]; had || a.file == nil {
		return nil
	}
	a.of[probe] = said
	return json.NewEncoder(a.file).Encode([2]string{probe, said})
}
