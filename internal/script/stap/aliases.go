package stap

import (
	"fmt"
	"path"
	"strings"
	"sync"
)

// libraryAliases are the rows of aliasTable, by the first part of the alias's name.
var libraryAliases = sync.OnceValue(readAliases)

// aliasRow is an alias of the library: its name, and the probe's text.
type aliasRow struct{ name, text string }

func readAliases() map[string][]aliasRow {
	list := map[string][]aliasRow{}
	var row *aliasRow
	end := func() {
		if row == nil {
			return
		}
		row.text += "}\n"
		family, _, _ := strings.Cut(row.name, ".")
		list[family] = append(list[family], *row)
		row = nil
	}
	for _, line := range strings.Split(aliasTable, "\n") {
		switch {
		case line == "":
		case line[0] == '\t':
			row.text += aliasVariables(line[1:], "")
		default:
			end()
			row = aliasHead(line)
		}
	}
	end()
	return list
}

// aliasHead reads the line of a name and of the probe points.
func aliasHead(line string) *aliasRow {
	name, rest, _ := strings.Cut(line, " ")
	set := ""
	if strings.HasPrefix(rest, `"`) {
		set, rest, _ = strings.Cut(rest[1:], `" `)
		set = fmt.Sprintf(" name = %q\n", set)
	}
	separator, between := " | ", " !, "
	if strings.Contains(rest, " + ") {
		separator, between = " + ", " ?, "
	}
	var points []string
	for _, p := range strings.Split(rest, separator) {
		points = append(points, aliasPoint(p))
	}
	return &aliasRow{name: name, text: fmt.Sprintf("probe %s = %s {\n%s", name, strings.Join(points, between), set)}
}

// aliasPoint returns the probe point for a short form of aliasTable.
func aliasPoint(p string) string {
	kind, name, short := strings.Cut(p, ":")
	switch {
	case !short:
		return p
	case kind == "t":
		return fmt.Sprintf("kernel.trace(%q)", name)
	case kind == "r":
		return fmt.Sprintf("kernel.function(%q).return", name)
	}
	return fmt.Sprintf("kernel.function(%q)", name)
}

// aliasVariables returns the statements that set the variables of a line. x is the argument of a
// group, "" outside of groups.
func aliasVariables(line, x string) string {
	var b strings.Builder
	for _, one := range strings.Split(line, "; ") {
		if strings.HasPrefix(one, "{") {
			group, arg, _ := strings.Cut(strings.Trim(one, "{}"), " ")
			b.WriteString(aliasVariables(aliasGroups[group], arg))
			continue
		}
		name, value, _ := strings.Cut(one, "=")
		if x != "" {
			value = strings.NewReplacer("(X", "("+x, " X", " "+x).Replace(" " + value)
		}
		choices := strings.Split(value, " ?? ")
		value = choices[len(choices)-1]
		for i := len(choices) - 2; i >= 0; i-- {
			value = fmt.Sprintf("@choose_defined(%s, %s)", choices[i], value)
		}
		fmt.Fprintf(&b, " %s = %s\n", name, value)
	}
	return b.String()
}

// enterAliases adds the aliases of the library that a probe point may mean.
func (a *analysis) enterAliases(first string) {
	for family, rows := range libraryAliases() {
		if ok, _ := path.Match(first, family); !ok || a.entered[family] {
			continue
		}
		if a.entered == nil {
			a.entered = map[string]bool{}
		}
		a.entered[family] = true
		for _, row := range rows {
			a.aliases = append(a.aliases, libraryText(row.text).aliases...)
		}
	}
}

// libraryText reads a part of the library.
func libraryText(text string) *parsed {
	f := newFile("library", text)
	f.library = true
	out, p := parse(f, &Options{Guru: true}, shared())
	if p.problems != nil {
		panic("BUG: " + p.problems.Text() + text)
	}
	return out
}
