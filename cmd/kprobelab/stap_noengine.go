//go:build !(cgo && linux && amd64)

package main

import (
	"kprobelab/internal/script/stap"
	"kprobelab/kimage"
)

func (r *stapRun) execute(*term, *kimage.Image, *stap.Script) error { return engineMissing }
