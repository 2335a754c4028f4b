//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// What a program does that uses the packages happens in a process of its own: this
// command once more, with -child.

// inProcess runs a child's attack and counts what it says it did.
func inProcess(name string) func(*tryOut) {
	return func(c *tryOut) {
		self, err := os.Executable()
		if err != nil {
			c.found("", err.Error())
			return
		}
		c.env = append(c.env, "HOSTILE_GUEST="+filepath.Join(c.root, guestFile))
		out := c.runProgram(self, nil, "-child", name, "-seed", fmt.Sprint(c.rng.Uint32()))
		for line := range strings.Lines(out) {
			count, what, ok := strings.Cut(strings.TrimSpace(line), " ")
			if n, err := strconv.Atoi(count); ok && err == nil {
				c.tally.count(what, n)
			}
		}
	}
}
