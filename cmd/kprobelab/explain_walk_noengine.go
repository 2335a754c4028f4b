//go:build !(cgo && linux && amd64)

package main

import "kprobelab/x86"

func (s *subject) walk(*term, x86.Addr) error { return engineMissing }
