//go:build !(unicorn && cgo && linux && amd64)

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "levels needs the emulation engine (cgo, linux/amd64)")
	os.Exit(77)
}
