// Command kprobelab plants kernel probes in real kernel code that runs in an
// ordinary process.
package main

import (
	"context"
	"io"
	"os"

	_ "kprobelab/internal/descriptors" // ends a process that may open too few files
)

// An interrupt ends the process as it ends any other: there is nothing to
// clean up, and a call in the engine would not notice.
func main() {
	os.Exit(execute(os.Args, os.Stdout, os.Stderr))
}

// execute is the program without the process: it returns the exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	if len(args) > 1 && args[1] == completeCommand {
		complete(stdout, args[2:]) // the shell is not told what went wrong
		return exitOK
	}
	if len(args) == 0 {
		args = []string{"kprobelab"}
	}
	t := newTerm(stdout, stderr)
	app := newApp(t)
	args, err := permute(app, args)
	if err == nil {
		var said string
		if args, said, err = reworded(app, args); said != "" {
			t.sayf("%s", said)
			t.writtenErr.n = 0 // the output's bound is the command's own
		}
	}
	if err == nil {
		err = runApp(context.Background(), app, programLast(app, args))
	}
	t.ended.Store(true)
	if err == nil && t.written.err != nil {
		err = &failure{exitImage, t.written.err}
	}
	return t.report(err)
}
