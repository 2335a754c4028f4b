package archive

import (
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/klauspost/compress/zstd"

	"kprobelab/internal/archive/ctypes"
)

// Rewritten is a file that Shrink or Whole wrote anew.
type Rewritten struct {
	Header
	// File is its path; Before and After are its length, in bytes.
	File          string
	Before, After int
}

// worth is the factor by which a difference must be smaller to be kept.
const worth = 3

// Shrink writes the files of a folder as differences, if these are a third of them or less:
// the kernels of a series from one of them, its head, and the head from the head of an earlier
// series. Files that are differences already, and files that others need, stay as they are.
// done is called for each file that was written.
func Shrink(dir string, done func(Rewritten) error) error {
	all, err := membersOf(dir)
	if err != nil {
		return err
	}
	whole := map[string][]string{} // the heads that need no other file, by kind
	for _, s := range seriesOf(all) {
		head := s.head()
		if head.Base == "" && !head.needed {
			if err := head.shrink(dir, whole[s.kind], done); err != nil {
				return err
			}
		}
		if head.Base == "" {
			whole[s.kind] = append(whole[s.kind], head.name)
		}
		for _, m := range s.members {
			if m == head || m.Base != "" || m.needed {
				continue
			}
			if err := m.shrink(dir, []string{head.name}, done); err != nil {
				return err
			}
		}
	}
	return nil
}

// Whole writes the differences of a folder as files that need no other.
func Whole(dir string, done func(Rewritten) error) error {
	all, err := membersOf(dir)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.Base == "" {
			continue
		}
		f, err := readFile(filepath.Join(dir, m.name))
		if err != nil {
			return err
		}
		b, err := f.bytes(nil, "")
		if err == nil {
			err = m.write(dir, b, "", done)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// member is a file of a folder.
type member struct {
	Header
	name string
	// needed: another file is a difference from it.
	needed bool
	length int
}

// membersOf are the files of a folder, in the order of their releases.
func membersOf(dir string) ([]*member, error) {
	files, err := List(dir)
	if err != nil {
		return nil, err
	}
	var all []*member
	named := map[string]*member{}
	for _, name := range files {
		f, err := readFile(name)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		m := &member{Header: f.Header, name: filepath.Base(name), length: int(info.Size())}
		all, named[m.name] = append(all, m), m
	}
	for _, m := range all {
		if base := named[m.Base]; base != nil {
			base.needed = true
		}
	}
	return all, nil
}

// series are the files of kernels of one series and flavour, which have most in common.
type series struct {
	// kind is the distribution and the flavour, of any release.
	kind    string
	members []*member
}

// releaseParts are the version's first two numbers, and the text after its last number.
var releaseParts = regexp.MustCompile(`^(\d+\.\d+)[\d.]*(.*)`)

// levels are the numbers of a release that count its builds.
var levels = regexp.MustCompile(`[.-]\d+\b`)

// seriesOf divides files by their series, in the order of their releases.
func seriesOf(all []*member) (list []*series) {
	by := map[string]*series{}
	for _, m := range all {
		version, flavour := "", m.Release
		if p := releaseParts.FindStringSubmatch(m.Release); p != nil {
			version, flavour = p[1], levels.ReplaceAllString(p[2], "")
		}
		of := m.Distribution + " " + version + flavour
		s := by[of]
		if s == nil {
			s = &series{kind: m.Distribution + " " + flavour[max(strings.IndexByte(flavour, '-'), 0):]}
			by[of] = s
			list = append(list, s)
		}
		s.members = append(s.members, m)
	}
	return list
}

// head is the member that the others are differences from: the one that is so already, or
// else the newest.
func (s *series) head() *member {
	for _, m := range s.members {
		if m.needed {
			return m
		}
	}
	return s.members[len(s.members)-1]
}

// shrink writes a file as a difference from one of others, if that is worth it.
func (m *member) shrink(dir string, bases []string, done func(Rewritten) error) error {
	if len(bases) == 0 {
		return nil
	}
	f, err := readFile(filepath.Join(dir, m.name))
	if err != nil {
		return err
	}
	var best []byte
	from := ""
	for _, name := range bases {
		base, err := readFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		b, err := f.bytes(base, name)
		if err != nil {
			return err
		}
		if best == nil || len(b) < len(best) {
			best, from = b, name
		}
	}
	if len(best)*worth > m.length {
		return nil
	}
	return m.write(dir, best, from, done)
}

func (m *member) write(dir string, b []byte, base string, done func(Rewritten) error) error {
	file, err := writeFile(dir, m.name, b)
	if err != nil {
		return err
	}
	before := m.length
	m.Base, m.length = base, len(b)
	return done(Rewritten{m.Header, file, before, len(b)})
}

// bytes is the file as a difference from another one, or whole, where base is nil.
func (f *file) bytes(base *file, name string) ([]byte, error) {
	c, err := newContents()
	if err != nil {
		return nil, err
	}
	defer c.enc.Close()
	c.header = f.Header
	c.header.Base, c.header.Sections = name, nil
	renamed, err := f.likeTypes(base)
	if err != nil {
		return nil, err
	}
	for _, s := range f.Sections {
		data, ok := renamed[s.Name]
		if !ok {
			if data, err = f.section(s.Name); err != nil {
				return nil, err
			}
		}
		if base != nil {
			before, err := base.like(s.Name)
			if err != nil {
				return nil, err
			}
			ok, err := c.addFrom(s.Name, data, before)
			if err != nil {
				return nil, err
			}
			if ok {
				continue
			}
		}
		c.add(s.Name, data)
	}
	return c.bytes()
}

// shortest is the least length of a dictionary in bytes.
const shortest = 64

// addFrom adds a section as a difference, if that is shorter than the section alone.
func (c *contents) addFrom(name string, data, before []byte) (bool, error) {
	if len(before) < shortest {
		return false, nil
	}
	enc, err := newEncoder(zstd.WithEncoderDictRaw(dictionary, before))
	if err != nil {
		return false, err
	}
	defer enc.Close()
	packed := enc.EncodeAll(data, nil)
	if len(packed)*worth > len(data) && len(packed) >= len(c.enc.EncodeAll(data, nil)) {
		return false, nil
	}
	sum := crc32.Checksum(before, castagnoli)
	c.put(sectionHead{Name: name, Size: len(data), From: &sum}, packed)
	return true, nil
}

// likeTypes returns the sections of the file's types, with the names numbered as in
// base if there is a base, else as Pack numbers them.
func (f *file) likeTypes(base *file) (map[string][]byte, error) {
	own, err := readGroup(f, "")
	if err != nil {
		return nil, err
	}
	var like *ctypes.Table
	if base != nil {
		g, err := readGroup(base, "")
		if err != nil {
			return nil, err
		}
		if err := g.readTables(nil); err != nil {
			return nil, err
		}
		if len(g.tables) > 0 {
			like = g.tables[0]
		}
	}
	sections := map[string][]byte{}
	if err := own.rewriteTypes(nil, like, sections); err != nil || f.Packaged == 0 || own.tables == nil {
		return sections, err
	}
	modules, err := readGroup(f, packagePrefix)
	if err != nil {
		return nil, err
	}
	return sections, modules.rewriteTypes(own.tables[0], nil, sections)
}

// rewriteTypes writes a group's types anew, the first ones like others.
func (g *group) rewriteTypes(kernel, like *ctypes.Table, sections map[string][]byte) error {
	if err := g.readTables(kernel); err != nil || !g.Types {
		return err
	}
	var c ctypes.Columns
	for i, t := range g.tables {
		if t == nil {
			continue
		}
		syms, err := g.symbols(i)
		if err != nil {
			return err
		}
		t.Write(&c, uniqueNames(syms), like)
		like = nil
	}
	for i, name := range ctypes.ColumnNames {
		sections[g.prefix+"types."+name] = c[i]
	}
	return nil
}
