package explore

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed testdata/scenarios
var library embed.FS

const libraryDir = "testdata/scenarios"

// Library names the scenarios inside the program, in the order of their names.
func Library() []string {
	list, err := library.ReadDir(libraryDir)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	var names []string
	for _, e := range list {
		names = append(names, strings.TrimSuffix(e.Name(), ".poke"))
	}
	return names
}

// FromLibrary is a scenario of the program's own.
func FromLibrary(name string) (*Program, error) {
	text, err := library.ReadFile(libraryDir + "/" + name + ".poke")
	if err != nil {
		return nil, fmt.Errorf("there is no scenario %q", name)
	}
	return Compile(string(text))
}
