package bpftrace

import (
	"fmt"
	"strings"
)

// Language is a version of bpftrace's language. The zero value is the older one.
type Language uint8

const (
	// Language23 is the language of bpftrace 0.23.2.
	Language23 Language = iota
	// Language27 is the language of bpftrace 0.27.1.
	Language27
)

// languages maps the names of versions to the language that they have here.
var languages = map[string]Language{"0.23": Language23, "0.27": Language27}

// LanguageOf returns the language of a version's name.
func LanguageOf(version string) (Language, error) {
	l, ok := languages[version]
	if !ok {
		return 0, fmt.Errorf("language %q: the languages are 0.23 and 0.27", version)
	}
	return l, nil
}

// newest reports whether the script is read as 0.27 reads it.
func (l Language) newest() bool { return l == Language27 }

// Parameters parts the arguments of a script into positional ones and named ones, --NAME or --NAME=VALUE, which 0.27 has.
func Parameters(args []string, l Language) (positional, named []string) {
	if !l.newest() {
		return args, nil
	}
	for _, a := range args {
		if name, ok := strings.CutPrefix(a, "--"); ok && name != "" {
			named = append(named, name)
		} else if a != "--" {
			positional = append(positional, a)
		}
	}
	return positional, named
}

// Syntax reports whether the script could not be read: its words are not those of the language.
func (p *Problems) Syntax() bool {
	for _, one := range p.list {
		if strings.HasPrefix(one.Message, "syntax") || strings.HasPrefix(one.Message, "Invalid probe type") {
			return true
		}
	}
	return false
}
