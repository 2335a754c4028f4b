package main

import (
	"github.com/urfave/cli/v3"

	"kprobelab/internal/debuginfo"
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
