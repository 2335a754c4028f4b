//go:build !(unicorn && cgo && linux && amd64)

package ask

import "errors"

// Run fails: the verb needs Unicorn.
func Run([]string) error {
	return errors.New("ask needs the emulation engine (cgo, linux/amd64)")
}
