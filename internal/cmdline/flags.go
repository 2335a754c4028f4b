package cmdline

import (
	"slices"

	"github.com/urfave/cli/v3"
)

// Each is a flag that is given several times: it is called with each value, in the order of the command line across
// all flags.
type Each func(text string) error

// Set implements cli.Value.
func (f Each) Set(text string) error { return f(text) }

// String implements cli.Value.
func (f Each) String() string { return "" }

// Get implements cli.Value.
func (f Each) Get() any { return nil }

// Parsed appends what parse reads.
func Parsed[T any](to *[]T, parse func(string) (T, error)) Each {
	return func(text string) error {
		v, err := parse(text)
		if err == nil {
			*to = append(*to, v)
		}
		return err
	}
}

// OneOf refuses a flag together with one of the others.
func OneOf(c *cli.Command, flag string, others ...string) error {
	for _, other := range others {
		if c.IsSet(flag) && c.IsSet(other) {
			return Usagef("--%s and --%s exclude each other", flag, other)
		}
	}
	return nil
}

// Form chooses by --json and --tsv; a command without one of these flags gives nothing for it.
func Form[T any](c *cli.Command, text, json, tsv T) T {
	switch {
	case c.Bool("json"):
		return json
	case c.Bool("tsv"):
		return tsv
	}
	return text
}

// Dashed writes a flag's name with its dashes, one before a letter.
func Dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// hidden reports a flag that the help does not show.
func hidden(f cli.Flag) bool {
	v, ok := f.(cli.VisibleFlag)
	return ok && !v.IsVisible()
}

// hasFlag reports whether a command has a flag by this name.
func hasFlag(c *cli.Command, name string) bool {
	return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
}

// takesValue reports whether a command has a flag by this name that takes a value.
func takesValue(c *cli.Command, name string) bool {
	for _, f := range c.Flags {
		if d, ok := f.(cli.DocGenerationFlag); ok && slices.Contains(f.Names(), name) {
			return d.TakesValue()
		}
	}
	return false
}
