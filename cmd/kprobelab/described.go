package main

import (
	"embed"
	"strings"
)

// The descriptions of the commands: a file each, and the parts that several have.
//
//go:embed help/*.txt help/*.part
var helpFiles embed.FS

// described is the description of a command. In its file, {exit codes} and {image} stand for parts, {paths} for the
// paths of bench.
func described(command string) string {
	text := helpFile(strings.ReplaceAll(command, " ", "-") + ".txt")
	return strings.NewReplacer(
		"{exit codes}", helpFile("exit-codes.part"), "{image}", helpFile("image.part"), "{paths}", benchPaths(),
	).Replace(text)
}

// helpFile is a file of help; a name that is not there is a fault of the program's.
func helpFile(name string) string {
	text, err := helpFiles.ReadFile("help/" + name)
	if err != nil {
		panic(err)
	}
	return string(text)
}
