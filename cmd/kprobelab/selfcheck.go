package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
)

const selfcheckHelp = `Asks the image's own functions, which run on the engine without a boot, what the rules of
this program answer too: whether an address is an instruction's start that may be probed
(can_probe), in a jump label, a static call or a BUG, on the blacklist, how long an instruction is,
whether it is boosted (can_boost), whether a jump may replace it (can_optimize). Where the two
differ the rules are wrong about this kernel: each kind of difference is listed, with
examples. The points are drawn: instructions, their insides, padding, functions' entries,
places that the kernel patches. The same --seed draws the same points.

A function's answer is one call, which ends after its budget of instructions, or --timeout; then it
counts as not answered.

What needs a booted kernel is not asked (ftrace sites, lock prefixes), and is named
at the end; so is a function that is not there or does not answer.

A memory dump of a booted kernel is asked with its own register_kprobe, of a probe that it does not
arm: errno, address, ftrace, boosted, emulated, the copy in the slot, optimized or not.

With --json every line is an object for a question: "function", "about", "asked", "differ",
"silent" (not answered), "not_there", "unanswered" (at no point), "examples".

The functions that patch text at boot (apply_alternatives, apply_retpolines, apply_returns,
apply_paravirt) run on a copy of the text as the file has it; every site is compared.

The last line names the functions without an answer. Exit code 1 means that something differs, 3
that the image answers nothing, or that a function which it has gave no answer at all.

`

const defaultPoints = 1000

func selfcheckCommand(t *term) *cli.Command {
	var timeout time.Duration
	return &cli.Command{
		Name:      "selfcheck",
		Usage:     "compare the rules with the image's own functions, at drawn points",
		ArgsUsage: "[IMAGE]",
		Description: selfcheckHelp + imageHelp + "\n\n" + examples(
			"kprobelab selfcheck /boot/vmlinuz-6.1.0-18-amd64",
			"kprobelab selfcheck --points 20000 --seed 7 vmlinuz",
			"kprobelab selfcheck --profile 6.1 vmlinuz-6.8.0     # what would be wrong by that profile",
			"kprobelab selfcheck --boundaries 10000 --insides 1000 kernel.core",
			"kprobelab selfcheck --json vmlinuz | jq 'select(.differ > 0)'",
		),
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "points", Value: defaultPoints, Usage: "draw this `NUMBER` of points"},
			&cli.IntFlag{Name: "boundaries", Usage: "draw this `NUMBER` of instructions instead"},
			&cli.IntFlag{Name: "insides", Usage: "draw this `NUMBER` of addresses inside instructions instead"},
			&cli.BoolFlag{Name: "all", Usage: "every instruction of the text instead: takes hours"},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "`SEED` of what is drawn"},
			timeoutFlag(&timeout),
			&cli.BoolFlag{Name: "json", Usage: "one JSON object for each question"},
		}, imageFlags()...),
		Action: func(_ context.Context, c *cli.Command) error {
			if err := atMost(c, 1); err != nil {
				return err
			}
			for _, ways := range [][2]string{{"points", "all"}, {"points", "boundaries"}, {"points", "insides"}, {"all", "boundaries"}, {"all", "insides"}} {
				if err := oneOf(c, ways[0], ways[1]); err != nil {
					return err
				}
			}
			for _, way := range []string{"points", "boundaries", "insides"} {
				if n := c.Int(way); c.IsSet(way) && (n < 1 || n > bounded.CheckPoints) {
					return usagef("--%s %d: there can be 1 to %d", way, n, bounded.CheckPoints)
				}
			}
			if err := notNegative(timeout); err != nil {
				return err
			}
			return runSelfcheck(t, c, timeout)
		},
	}
}
