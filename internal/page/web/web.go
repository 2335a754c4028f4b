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
	"html"
	"strings"
)

//go:embed index.html *.css *.js
var files embed.FS

// scripts are the page's, in the order in which they run.
var scripts = []string{"program.js", "base.js", "ask.js", "run.js", "machine.js", "words.js", "bytes.js", "stage.js", "timeline.js", "watch.js", "lesson.js", "film.js", "explore.js", "drop.js", "links.js", "picture.js", "share.js", "early.js", "main.js"}

// styles are the page's, in their order.
var styles = []string{"style.css", "stage.css", "share.css"}

// Lesson is a lesson's text, which the page has before its program runs.
type Lesson struct {
	Title string   `json:"title"`
	Text  []string `json:"text"`
}

// early is the lessons' text as HTML.
func early(lessons []Lesson) string {
	var b strings.Builder
	for n, l := range lessons {
		fmt.Fprintf(&b, "<article data-lesson=\"%d\"><h3>%d. %s</h3>\n", n+1, n+1, html.EscapeString(l.Title))
		for _, t := range l.Text {
			fmt.Fprintf(&b, "<p>%s</p>\n", html.EscapeString(t))
		}
		b.WriteString("</article>\n")
	}
	return b.String()
}

// Build makes the page of the program and of Go's wasm_exec.js, which must be of the same compiler. glossary is docs/glossary.md.
func Build(wasm, wasmExec, glossary []byte, lessons ...Lesson) ([]byte, error) {
	words, err := meanings(glossary)
	if err != nil {
		return nil, err
	}
	parts := map[string]string{"wasm_exec.js": string(wasmExec), "glossary": string(words), "lessons": early(lessons)}
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
