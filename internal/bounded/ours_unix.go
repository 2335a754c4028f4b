//go:build unix

package bounded

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Ours fails with ErrOthers for a file or a folder that another user can change: it is another user's, but root's, or
// everybody may write it. What is kept there is not to be believed, and no program there to be run.
func Ours(name string) error {
	st, err := os.Stat(name)
	if err != nil {
		return err
	}
	own, ok := st.Sys().(*syscall.Stat_t)
	if ok && (own.Uid != 0 && int(own.Uid) != os.Geteuid() || st.Mode().Perm()&0o002 != 0) {
		return &fs.PathError{Op: "use", Path: name, Err: fmt.Errorf("%w (owner %d, mode %s)", ErrOthers, own.Uid, st.Mode())}
	}
	return nil
}
