package debian

import (
	"path/filepath"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
)

// Config has values of apt's configuration, by their whole names in small letters: apt.conf(5).
type Config map[string]string

// Configuration reads apt's configuration below root, as far as it can be read.
func Configuration(root string) Config {
	c := Config{}
	parts, _ := filepath.Glob(filepath.Join(root, "etc", "apt", "apt.conf.d", "*"))
	for _, name := range append(parts, filepath.Join(root, "etc", "apt", "apt.conf")) {
		if text, err := bounded.ReadFile(name, bounded.SourcesFile); err == nil {
			c.read(string(text))
		}
	}
	return c
}

// Bool returns a boolean value; otherwise is the default.
func (c Config) Bool(name string, otherwise bool) bool {
	value, ok := c[strings.ToLower(name)]
	if !ok {
		return otherwise
	}
	return !slices.Contains(off, strings.ToLower(value))
}

// read takes statements: a name and a value, or a name and statements in braces, each with a semicolon after it.
func (c Config) read(text string) {
	var scopes []string
	var name string
	for _, w := range confWords(text) {
		switch {
		case w == "{":
			scopes, name = append(scopes, name), ""
		case w == "}":
			scopes, name = scopes[:max(len(scopes)-1, 0)], ""
		case w == ";":
			name = ""
		case name == "":
			name = w
		default:
			c[strings.ToLower(strings.Join(append(slices.Clone(scopes), name), "::"))] = strings.Trim(w, `"`)
		}
	}
}

// confWords are the words of a configuration without its comments.
func confWords(text string) (words []string) {
	for text != "" {
		switch {
		case strings.HasPrefix(text, "//"), text[0] == '#':
			_, text, _ = strings.Cut(text, "\n")
		case strings.HasPrefix(text, "/*"):
			_, text, _ = strings.Cut(text, "*/")
		case strings.ContainsRune("{};", rune(text[0])):
			words, text = append(words, text[:1]), text[1:]
		case strings.ContainsRune(" \t\r\n", rune(text[0])):
			text = text[1:]
		case text[0] == '"':
			word, rest, _ := strings.Cut(text[1:], `"`)
			words, text = append(words, `"`+word+`"`), rest
		default:
			n := strings.IndexAny(text, " \t\r\n{};\"")
			if n < 0 {
				n = len(text)
			}
			words, text = append(words, text[:n]), text[n:]
		}
	}
	return words
}
