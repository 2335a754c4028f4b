package main

import (
	_ "embed"
	"fmt"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/cmdline"
)

// The options of stap and bpftrace that these commands take, so that a command line of the tool's works here.
//
//go:embed tools/stap.txt
var stapOptions string

//go:embed tools/bpftrace.txt
var bpftraceOptions string

var stapTool, bpftraceTool = cmdline.ReadTool("stap", stapOptions), cmdline.ReadTool("bpftrace", bpftraceOptions)

// asTool answers -V, and refuses options of a tool that cannot be had.
func (t *term) asTool(c *cli.Command, tool *cmdline.Tool) (done bool, err error) {
	if c.Bool("version") {
		fmt.Fprintf(t.Out, "%s, as kprobelab has it\n", tool.Version)
		return true, nil
	}
	return false, tool.Refuses(c)
}
