package cmdline

import (
	"strings"

	"github.com/urfave/cli/v3"
)

// Tool is another program. A command of the same name takes its command lines: options that it does not have itself have no
// effect, or are refused with a reason.
type Tool struct {
	// Name is the tool's name, Version its answer to -V.
	Name, Version string
	options       []toolOption
}

// toolOption is an option of a tool.
type toolOption struct {
	// name is its name; its values, if it takes one, are thrown away.
	name  string
	value bool
	// why says why it cannot be had; "" is for an option without effect.
	why string
}

// ReadTool reads a tool from its table: the first line is the version, every other line an option, with = after the name if
// it takes a value, and the reason if it cannot be had. Lines that begin with # are comments.
func ReadTool(name, table string) *Tool {
	version, rest, _ := strings.Cut(table, "\n")
	t := &Tool{Name: name, Version: version}
	for line := range strings.Lines(rest) {
		option, why, _ := strings.Cut(strings.TrimSpace(line), " ")
		if option == "" || option[0] == '#' {
			continue
		}
		o := toolOption{why: strings.TrimSpace(why)}
		o.name, o.value = strings.CutSuffix(option, "=")
		t.options = append(t.options, o)
	}
	return t
}

// Flags are the options of a tool, and -V. The help does not show them.
func (t *Tool) Flags() []cli.Flag {
	list := []cli.Flag{&cli.BoolFlag{Name: "version", Aliases: []string{"V"}, Hidden: true}}
	for _, o := range t.options {
		if o.value {
			list = append(list, &cli.StringSliceFlag{Name: o.name, Hidden: true})
			continue
		}
		list = append(list, &cli.BoolFlag{Name: o.name, Hidden: true})
	}
	return list
}

// Refuses says why an option of a tool cannot be had.
func (t *Tool) Refuses(c *cli.Command) error {
	for _, o := range t.options {
		if o.why != "" && c.IsSet(o.name) {
			return Usagef("%s is an option of %s that cannot be had: %s; try %s --help", Dashed(o.name), t.Name, o.why, c.FullName())
		}
	}
	return nil
}
