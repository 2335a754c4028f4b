// Command kprobelab plants kernel probes in real kernel code that runs in an
// ordinary process.
package main

import (
	"context"
	"io"
	"os"

	"kprobelab/internal/cmdline"
	_ "kprobelab/internal/descriptors" // ends a process that may open too few files
)

// An interrupt ends the process as it ends any other: there is nothing to
// clean up, and a call in the engine would not notice.
func main() {
	os.Exit(execute(os.Args, os.Stdout, os.Stderr))
}

// execute is the program without the process: it returns the exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	if len(args) > 1 && args[1] == cmdline.CompleteCommand {
		complete(stdout, args[2:]) // the shell is not told what went wrong
		return exitOK
	}
	if len(args) == 0 {
		args = []string{"kprobelab"}
	}
	t := newTerm(stdout, stderr, args[1:]...)
	app := newApp(t)
	args, err := app.Permute(args)
	if err == nil {
		var said string
		if args, said, err = reworded(app, args); said != "" {
			t.Sayf("%s", said)
			t.Uncount() // the output's bound is the command's own
		}
	}
	if err == nil {
		err = app.Run(context.Background(), args)
	}
	if failed := t.Ended(); err == nil && failed != nil {
		err = fail(exitImage, failed)
	}
	return t.report(err)
}
