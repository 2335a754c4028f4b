package kimage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/printable"
	"kprobelab/profile"
)

// factConfiguration is the fact that says which file beside the image is read as
// its configuration, or why the one that is there is not.
const factConfiguration = "configuration"

// readConfig reads the configuration that the options name, else the one that
// is embedded in the image (CONFIG_IKCONFIG), else the one beside its file.
func (e *evidence) readConfig() error {
	if path := e.img.opts.Config; path != "" {
		b, err := readMaybePacked(path, e.img.opts.Progress)
		if err != nil {
			return err
		}
		e.config, e.configFrom = parseConfig(b), path
		if len(e.config) == 0 {
			return badFormat(path, -1, "it is no kernel configuration: it has no lines CONFIG_…=")
		}
		return nil
	}
	if !e.readEmbedded() {
		e.readBeside()
	}
	return nil
}

// readEmbedded reads the configuration inside the image, if it has one.
func (e *evidence) readEmbedded() bool {
	// Data symbols would name it; only without them is all data searched.
	_, named := e.img.symbolAddr("kernel_config_data")
	if !named && e.img.index.image > 0 && !e.img.bounds.onlyText {
		return false
	}
	for _, s := range e.img.sections {
		i := bytes.Index(s.Data, []byte("IKCFG_ST\x1f\x8b\x08"))
		if s.Exec || i < 0 {
			continue
		}
		if b, err := decompressBeside(e.img.name, s.Data[i+8:], nil); err == nil {
			e.config, e.configFrom = parseConfig(b), "the image's embedded configuration"
			return true
		}
	}
	return false
}

// readBeside reads the configuration that is installed beside the image. A configuration
// of another release is not used; that is no error, because the user did not name it.
func (e *evidence) readBeside() {
	path := configBeside(e.img.path)
	if path == "" || e.img.kind != KindKernel {
		return
	}
	b, err := bounded.ReadFile(path, bounded.Configuration)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = e.belongs(path, b)
	}
	if err != nil {
		e.fact(factConfiguration, "not used", printable.Name(err.Error()))
		return
	}
	e.config, e.configFrom = parseConfig(b), printable.Name(filepath.Base(path))
	e.fact(factConfiguration, printable.Name(path), "beside the image, and of its release")
}

// configBeside returns the path at which the configuration of an image is
// installed: in /boot config-RELEASE beside vmlinuz-RELEASE, in
// /usr/lib/modules/RELEASE config beside vmlinuz. It returns "" for files with
// other names.
func configBeside(image string) string {
	dir, base := filepath.Split(image)
	for _, name := range []string{"vmlinuz", "vmlinux"} {
		rest, ok := strings.CutPrefix(base, name)
		if ok && (rest == "" || rest[0] == '-') {
			return filepath.Join(dir, "config"+rest)
		}
	}
	return ""
}

// configTitle is a line at the head of every configuration since 2.6.39.
var configTitle = regexp.MustCompile(`(?m)^# Linux/\S+ (\S+) Kernel Configuration$`)

// belongs reports why a configuration is not of the image's release. The words at
// its head have the release of the sources: the patch level may be one that the
// banner does not tell (6.8.0-31-generic is built of 6.8.1).
func (e *evidence) belongs(path string, config []byte) error {
	of := configTitle.FindSubmatch(config[:min(len(config), 1024)])
	if of == nil {
		return fmt.Errorf("%s does not begin as a kernel's configuration does", path)
	}
	theirs, ok1 := profile.ParseVersion(string(of[1]))
	ours, ok2 := e.banner.version()
	if !ok1 || !ok2 || !ours.Matches(theirs) {
		return fmt.Errorf("%s is of release %s", path, of[1])
	}
	return nil
}

// parseConfig reads "CONFIG_X=value" and "# CONFIG_X is not set" (as "n").
func parseConfig(b []byte) map[string]string {
	config := map[string]string{}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if off, ok := strings.CutSuffix(line, " is not set"); ok {
			if name, ok := strings.CutPrefix(off, "# "); ok && strings.HasPrefix(name, "CONFIG_") {
				config[name] = "n"
			}
			continue
		}
		if name, value, ok := strings.Cut(line, "="); ok && strings.HasPrefix(name, "CONFIG_") {
			config[name] = strings.Trim(value, `"`)
		}
	}
	return config
}

// option is the configuration's word on the first of the names that it has; a
// complete configuration that lacks them all says no.
func (e *evidence) option(names ...string) (on bool, why string, ok bool) {
	if e.config == nil {
		return false, "", false
	}
	for _, n := range names {
		if v, ok := e.config[n]; ok {
			return v == "y", n + "=" + v + " in " + e.configFrom, true
		}
	}
	return false, names[0] + " is not in " + e.configFrom, true
}
