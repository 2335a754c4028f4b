package kernels

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"kprobelab/internal/printable"
)

// Listed is a kernel that is kept, or can be fetched.
type Listed struct {
	*Kernel
	// Available is whether it can be fetched, false where that was not asked.
	Available bool `json:"available"`
}

// List lists the kernels in the store; with available, it adds the kernels that can be fetched.
func (s *Store) List(ctx context.Context, available bool) ([]Listed, error) {
	kept, err := s.Kept()
	if err != nil {
		return nil, err
	}
	var releases []string
	if available {
		if releases, err = s.Available(ctx); err != nil {
			return nil, err
		}
	}
	var list []Listed
	there := map[string]bool{}
	for _, k := range kept {
		list = append(list, Listed{k, slices.Contains(releases, k.Release)})
		there[k.Release] = true
	}
	for _, release := range releases {
		if !there[release] {
			list = append(list, Listed{&Kernel{Release: release}, true})
		}
	}
	return list, nil
}

// WriteList writes a line for each kernel: its release, its version and the parts that are kept; with objects,
// a JSON object.
func WriteList(w io.Writer, list []Listed, objects bool) error {
	e, t := json.NewEncoder(w), tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, l := range list {
		var err error
		if objects {
			err = e.Encode(l)
		} else {
			_, err = fmt.Fprintf(t, "%s\t%s\t%s\n", printable.Name(l.Release), printable.Name(l.Version), l.Has())
		}
		if err != nil {
			return err
		}
	}
	return t.Flush()
}

// Has names the parts of the kernel that are kept, in words.
func (k *Kernel) Has() string {
	var list []string
	for _, of := range []struct{ path, name string }{
		{k.Image, "image"}, {k.Configuration, "config"}, {k.Dump, "dump"}, {k.Debuginfo, "symbols"}, {k.Modules, "modules"},
	} {
		if of.path != "" {
			list = append(list, of.name)
		}
	}
	if list == nil {
		return "can be fetched"
	}
	return strings.Join(list, ", ")
}
