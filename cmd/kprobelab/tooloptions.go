package main

import (
	"fmt"

	"github.com/urfave/cli/v3"
)

// toolOption is an option of stap or bpftrace that this command takes, so that a command line of the tool's works here.
type toolOption struct {
	// names are its names, the values of which, with a value, are thrown away.
	names string
	value bool
	// why says why it cannot be had; "" is for an option without effect here.
	why string
}

const (
	ofBPF       = "no BPF program is made here"
	ofC         = "no C is made of a script here"
	ofProcesses = "there are no processes here but those of a dump; -c runs a program there"
	ofHeaders   = "headers are not read: types are those of the image's BTF and of --debuginfo"
	ofServers   = "everything is done in this process"
	ofScripts   = "only the library of stap that is part of this program is read"
)

// toolOptions are the options without effect here, and the ones that cannot be had.
var toolOptions = map[string][]toolOption{
	"bpftrace": {
		{"B", true, ""}, {"k", false, ""},
		{"I", true, ofHeaders}, {"include", true, ofHeaders},
		{"p", true, ofProcesses}, {"usdt-file-activation", false, ofProcesses},
		{"d", true, ofBPF}, {"emit-elf", true, ofBPF}, {"emit-llvm", true, ofBPF}, {"info", false, ofBPF + "; kprobelab info tells about an image"},
	},
	"stap": {
		{"v", false, ""}, {"vp", true, ""}, {"k", false, ""}, {"u", false, ""}, {"w", false, ""}, {"P", false, ""}, {"b", false, ""}, {"s", true, ""}, {"q", false, ""},
		{"B", true, ""}, {"modinfo", true, ""}, {"a", true, ""}, {"m", true, ""}, {"d", true, ""}, {"ldd", false, ""}, {"all-modules", false, ""},
		{"tmpdir", true, ""}, {"poison-cache", false, ""}, {"disable-cache", false, ""}, {"check-version", false, ""}, {"save-uprobes", false, ""},
		{"I", true, ofScripts}, {"R", true, ofC}, {"E", true, "one script is run at a time"}, {"W", false, "warnings are not counted here"},
		{"x", true, ofProcesses}, {"target-namespace", true, ofProcesses}, {"F", false, ofServers}, {"S", true, ofServers}, {"T", true, "--for and --timeout end a script here"},
		{"runtime", true, ofC}, {"bpf", false, ofBPF}, {"prologue-searching", false, "variables are where the debugging information has them"},
		{"privilege", true, ofServers}, {"unprivileged", false, ofServers}, {"compatible", true, "the language is that of stap 4.8"},
		{"skip-badvars", false, "a variable that cannot be read is an error here"}, {"suppress-handler-errors", false, "-D MAXERRORS=N lets errors pass"},
		{"suppress-time-limits", false, "-D MAXACTION=N sets the limit"},
		{"use-server", false, ofServers}, {"list-servers", false, ofServers}, {"trust-servers", false, ofServers}, {"remote", true, ofServers}, {"remote-prefix", false, ofServers},
		{"download-debuginfo", false, "--debuginfo FILE gives debugging information"}, {"sysroot", true, ofServers}, {"sysenv", true, ofServers},
		{"dump-probe-types", false, ofScripts}, {"dump-probe-aliases", false, ofScripts}, {"dump-functions", false, ofScripts},
	},
}

// toolVersions are the answers of the tools to -V.
var toolVersions = map[string]string{
	"bpftrace": "bpftrace v0.23.2",
	"stap":     "Systemtap translator/driver (version 4.8)",
}

// toolFlags are the options of a tool, and -V. The help does not show them.
func toolFlags(tool string) []cli.Flag {
	list := []cli.Flag{&cli.BoolFlag{Name: "version", Aliases: []string{"V"}, Hidden: true}}
	for _, o := range toolOptions[tool] {
		if o.value {
			list = append(list, &cli.StringSliceFlag{Name: o.names, Hidden: true})
			continue
		}
		list = append(list, &cli.BoolFlag{Name: o.names, Hidden: true})
	}
	return list
}

// toolRefuses says why an option of a tool cannot be had.
func toolRefuses(c *cli.Command, tool string) error {
	for _, o := range toolOptions[tool] {
		if o.why != "" && c.IsSet(o.names) {
			return usagef("%s is an option of %s that cannot be had: %s; try kprobelab %s --help", dashed(o.names), tool, o.why, tool)
		}
	}
	return nil
}

// toolVersion prints the version of a tool whose language this is, if that is asked for.
func (t *term) toolVersion(c *cli.Command, tool string) bool {
	if !c.Bool("version") {
		return false
	}
	fmt.Fprintf(t.out, "%s, as kprobelab has it\n", toolVersions[tool])
	return true
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// hidden reports an option that the help does not show.
func hidden(f cli.Flag) bool {
	v, ok := f.(cli.VisibleFlag)
	return ok && !v.IsVisible()
}
