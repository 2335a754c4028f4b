package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kprobelab/hostfiles"
)

// Surroundings hold the place of a program of the host in the guest: its folder, more environment, and the files
// that it writes for its caller.
type Surroundings struct {
	Dir  string
	Env  []string
	Outs []Out
}

// Surround adds the host's current folder to the files of a program that is to begin there, and returns the
// surroundings. If whole is set it is the folder with everything below it; hidden folders and folders with a CACHEDIR.TAG
// (Cargo's target, caches) are left out. If whole is not set, only a test program of Go has surroundings, as `go test
// -exec` starts it: the files of its package, the folder testdata, and the profiles and coverage that its flags name.
func Surround(s *hostfiles.Set, args []string, whole bool) (around Surroundings, err error) {
	test := isGoTest(args)
	if !whole && !test {
		return around, nil
	}
	if around.Dir, err = os.Getwd(); err != nil {
		return around, err
	}
	if test {
		around.Env = named(os.Environ(), goVariables)
		around.Outs = goOuts(args[1:], around.Dir)
		for _, o := range around.Outs {
			if err := s.AddFolder(o.folder()); err != nil {
				return around, err
			}
		}
	}
	around.Env = append(around.Env, "PWD="+around.Dir)
	return around, s.AddSome(around.Dir, around.Dir, func(inside string) bool {
		if whole {
			return !remade(around.Dir, inside)
		}
		return inside == "testdata" || strings.HasPrefix(inside, "testdata/")
	})
}

// remade reports whether a folder holds only files that a program can make again, or its name begins with a dot.
func remade(dir, inside string) bool {
	if strings.HasPrefix(filepath.Base(inside), ".") {
		return true
	}
	info, err := os.Lstat(filepath.Join(dir, inside, "CACHEDIR.TAG"))
	return err == nil && info.Mode().IsRegular()
}

// goVariables are read by each program of Go's before its main.
var goVariables = []string{"GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GORACE", "GOTRACEBACK"}

// isGoTest reports whether a command line is the one that the go command makes for the program of a package's tests.
func isGoTest(args []string) bool {
	return len(args) > 1 && strings.HasSuffix(args[0], ".test") && strings.HasPrefix(args[1], "-test.")
}

// goFiles are the flags of a test program whose values are files that it writes (go help testflag).
var goFiles = []string{"blockprofile", "coverprofile", "cpuprofile", "memprofile", "mutexprofile", "trace"}

// goOuts lists the files that the flags of a test program name. A file's path is relative to the folder of
// -test.outputdir, or else to the program's own.
func goOuts(flags []string, dir string) (outs []Out) {
	values := map[string]string{}
	for _, flag := range flags {
		if name, value, ok := strings.Cut(strings.TrimPrefix(flag, "-test."), "="); ok && strings.HasPrefix(flag, "-test.") {
			values[name] = value
		}
	}
	if v := values["gocoverdir"]; v != "" {
		v = inFolder(dir, v)
		outs = append(outs, Out{Guest: v, Host: v, ifThere: true, isFolder: true})
	}
	below := inFolder(dir, values["outputdir"])
	for _, name := range goFiles {
		if v := values[name]; v != "" {
			v = inFolder(below, v)
			outs = append(outs, Out{Guest: v, Host: v, ifThere: true})
		}
	}
	return outs
}

// inFolder returns the path of a file: name itself if it is absolute.
func inFolder(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// folder is the folder of the guest that must be there before the program can write.
func (o Out) folder() string {
	if o.isFolder {
		return o.Guest
	}
	return filepath.Dir(o.Guest)
}

// Environment reads the values of --env: NAME=VALUE, or as docker has it NAME, which has the host's value if the host has
// one. A NAME may end in *: all variables that begin so, in the order of their names.
func Environment(list, host []string) (env []string, err error) {
	for _, text := range list {
		name, _, given := strings.Cut(text, "=")
		stem := strings.TrimSuffix(name, "*")
		switch {
		case stem == "" || strings.Contains(stem, "*") && !given:
			return nil, misused("--env %q: want NAME=VALUE, NAME of the host's environment, or NAME*", text)
		case given:
			env = append(env, text)
		default:
			env = append(env, named(host, []string{name})...)
		}
	}
	return env, nil
}

// Latest is an environment with one value for each name, the last one: programs do not agree on which of two counts.
func Latest(env []string) (list []string) {
	at := map[string]int{}
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if i, there := at[name]; there {
			list[i] = v
			continue
		}
		at[name] = len(list)
		list = append(list, v)
	}
	return list
}

// named returns the variables of an environment with these names, sorted.
func named(host, names []string) (env []string) {
	for _, v := range host {
		name, _, _ := strings.Cut(v, "=")
		for _, want := range names {
			stem, all := strings.CutSuffix(want, "*")
			if name == want || all && strings.HasPrefix(name, stem) {
				env = append(env, v)
				break
			}
		}
	}
	slices.Sort(env)
	return env
}

// there reports whether the guest has the file; of a file that must be there it is not asked.
func (o Out) there(has func(string) bool) bool { return !o.ifThere || has(o.Guest) }
