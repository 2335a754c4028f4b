//go:build !linux

package main

import (
	"context"
	"errors"

	"kprobelab/kimage"
)

func (p *mounting) serve(context.Context, *term, *kimage.Image) error {
	return &failure{exitNoEngine, errors.New("mount needs FUSE, which is for Linux; run --tracefs and events work here")}
}
