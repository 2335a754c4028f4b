// Command page makes the page: one HTML file that has the program in it.
//
//	page -o FILE
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"kprobelab/internal/page"
	"kprobelab/internal/page/web"
)

func main() {
	out := flag.String("o", "bin/kprobelab.html", "the `FILE` to write")
	flag.Parse()
	if err := build(*out); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

func build(out string) error {
	dir, err := os.MkdirTemp("", "kprobelab-page-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "kprobelab.wasm")
	compile := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, "./internal/page/wasm")
	compile.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=js", "GOARCH=wasm")
	compile.Stdout, compile.Stderr = os.Stderr, os.Stderr
	if err := compile.Run(); err != nil {
		return fmt.Errorf("the program does not build for js/wasm: %w", err)
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	support, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return fmt.Errorf("the JavaScript that comes with Go: %w", err)
	}
	glossary, err := os.ReadFile(filepath.Join("docs", "glossary.md"))
	if err != nil {
		return err
	}
	var lessons []web.Lesson
	if err := json.Unmarshal([]byte((&page.Page{}).Answer(`{"do":"lessons"}`, nil)), &lessons); err != nil {
		return fmt.Errorf("the lessons' texts: %w", err)
	}
	planting, err := planting()
	if err != nil {
		return err
	}
	html, err := web.Build(wasm, support, &web.Texts{Glossary: glossary, Lessons: lessons, Planting: *planting})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
		return err
	}
	return os.WriteFile(out, html, 0o666)
}
