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
var scripts = []string{"program.js", "base.js", "ask.js", "run.js", "machine.js", "words.js", "bytes.js", "stage.js", "timeline.js", "watch.js", "lesson.js", "film.js", "explore.js", "drop.js", "links.js", "picture.js", "share.js", "early.js", "main.js"}

// styles are the page's, in their order.
var styles = []string{"style.css", "stage.css", "share.css", "early.css"}

// Texts are the page's texts that are made elsewhere.
type Texts struct {
	// Glossary is docs/glossary.md.
	Glossary []byte
	Lessons  []Lesson
	Planting Planting
}

// Build makes the page of the program and of Go's wasm_exec.js, which must be of the same compiler.
func Build(wasm, wasmExec []byte, texts *Texts) ([]byte, error) {
	words, err := meanings(texts.Glossary)
	if err != nil {
		return nil, err
	}
	parts := map[string]string{"wasm_exec.js": string(wasmExec), "glossary": string(words), "lessons": early(texts.Lessons), "planting": texts.Planting.figure()}
	for _, name := range styles {
		if err := take(parts, "style.css", name); err != nil {
			return nil, err
		}
	}
	if err := take(parts, "worker.js", "worker.js"); err != nil {
		return nil, err
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
