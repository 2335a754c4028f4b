package main

import (
	"errors"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/debuginfo"
	"kprobelab/internal/perfprobe"
	"kprobelab/internal/source"
	"kprobelab/kimage"
)

const debuginfoFlagName = "debuginfo"

func debuginfoFlag() cli.Flag {
	return &cli.StringFlag{Name: debuginfoFlagName, Usage: "DWARF for probes in the words of the source is in `FILE`, not in IMAGE and its modules"}
}

// debuginfoOf describes an image by the file of --debuginfo, or by its own and its modules'.
func debuginfoOf(c *cli.Command, img *kimage.Image) *debuginfo.Info {
	if path := c.String(debuginfoFlagName); path != "" {
		return debuginfo.OfFile(img, path)
	}
	return debuginfo.Of(img, c.StringSlice("module")...)
}

// sourceError gives an error of the source's packages its exit code.
func sourceError(err error) error {
	if err == nil {
		return nil
	}
	var syntax *perfprobe.SyntaxError
	var file *debuginfo.FileError
	switch {
	case errors.As(err, &syntax):
		return &failure{exitUsage, err}
	case errors.As(err, &file), errors.Is(err, source.ErrDamaged), errors.Is(err, source.ErrTooMuch), errors.Is(err, source.ErrNone):
		return &failure{exitImage, err}
	}
	return &failure{exitRefused, err}
}
