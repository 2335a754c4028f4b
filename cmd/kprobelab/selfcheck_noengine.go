//go:build !(cgo && linux && amd64)

package main

import (
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/x86"
)

func runSelfcheck(*term, *cli.Command, time.Duration) error { return engineMissing }

func ownDecider(*kimage.Image) (func(x86.Addr, bool) report.Own, func(), func() []string, error) {
	return nil, nil, nil, engineMissing
}
