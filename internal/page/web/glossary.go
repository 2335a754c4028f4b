package web

import (
	"encoding/json"
	"regexp"
	"strings"
)

var (
	glossaryRow = regexp.MustCompile(`(?m)^\| \*\*(.+?)\*\* \| (.+?) \|$`)
	notation    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)|[*` + "`" + `]`)
)

// meanings makes JSON of a glossary's table: a meaning for each word. Words in one row that are separated by commas share it.
func meanings(table []byte) ([]byte, error) {
	all := map[string]string{}
	for _, row := range glossaryRow.FindAllStringSubmatch(string(table), -1) {
		for word := range strings.SplitSeq(row[1], ", ") {
			all[word] = notation.ReplaceAllString(row[2], "$1")
		}
	}
	for word, as := range map[string]string{"slot": "out-of-line slot", "instance": "maxactive"} {
		if all[as] != "" && all[word] == "" {
			all[word] = all[as]
		}
	}
	return json.Marshal(all)
}
