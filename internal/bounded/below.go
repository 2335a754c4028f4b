package bounded

import (
	"fmt"
	"io/fs"
	"os"
)

// ReadBelow reads a regular file of a folder. The name is relative; neither it nor a link leads out of the folder.
func ReadBelow(dir, name string, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	st, err := root.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: it is no plain file", fs.ErrInvalid)}
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, limit)
}
