//go:build !(unicorn && cgo && linux && amd64)

package levels

import "errors"

// Run fails: the verb needs Unicorn.
func Run([]string) error {
	return errors.New("levels needs the emulation engine (cgo, linux/amd64)")
}
