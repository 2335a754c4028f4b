package aliases

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"kprobelab/internal/script/stap"
)

// tapset is the real library's text: its aliases and the macros of its files.
type tapset struct {
	aliases map[string][]written
	macros  map[string]string
}

// written is one alias as it is written: where it is, and its body.
type written struct{ points, body string }

var (
	comments   = regexp.MustCompile(`(?s)/\*.*?\*/|(?m)(?:#|//)[^\n"]*$`)
	older      = regexp.MustCompile(`(?s)%\( *systemtap_v *<=? *"[\d.]+" *%\?.*?(?:%:(.*?))?%\)`)
	newer      = regexp.MustCompile(`(?s)%\( *systemtap_v *>=? *"[\d.]+" *%\?(.*?)(?:%:.*?)?%\)`)
	macro      = regexp.MustCompile(`(?s)@define (\w+)(?:\([^)]*\))?\s*%\((.*?)\n?%\)`)
	aliasText  = regexp.MustCompile(`(?ms)^probe ([\w.]+)\s*=([^{]*)\{([^\n]*\}|.*?\n\})[ \t]*$`)
	assignment = regexp.MustCompile(`(?:^|[^\w$>.@])([A-Za-z_]\w*)\s*\.?=[^=]`)
	used       = regexp.MustCompile(`@(\w+)`)
	other      = regexp.MustCompile(`[\w*]+(?:\.[\w*]+)+`)
)

// readTapset reads all files of the folder, except for the files of other architectures.
func readTapset(folder string) (*tapset, error) {
	t := &tapset{aliases: map[string][]written{}, macros: map[string]string{}}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != folder && d.Name() != "linux" && d.Name() != "x86_64" {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".stp") && !strings.HasSuffix(path, ".stpm") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		t.read("\n" + string(b) + "\n")
		return nil
	})
	return t, err
}

func (t *tapset) read(text string) {
	text = comments.ReplaceAllString(text, "")
	// All conditions are about releases before the one that is compared.
	text = newer.ReplaceAllString(older.ReplaceAllString(text, "$1"), "$1")
	for _, m := range macro.FindAllStringSubmatch(text, -1) {
		t.macros[m[1]] += m[2]
	}
	for _, m := range aliasText.FindAllStringSubmatch(text, -1) {
		t.aliases[m[1]] = append(t.aliases[m[1]], written{m[2], m[3]})
	}
}

// variables returns the variables that are assigned by an alias and by the aliases at which it
// stands. If there is no separate alias for the return, the alias itself is used at the return.
// ok is false if there is no such alias.
func (t *tapset) variables(name string) (set variables, ok bool) {
	suffix := ""
	if base, ok := strings.CutSuffix(name, ".return"); ok && len(t.aliases[name]) == 0 {
		name, suffix = base, ".return"
	}
	set = variables{}
	t.gather(name, suffix, set, 0)
	return set, len(t.aliases[name]) > 0
}

// maxAliases bounds how deep aliases of aliases go.
const maxAliases = 8

// gather adds the variables of an alias; suffix follows the names of the aliases that it stands at.
func (t *tapset) gather(name, suffix string, set variables, depth int) {
	if depth > maxAliases {
		return
	}
	for _, a := range t.aliases[name] {
		for _, m := range assignment.FindAllStringSubmatch("\n"+t.expanded(a.body, 0), -1) {
			set[m[1]] = ""
		}
		for _, point := range other.FindAllString(a.points, -1) {
			if len(t.aliases[point+suffix]) > 0 {
				t.gather(point+suffix, "", set, depth+1)
			} else {
				t.gather(point, suffix, set, depth+1)
			}
		}
	}
}

// expanded is a body with the macros that it uses.
func (t *tapset) expanded(body string, depth int) string {
	if depth > maxAliases {
		return body
	}
	for _, m := range used.FindAllStringSubmatch(body, -1) {
		if text, ok := t.macros[m[1]]; ok {
			body += "\n" + t.expanded(text, depth+1)
		}
	}
	return body
}

// aliasOf are the aliases of functions that have another name.
var aliasOf = map[string]string{
	"newstat": "stat", "newlstat": "lstat", "newfstat": "fstat", "newfstatat": "fstatat", "newuname": "uname", "pread64": "pread",
	"pwrite64": "pwrite", "sendfile64": "sendfile", "getdents64": "getdents",
}

var (
	theirArgument = regexp.MustCompile(`(?m)^\s*(\w+) = (\w+)_arg\((\d)\)\s*$`)
	ourArgument   = regexp.MustCompile(`(?m)^ (\w+) = (\()?__syscall_arg\((\d)\)(.*)$`)
	width         = map[string]string{
		"int": "32 bits with a sign", "s32": "32 bits with a sign", "uint": "32 bits", "u32": "32 bits", "long": "64 bits", "ulong": "64 bits",
		"longlong": "64 bits", "ulonglong": "64 bits", "s64": "64 bits", "u64": "64 bits", "pointer": "64 bits",
	}
)

// arguments compares which argument of a system call a variable is, and how wide.
func (c *comparison) arguments(t *tapset) {
	for _, name := range stap.Syscalls() {
		alias := name
		if a, ok := aliasOf[name]; ok {
			alias = a
		}
		theirs := map[string][2]string{}
		for _, m := range theirArgument.FindAllStringSubmatch(t.macros["_SYSCALL_"+strings.ToUpper(alias)+"_REGARGS"], -1) {
			if _, twice := theirs[m[1]]; !twice {
				theirs[m[1]] = [2]string{m[3], width[m[2]]}
			}
		}
		for _, m := range ourArgument.FindAllStringSubmatch(stap.SyscallText(name), -1) {
			want, ok := theirs[m[1]]
			if !ok {
				continue
			}
			c.compared++
			mine := "64 bits"
			switch {
			case strings.Contains(m[4], ">> 32"):
				mine = "32 bits with a sign"
			case strings.Contains(m[4], "& 0xffffffff"):
				mine = "32 bits"
			}
			if want != [2]string{m[3], mine} {
				c.say(name, m[1], "argument "+m[3]+", "+mine+" here; argument "+want[0]+", "+want[1]+" there")
			}
		}
	}
}
