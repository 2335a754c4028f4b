package explore

import (
	"strings"

	"kprobelab/internal/outfile"
)

// WriteFiles writes the schedule to the file text, as a picture to the file svg, and as a trace to the file perfetto, as JSON lines if
// its name ends in .jsonl. A file without a name is not written, and nothing is without a schedule.
func (s *Schedule) WriteFiles(text, svg, perfetto string) error {
	if s == nil {
		return nil
	}
	for _, one := range []struct {
		file string
		of   func() string
	}{{text, s.String}, {svg, s.SVG}} {
		if one.file != "" {
			if err := outfile.Write(one.file, []byte(one.of())); err != nil {
				return err
			}
		}
	}
	if perfetto == "" {
		return nil
	}
	f, err := outfile.Create(perfetto)
	if err != nil {
		return err
	}
	return f.Done(s.WritePerfetto(f, strings.HasSuffix(perfetto, ".jsonl")))
}
