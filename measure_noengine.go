//go:build !(cgo && linux && amd64)

package kprobelab

import "kprobelab/kimage"

// measure is nil: there is no engine to run an image's own functions on.
var measure func(*kimage.Image) ([]kimage.Answer, error)
