package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/page"
	"kprobelab/internal/page/server"
)

// pageFile is the page's file beside the program, as make page writes it.
const pageFile = "kprobelab.html"

func serveCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "serve",
		Usage:       "serve the page to learn on to this computer's browser",
		ArgsUsage:   "[IMAGE...]",
		Description: described("serve"),
		Flags: []cli.Flag{
			kernelFlag(),
			&cli.StringFlag{Name: "address", Value: "127.0.0.1", Usage: "listen at this IP `ADDRESS` of the computer; other computers can then have page and images"},
			&cli.StringSliceFlag{Name: "frame", Usage: "let pages of this `ORIGIN` show the page in a frame, https://course.example (repeatable)"},
			&cli.IntFlag{Name: "port", Usage: "listen at this `PORT` (default: one that is free)"},
			&cli.StringFlag{Name: "lessons", Usage: "offer the lessons in this `FOLDER`, too: its files *.json (docs/lessons.md)"},
			&cli.StringFlag{Name: "page", Usage: "serve this `FILE` (default: " + pageFile + " beside the program)"},
		},
		Action: func(ctx context.Context, c *cli.Command) error { return serve(ctx, t, c) },
	}
}

func serve(ctx context.Context, t *term, c *cli.Command) error {
	port := c.Int("port")
	if port < 0 || port > 65535 {
		return usagef("--port: %d is not a port: they go from 0 to 65535", port)
	}
	html := c.String("page")
	if html == "" {
		html = pageFile
		if self, err := os.Executable(); err == nil {
			html = filepath.Join(filepath.Dir(self), pageFile)
		}
	}
	images := operands(c)
	for i, path := range images {
		var err error
		if images[i], err = t.asKernel(c, path); err != nil {
			return err
		}
	}
	s, err := server.New(html, images)
	var missing *fs.PathError
	switch {
	case errors.As(err, &missing) && missing.Path == html && errors.Is(err, fs.ErrNotExist):
		return fail(exitImage, fmt.Errorf("there is no page at %s: --page FILE names one, as kprobelab-VERSION.html of a release; `make page` makes it in bin of a checkout", html))
	case err != nil:
		return fail(exitImage, err)
	}
	defer s.Close()
	if dir := c.String("lessons"); dir != "" {
		if err := page.Lessons(dir, s.AddLesson); err != nil {
			return fail(exitImage, err)
		}
	}
	for _, origin := range c.StringSlice("frame") {
		if err := s.Frame(origin); err != nil {
			return usagef("--frame: %v", err)
		}
	}
	l, err := s.ListenAt(c.String("address"), port)
	switch {
	case errors.Is(err, server.ErrAddress):
		return usagef("--address: %v", err)
	case err != nil:
		return fail(exitImage, err)
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })() // Serve returns then
	fmt.Fprintf(t.Out, "the page is at http://%s/ until this is interrupted\n", l.Addr())
	return fail(exitImage, s.Serve(l))
}
