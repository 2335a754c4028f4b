//go:build !(cgo && linux && amd64)

package main

import "kprobelab/kimage"

func (r *sampleRun) execute(*term, *kimage.Image) error { return engineMissing }
