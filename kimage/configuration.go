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
	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/infer"
	"kprobelab/profile"
)

// factConfiguration is the fact that says which file beside the image is read as
// its configuration, or why the one that is there is not.
const factConfiguration = "configuration"

// readConfig reads the configuration that the options name, else the one that
// is embedded in the image (CONFIG_IKCONFIG), else the one beside its file.
func (img *Image) readConfig() (c infer.Configuration, err error) {
	if path := img.opts.Config; path != "" {
		b, err := readMaybePacked(path, img.opts.Progress)
		if err != nil {
			return c, err
		}
		c = infer.Configuration{Options: parseConfig(b), From: path, Given: true}
		if len(c.Options) == 0 {
			return c, badFormat(path, -1, "it is no kernel configuration: it has no lines CONFIG_…=")
		}
		return c, nil
	}
	if c, ok := img.readEmbedded(); ok {
		return c, nil
	}
	return img.readBeside(), nil
}

// readEmbedded reads the configuration inside the image, if it has one.
func (img *Image) readEmbedded() (c infer.Configuration, ok bool) {
	// Data symbols would name it; only without them is all data searched.
	_, named := img.symbolAddr("kernel_config_data")
	if !named && img.index.image > 0 && !img.bounds.onlyText {
		return c, false
	}
	for _, s := range img.sections {
		i := bytes.Index(s.Data, []byte("IKCFG_ST\x1f\x8b\x08"))
		if s.Exec || i < 0 {
			continue
		}
		if b, err := decompressBeside(img.name, s.Data[i+8:], nil); err == nil {
			return infer.Configuration{Options: parseConfig(b), From: "the image's embedded configuration"}, true
		}
	}
	return c, false
}

// readBeside reads the configuration that is installed beside the image. A configuration
// of another release is not used; that is no error, because the user did not name it.
func (img *Image) readBeside() (c infer.Configuration) {
	path := configBeside(img.path)
	if path == "" || img.kind != KindKernel {
		return c
	}
	b, err := bounded.ReadFile(path, bounded.Configuration)
	if errors.Is(err, fs.ErrNotExist) {
		return c
	}
	if err == nil {
		err = img.belongs(path, b)
	}
	if err != nil {
		img.facts.Add(evidence.Fact{Name: factConfiguration, Value: "not used", Evidence: printable.Name(err.Error())})
		return c
	}
	img.facts.Add(evidence.Fact{Name: factConfiguration, Value: printable.Name(path), Evidence: "beside the image, and of its release"})
	return infer.Configuration{Options: parseConfig(b), From: printable.Name(filepath.Base(path))}
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
func (img *Image) belongs(path string, config []byte) error {
	of := configTitle.FindSubmatch(config[:min(len(config), 1024)])
	if of == nil {
		return fmt.Errorf("%s does not begin as a kernel's configuration does", path)
	}
	theirs, ok1 := profile.ParseVersion(string(of[1]))
	ours, ok2 := img.Version()
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

// choose finds out how the image's kernel behaves.
func (img *Image) choose() error {
	c, err := img.readConfig()
	if err != nil {
		return err
	}
	e := infer.New(inside{img}, &img.facts, c)
	img.profile = e.Profile(img.opts.Profile)
	img.mitigationOptions(e)
	e.PreemptModel()
	if p := img.opts.Profile; p != nil {
		img.facts.Add(evidence.Fact{Name: "profile", Value: p.Name, Evidence: string(evidence.Asked)})
	}
	return nil
}

// banner returns the kernel's description of itself, taken apart.
func (img *Image) banner() infer.Banner { return infer.FindBanner(inside{img}) }

// Version is the release, as far as the image tells it, with Debian's patch level;
// false if nothing in the image tells it.
func (img *Image) Version() (profile.Version, bool) {
	b := img.banner()
	return b.Version()
}

// Banner is the kernel's own description of itself, "" if there is none.
func (img *Image) Banner() string { return img.banner().Text }

// Release is the release in the banner, as uname -r prints it; "" if there is no banner.
func (img *Image) Release() string { return img.banner().Release }
