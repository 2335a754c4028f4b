//go:build !(cgo && linux && amd64)

package main

import (
	"context"

	"kprobelab/kimage"
)

func (p *mounting) serve(context.Context, *term, *kimage.Image) error { return engineMissing }
