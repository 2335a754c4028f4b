package source

import "strings"

// fileRule reports whether a path matches a user's name of a file.
type fileRule func(path string) bool

// files returns the rule for the place's file: SystemTap's if all places are wanted, else perf's.
func (w Where) files() fileRule {
	if w.All {
		return lastParts(w.File)
	}
	return func(path string) bool { return tail(w.File, path) }
}

// tail reports whether the whole of either is the end of the other, as perf probe compares
// names of files: inode.c is the end of xfs_inode.c.
func tail(a, b string) bool {
	n := min(len(a), len(b))
	return a[len(a)-n:] == b[len(b)-n:]
}

// lastParts is SystemTap's rule: the pattern is for the whole path, or for the part after one of
// its slashes. fs/inode.c does not match fs/hugetlbfs/inode.c.
func lastParts(said string) fileRule {
	if !isGlob(said) {
		after := "/" + said
		return func(path string) bool { return path == said || strings.HasSuffix(path, after) }
	}
	return func(path string) bool { return glob(said, path) || glob("*/"+said, path) }
}

// glob compares as fnmatch does without flags: a star is slashes, too.
func glob(pattern, s string) bool {
	const slash = "\x00"
	return matches(strings.ReplaceAll(pattern, "/", slash), strings.ReplaceAll(s, "/", slash))
}
