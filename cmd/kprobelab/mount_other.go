//go:build !linux

package main

import (
	"context"
	"errors"

	"kprobelab/kimage"
)

func (p *mounting) checkPlace() error {
	return fail(exitNoEngine, errors.New("mount needs FUSE, which is for Linux; run --tracefs and events work here"))
}

// serve is never reached: checkPlace refuses every place.
func (p *mounting) serve(context.Context, *term, *kimage.Image) error { return p.checkPlace() }
