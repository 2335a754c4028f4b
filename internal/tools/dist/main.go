// Command dist makes the parts of a release that no common tool makes the same twice: archives, the OCI image,
// the list of what is linked (SPDX), its licences, and the list of static archives with the source package of each.
//
// It must not know how the programs were built; scripts/dist.sh does that.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := do(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: dist pack OUT FOLDER FILE[=NAME]… | dist image OUT VERSION FILE[=NAME]… | dist describe VERSION FOLDER ARCHIVES UNICORN | dist archives MAP UNICORN [FILE…]")

func do(args []string) error {
	if len(args) < 3 {
		return errUsage
	}
	switch {
	case args[0] == "pack" && len(args) > 3:
		return packFile(args[1], args[2], args[3:])
	case args[0] == "image" && len(args) > 3:
		return imageFile(args[1], args[2], args[3:])
	case args[0] == "describe" && len(args) == 5:
		return describe(args[1], args[2], args[3], args[4])
	case args[0] == "archives":
		return printArchives(os.Stdout, args[1], args[2], args[3:])
	}
	return errUsage
}

// epoch is the time that all files of a release have: $SOURCE_DATE_EPOCH, of the commit.
func epoch() (time.Time, error) {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return time.Time{}, errors.New("SOURCE_DATE_EPOCH, the time of the commit in seconds, is not set")
	}
	return time.Unix(seconds, 0).UTC(), nil
}
