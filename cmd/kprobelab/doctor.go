package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v3"

	"kprobelab/doctor"
)

func doctorCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "doctor",
		Usage:       "tell what this machine can do, and what is missing for the rest",
		ArgsUsage:   " ",
		Description: described("doctor"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "one JSON object"},
			&cli.BoolFlag{Name: "offline", Usage: "ask nothing of the network"},
		},
		Action: upTo(0, func(ctx context.Context, c *cli.Command) error {
			r := doctor.Look(ctx, doctor.Options{Offline: c.Bool("offline")}).Report()
			write := r.WriteText
			if c.Bool("json") {
				write = r.WriteJSON
			}
			if err := write(t.Out); err != nil || r.Works {
				return err
			}
			return fail(exitNoEngine, errors.New("this machine does not run the guest kernel"))
		}),
	}
}
