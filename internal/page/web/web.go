// Package web has the page's files, and makes one HTML file of them.
//
// It must not know the program's answers.
package web

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/base64"
	"fmt"
	"strings"
)

//go:embed index.html *.css *.js
var files embed.FS

// scripts are the page's, in the order in which they run.
var scripts = []string{"program.js", "base.js", "ask.js", "machine.js", "watch.js", "lesson.js", "film.js", "explore.js", "drop.js", "links.js", "main.js"}

// Build makes the page of the program and of Go's wasm_exec.js, which must be of the same compiler.
func Build(wasm, wasmExec []byte) ([]byte, error) {
	parts := map[string]string{"wasm_exec.js": string(wasmExec)}
	for _, name := range []string{"style.css", "worker.js"} {
		if err := take(parts, name, name); err != nil {
			return nil, err
		}
	}
	for _, name := range scripts {
		if err := take(parts, "scripts", name); err != nil {
			return nil, err
		}
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(wasm); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	parts["wasm"] = base64.StdEncoding.EncodeToString(packed.Bytes())

	index, err := files.ReadFile("index.html")
	if err != nil {
		return nil, err
	}
	var fill []string
	for name, text := range parts {
		if strings.Contains(strings.ToLower(text), "</script") {
			return nil, fmt.Errorf("%s would end the script that it is put into", name)
		}
		fill = append(fill, "{{"+name+"}}", text)
	}
	return []byte(strings.NewReplacer(fill...).Replace(string(index))), nil
}

// take adds a file to a part.
func take(parts map[string]string, part, name string) error {
	b, err := files.ReadFile(name)
	parts[part] += string(b)
	return err
}
