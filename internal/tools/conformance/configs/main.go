// Package configs draws configurations of a kernel, for DRAWN=N make conformance-configs. The seed and the
// release decide them: each is printed, and written to a file that make of a kernel takes as its options.
package configs

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// Run runs the verb configs.
func Run(args []string) error {
	f := flag.NewFlagSet("configs", flag.ExitOnError)
	release := f.String("release", "", "the kernel's release, such as 6.12.118-1")
	n := f.Int("n", 3, "how many configurations, at most 100")
	seed := f.Uint64("seed", 1, "decides the configurations")
	folder := f.String("folder", "", "write drawn-SEED-NUMBER.config here")
	if err := f.Parse(args); err != nil {
		return err
	}
	return run(*release, *n, *seed, *folder)
}

func run(release string, n int, seed uint64, folder string) error {
	v, err := parseVersion(release)
	if err != nil {
		return err
	}
	if n < 1 || n > 100 {
		return errors.New("-n: a number from 1 to 100 is wanted")
	}
	list, err := options(optionText)
	if err != nil {
		return err
	}
	for i, d := range draw(list, v, n, seed) {
		name := fmt.Sprintf("drawn-%d-%d", seed, i+1)
		fmt.Fprintf(os.Stderr, "%s of %s: %s\n", name, release, d.words())
		if folder != "" {
			if err := os.WriteFile(filepath.Join(folder, name+".config"), []byte(d.String()), 0o644); err != nil {
				return err
			}
		}
		fmt.Println(name)
	}
	return nil
}
