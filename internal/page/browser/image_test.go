package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/report"
	"kprobelab/kimage"
)

// kernelImage is a copy of a distribution's vmlinuz, without the configuration that lies
// beside it: a page is given one file.
func kernelImage(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	from := os.Getenv("KPROBELAB_VMLINUZ")
	if from == "" {
		list, err := filepath.Glob(filepath.Join(root, ".cache", "kernel", "*", "vmlinuz-*"))
		require.NoError(t, err)
		if len(list) == 0 {
			t.Skip("no image: name a vmlinuz in $KPROBELAB_VMLINUZ, or have one fetched by make kernel")
		}
		from = list[len(list)-1]
	}
	b, err := os.ReadFile(from)
	require.NoError(t, err)
	to := filepath.Join(t.TempDir(), filepath.Base(from))
	require.NoError(t, os.WriteFile(to, b, 0o600))
	return to
}

// point is a place, and scan's answer for it.
type point struct {
	Symbol    string
	Offset    int
	Errno     int
	Optimized bool
	Reason    string
}

// commandLine builds the program, without cgo.
func commandLine(t *testing.T) string {
	t.Helper()
	t.Setenv("KPROBELAB_CACHE", "off")
	program := filepath.Join(t.TempDir(), "kprobelab")
	build := exec.Command("go", "build", "-o", program, "./cmd/kprobelab")
	build.Env, build.Dir = append(os.Environ(), "CGO_ENABLED=0"), filepath.Join("..", "..", "..")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// points are n boundaries of functions, as the command line answers them.
func points(t *testing.T, image string, n int) (list []point) {
	t.Helper()
	program := commandLine(t)
	img, err := kimage.Open(image, nil)
	require.NoError(t, err)
	scan := report.NewScan(img)
	functions, err := scan.Functions()
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(17, 3))
	var text strings.Builder
	for range n {
		f := functions[random.IntN(len(functions))]
		for len(img.Lookup(f.Name)) != 1 { // a name that several functions have does not say which
			f = functions[random.IntN(len(functions))]
		}
		var offsets []int64
		for step := range kimage.NewWalker(scan.View, &scan.Profile.Decoder).Function(f) {
			if step.Err == nil && step.Addr.Sub(f.Addr) < 4096 {
				offsets = append(offsets, step.Addr.Sub(f.Addr))
			}
		}
		fmt.Fprintf(&text, "%s+%#x\n", f.Name, offsets[random.IntN(len(offsets))])
	}
	command := exec.Command(program, "scan", "--points", "-", "--json", image)
	command.Stdin, command.Stderr = strings.NewReader(text.String()), os.Stderr
	answer, err := command.Output()
	require.NoError(t, err)
	for line := range bytes.Lines(answer) {
		var p point
		require.NoError(t, json.Unmarshal(line, &p))
		list = append(list, p)
	}
	require.Len(t, list, n)
	return list
}

// A distribution's kernel, in each way in which a page can be given it, is answered as
// the command line answers it.
func TestARealKernelImage(t *testing.T) {
	image := kernelImage(t)
	all := points(t, image, 200)
	for name, give := range map[string]func(t *testing.T) context.Context{
		"chosen": func(t *testing.T) context.Context {
			ctx := tab(t, page(t)+"#ask?source=image")
			choose(t, ctx, image)
			return ctx
		},
		"dropped": func(t *testing.T) context.Context {
			ctx := tab(t, page(t)+"#watch")
			// The file comes from the input; the event is a drop's.
			eval[bool](t, ctx, `($("file").addEventListener("change", (e) => e.stopImmediatePropagation(), {capture: true, once: true}), true)`)
			choose(t, ctx, image)
			eval[bool](t, ctx, `(() => { const d = new DataTransfer(); d.items.add($("file").files[0]); return !document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: d, bubbles: true, cancelable: true})); })()`)
			return ctx
		},
		"served": func(t *testing.T) context.Context {
			ctx := tab(t, served(t, image)+"#ask?source=image")
			until(t, ctx, `!$("served").hidden`)
			eval[bool](t, ctx, `($("served").querySelector("button").click(), true)`)
			return ctx
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := give(t)
			until(t, ctx, fmt.Sprintf(`ask.open?.name === %q && $("status").textContent === "Ready"`, filepath.Base(image)))
			for _, p := range all {
				answer := eval[json.RawMessage](t, ctx, fmt.Sprintf(`question({do: "function", name: %q})`, p.Symbol))
				var f struct {
					Bytes []struct {
						Errno     int
						Optimized bool
						Rule      string
						Reasons   []struct{ ID string }
					}
				}
				require.NoError(t, json.Unmarshal(answer, &f))
				require.Greater(t, len(f.Bytes), p.Offset, p.Symbol)
				b := f.Bytes[p.Offset]
				require.Equal(t, p.Errno, b.Errno, "%+v", p)
				require.Equal(t, p.Optimized, b.Optimized, "%+v", p)
				switch {
				case p.Errno != 0:
					require.Equal(t, p.Reason, b.Rule, "%+v", p)
				case !p.Optimized:
					require.Equal(t, p.Reason, b.Reasons[0].ID, "%+v", p)
				}
			}
			picture(t, ctx, "kernel-"+name)

			// The kernel's own gcd, in a machine.
			eval[bool](t, ctx, `(location.hash = "watch?"+new URLSearchParams({image: ask.open.name, probes: "kprobe gcd+0x5", calls: "gcd(12, 18)"}), true)`)
			until(t, ctx, `watch.machine.view?.cpus[0].call === "gcd(12, 18)"`)
			require.Equal(t, filepath.Base(image), eval[string](t, ctx, `$("watch-image").value`))
			for eval[bool](t, ctx, `watch.machine.view.cpus[0].can && watch.machine.forward()`) {
			}
			require.Equal(t, "has returned 6", eval[string](t, ctx, `watch.machine.view.cpus[0].state`))
			picture(t, ctx, "machine-"+name)
		})
	}
}

// choose gives the page a file, as a reader chooses it.
func choose(t *testing.T, ctx context.Context, file string) {
	t.Helper()
	require.NoError(t, chromedp.Do(ctx, chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{file})))
}

// A file that is no image, or no longer one, gets a sentence; the page goes on.
func TestFilesThatAreNoImages(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, size int64, begins []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, begins, 0o600))
		require.NoError(t, os.Truncate(path, size))
		return path
	}
	files := map[string]struct {
		path func(t *testing.T) string
		says string
	}{
		"two_gigabytes": {func(*testing.T) string { return file("big", 2<<30, []byte("\x7fELF")) }, "at most 512 MB"},
		"all_it_takes":  {func(*testing.T) string { return file("zeros", 512<<20, []byte("\x7fELF\x02\x01\x01")) }, "zeros"},
		"empty":         {func(*testing.T) string { return file("none", 0, nil) }, "none"},
		"half_a_kernel": {func(t *testing.T) string {
			b, err := os.ReadFile(kernelImage(t))
			require.NoError(t, err)
			return file("half", int64(len(b)/2), b)
		}, "half"},
	}
	for name, f := range files {
		t.Run(name, func(t *testing.T) {
			path := f.path(t)
			for how, give := range map[string]func() context.Context{
				"chosen": func() context.Context {
					ctx := tab(t, page(t)+"#ask?source=image")
					choose(t, ctx, path)
					return ctx
				},
				"served": func() context.Context {
					ctx := tab(t, served(t, path)+"#ask?source=image")
					until(t, ctx, `!$("served").hidden`)
					eval[bool](t, ctx, `($("served").querySelector("button").click(), true)`)
					return ctx
				},
			} {
				ctx := give()
				until(t, ctx, `!$("error").hidden`)
				require.Contains(t, eval[string](t, ctx, `$("error").textContent`), f.says, how)
				require.True(t, eval[bool](t, ctx, goesOn), how)
			}
		})
	}
}
