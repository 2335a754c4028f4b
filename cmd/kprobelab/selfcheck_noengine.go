//go:build !(cgo && linux && amd64)

package main

import "github.com/urfave/cli/v3"

func runSelfcheck(*term, *cli.Command) error { return engineMissing }
