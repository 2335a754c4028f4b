package main

import (
	"github.com/urfave/cli/v3"

	"kprobelab/internal/bench"
	"kprobelab/internal/callsyntax"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
)

// targetFlags say what to measure in place of the guest kernel's functions.
func targetFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "symbol", Usage: "measure hits at `SYM[+OFF]` or 0xADDR"},
		&cli.StringFlag{Name: "image", Usage: "of this kernel `IMAGE`: a vmlinux, a vmlinuz, a booted kernel's dump (default: the guest kernel)"},
		&cli.StringFlag{Name: "call", Usage: "made by this `CALL`, as run has it (in the guest kernel the default is SYM(0, 5))"},
	}, imageFlags()...)
}

// benchTarget returns the place that --symbol names. It returns nil without --symbol:
// bench then measures the guest kernel's functions.
func benchTarget(t *term, c *cli.Command) (*bench.Target, error) {
	if !c.IsSet("symbol") {
		for _, f := range targetFlags() {
			if name := f.Names()[0]; name != "engine" && c.IsSet(name) {
				return nil, usagef("--%s: which place is to be measured? give --symbol SYM[+OFF], too", name)
			}
		}
		return nil, nil
	}
	probe, err := callsyntax.ParseKprobe(c.String("symbol"))
	if err != nil {
		return nil, usagef("--symbol: %w", err)
	}
	image, err := kernelOf(c, "image")
	if err != nil {
		return nil, err
	}
	call := c.String("call")
	if call == "" && image != "" && image != "-" {
		return nil, usagef("--image %s: no arguments fit every function: give a call that comes to %s, --call 'name(arg, ...)'", image, probe)
	}
	if call != "" {
		if _, err := callsyntax.ParseCall(call); err != nil {
			return nil, usagef("--call: %w", err)
		}
	}
	return &bench.Target{
		Open:  func(modules ...string) (*kimage.Image, error) { return openImage(t, c, image, modules...) },
		Place: probepoint.Request{Symbol: probe.Symbol, Addr: probe.Addr, Offset: probe.Offset},
		Call:  call,
	}, nil
}
