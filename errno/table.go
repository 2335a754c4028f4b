package errno

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

//go:embed table.txt
var table string

// name holds the name and the text of an error.
type name struct {
	name string
	text string // of strerror, "" if the C library has none
}

// names is the table by number.
var names = sync.OnceValue(func() map[Errno]name {
	m := map[Errno]name{}
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		n, err := strconv.Atoi(f[0])
		if err != nil || len(f) != 3 {
			panic(fmt.Sprintf("BUG: errno/table.txt: %q", line))
		}
		text := f[2]
		if text == "-" {
			text = ""
		}
		m[Errno(n)] = name{f[1], text}
	}
	return m
})
