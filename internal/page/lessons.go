package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kprobelab/internal/bounded"
)

// Lessons gives the lessons in a folder, its files *.json, to each, in the order of their names. It plays each first, and
// fails with the first that cannot be played.
func Lessons(dir string, each func(name string, file []byte)) error {
	entries, err := os.ReadDir(dir) // in the order of their names
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	switch {
	case len(names) == 0:
		return fmt.Errorf("%s has no lessons: they are files *.json", dir)
	case len(names) > bounded.PageLessons:
		return fmt.Errorf("%s has %d lessons: the page takes %d", dir, len(names), bounded.PageLessons)
	}
	for _, name := range names {
		b, err := bounded.ReadFile(name, bounded.PageLesson)
		if err != nil {
			return err
		}
		if err := CheckLesson(b); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		each(filepath.Base(name), b)
	}
	return nil
}
