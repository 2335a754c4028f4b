package hostfiles

import (
	"os"
	"path"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
)

// ofTheSystem are folders whose files a guest has of its own, or does without.
var ofTheSystem = []string{"/proc/", "/sys/", "/dev/", "/run/", "/tmp/", "/var/run/", "/usr/lib/locale/", "/usr/share/locale/", "/etc/ld.so."}

// commandFolders lists the folders in which a shell looks for a command, in its order.
var commandFolders = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// manyOfAFolder is the number of wanted files in one folder from which on Wanted names the folder instead.
const manyOfAFolder = 4

// Wanted returns the paths of the host, or of the tree, that programs of a guest asked for and that the guest does not
// have; Add takes them along. If manyOfAFolder or more lie in one folder, the folder takes their place. A folder that
// was asked for itself is named unless every program uses it, as /usr/lib. A library that ld.so searched in its default
// folders only is named by the path in the host's cache.
func (s *Set) Wanted(asked []string, has func(guest string) bool) (list []string) {
	folders := map[string]int{}
	for _, p := range asked {
		if from := s.wanted(p, has); from != "" && !slices.Contains(list, from) {
			list = append(list, from)
			folders[path.Dir(from)]++
		}
	}
	for dir, n := range folders {
		if n >= manyOfAFolder && strings.Count(dir, "/") > 2 {
			list = append(slices.DeleteFunc(list, func(p string) bool { return path.Dir(p) == dir }), dir)
		}
	}
	slices.Sort(list)
	list = slices.DeleteFunc(list, func(p string) bool {
		return slices.ContainsFunc(list, func(dir string) bool { return strings.HasPrefix(p, dir+"/") })
	})
	return list[:min(len(list), bounded.WantedFiles)]
}

// wanted returns the file of the host that a path stands for, "" if there is none.
func (s *Set) wanted(p string, has func(string) bool) string {
	for _, dir := range ofTheSystem {
		if strings.HasPrefix(p, dir) {
			return ""
		}
	}
	system := tree(s.Root)
	if real, err := system.real(p); err == nil && strings.Count(p, "/") > 2 {
		if info, err := os.Stat(system.host(real)); err == nil && info.IsDir() && !has(p) {
			return p
		}
	}
	if _, _, err := system.regular(p); err != nil {
		if !strings.Contains(path.Base(p), ".so") {
			return ""
		}
		for _, file := range s.cache()[path.Base(p)] {
			if _, _, err := system.regular(file); err == nil && !has(file) {
				return file
			}
		}
		return ""
	}
	if has(p) {
		return ""
	}
	if slices.Contains(commandFolders, path.Dir(p)) {
		for _, dir := range commandFolders {
			if has(path.Join(dir, path.Base(p))) {
				return ""
			}
		}
	}
	return p
}
