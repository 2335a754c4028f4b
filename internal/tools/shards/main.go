// Command shards runs a comparison for each item of a shard's share, and prints the output of the shard, for kprobelab merge:
//
//	SHARD=2/3 shards -target conformance-check scripts/conformance-check.sh
//
// With LIST=1 in its environment a comparison prints its items, one a line, and ends (offer in scripts/kernels.sh). An item is
// NAME=VALUE, or several with a tab between them: the environment in which the comparison runs for this item alone.
//
//	shards -of 2/3
//
// prints the share of the lines on standard input.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"kprobelab/internal/cmdline"
	"kprobelab/shard"
)

func main() {
	target := flag.String("target", "", "the make target")
	of := flag.String("of", "", "print the share I/N of the lines on standard input")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := &comparison{target: *target, program: flag.Args(), environ: os.Environ(), out: os.Stdout, err: os.Stderr}
	var code int
	var err error
	if *of != "" {
		err = share(os.Stdin, os.Stdout, *of)
	} else {
		code, err = c.run(ctx, os.Getenv("SHARD"), os.Getenv("MAKEFLAGS"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 2)
	}
	os.Exit(code)
}

// part reads SHARD.
func part(text string) (shard.Part, error) {
	p, err := shard.Parse(text)
	if err != nil {
		err = fmt.Errorf("SHARD=%s is no shard: I/N is wanted, such as 2/3 for the second of three", text)
	}
	return p, err
}

// share writes the lines of a part.
func share(in io.Reader, out io.Writer, of string) error {
	p, err := part(of)
	if err != nil {
		return err
	}
	var lines []string
	s := bufio.NewScanner(in)
	for s.Scan() {
		lines = append(lines, s.Text())
	}
	for _, line := range shard.Of(p, lines) {
		fmt.Fprintln(out, line)
	}
	return s.Err()
}

// comparison is a program that compares for each item.
type comparison struct {
	target   string
	program  []string
	environ  []string
	out, err io.Writer
}

// run compares for the items of a part. The code is 0 if the output is whole, and shard.NotHad if it is, but an item could not be
// had.
func (c *comparison) run(ctx context.Context, of, makeflags string) (code int, err error) {
	p, err := part(of)
	if err != nil {
		return 2, err
	}
	var list bytes.Buffer
	if code, err = c.start(ctx, &list, "LIST=1"); err != nil || code != 0 {
		return code, err
	}
	items := strings.FieldsFunc(list.String(), func(r rune) bool { return r == '\n' })
	w, err := shard.Begin(c.out, cmdline.Version(), append([]string{shard.Jobs, c.target}, variables(makeflags)...), p, items, nil)
	if err != nil {
		return 2, err
	}
	fmt.Fprintln(c.err, w.Says("items"))
	for _, item := range shard.Of(p, items) {
		var out bytes.Buffer
		one, err := c.start(ctx, &out, strings.Split(item, "\t")...)
		switch {
		case err != nil:
			return 2, err
		case one == 2: // wrong use, which is the same for all items
			return 2, fmt.Errorf("%s: %s ended with 2", c.program[0], strings.ReplaceAll(item, "\t", " "))
		}
		if err := w.Add(shard.Job{Item: item, Output: out.Bytes(), Code: one}); err != nil {
			return 2, err
		}
		if one == shard.NotHad {
			code = one
		}
	}
	return code, w.End()
}

// start runs the program with variables in its environment, and returns its exit code. An interrupt is an error.
func (c *comparison) start(ctx context.Context, out io.Writer, variables ...string) (code int, err error) {
	cmd := exec.CommandContext(ctx, c.program[0], c.program[1:]...)
	cmd.Stdout, cmd.Stderr = out, c.err
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	for _, v := range c.environ {
		if !strings.HasPrefix(v, "SHARD=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, variables...)
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() && ctx.Err() == nil {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// variables are the variables of make's command line, without SHARD, from its MAKEFLAGS.
func variables(makeflags string) (list []string) {
	_, words, ok := strings.Cut(" "+makeflags, " -- ")
	if !ok {
		return nil
	}
	var word strings.Builder
	end := func() {
		if w := strings.ReplaceAll(word.String(), "$$", "$"); w != "" && !strings.HasPrefix(w, "SHARD=") {
			list = append(list, w)
		}
		word.Reset()
	}
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == '\\' && i+1 < len(words):
			i++
			word.WriteByte(words[i])
		case words[i] == ' ':
			end()
		default:
			word.WriteByte(words[i])
		}
	}
	end()
	return list
}
