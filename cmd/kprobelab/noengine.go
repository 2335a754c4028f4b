//go:build !(cgo && linux && amd64)

package main

import (
	"errors"

	"kprobelab/kimage"
)

// engineMissing says what this build lacks and how to get it.
var engineMissing error = &failure{exitNoEngine, errors.New(
	"this build has no engine: run, mount, sample, bench, selfcheck and explain --walk need Unicorn, through cgo, on linux/amd64; " +
		"build with `make build` there (CGO_ENABLED=1); the other commands work here")}

func engine() string { return "no engine in this build" }

func (p *plan) execute(*term, *kimage.Image, work) error { return engineMissing }
