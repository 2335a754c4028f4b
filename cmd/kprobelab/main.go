// Command kprobelab plants kernel probes in real kernel code that runs in an
// ordinary process.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// run is the program without the process: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 1 && args[1] == completeCommand {
		complete(stdout, args[2:])
		return exitOK
	}
	if len(args) == 0 {
		args = []string{"kprobelab"}
	}
	t := newTerm(stdout, stderr)
	err := newApp(t).Run(ctx, args)
	return t.report(err)
}
