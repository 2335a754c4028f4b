package script

import (
	"path"
	"slices"
	"strings"

	"kprobelab/internal/ctype"
	"kprobelab/internal/debuginfo"
	"kprobelab/internal/script/host"
	"kprobelab/internal/script/stap"
	"kprobelab/internal/source"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// kernelOf answers scripts of every language about an image, with its types.
func kernelOf(info *debuginfo.Info, img *kimage.Image) (k host.Kernel, types *source.File, err error) {
	if types, err = info.Types(); err != nil {
		return k, nil, err
	}
	k = host.Kernel{
		HZ: int64(img.Profile().HZ), Source: types,
		Functions: func(pattern string) []host.Function { return functions(img, pattern) },
	}
	if img.Core() != nil {
		k.Program, k.Tracepoints = programs(img), tracepoints(types, img)
	}
	return k, types, nil
}

// stapKernel answers scripts of SystemTap's about an image.
func stapKernel(info *debuginfo.Info, img *kimage.Image) (*stap.Kernel, error) {
	shared, types, err := kernelOf(info, img)
	if err != nil {
		return nil, err
	}
	freed := initmem(img)
	k := &stap.Kernel{
		Kernel:  shared,
		Initmem: func(addr uint64) bool { return freed.Contains(x86.Addr(addr)) },
		Exported: func(name string) bool {
			return slices.ContainsFunc(img.Lookup(name), func(s kimage.Symbol) bool { return s.Type == 'T' || s.Type == 'W' })
		},
		Constant: func(name string) (int64, bool) {
			v, _, ok := types.Enumerator(name)
			return v, ok
		},
	}
	k.Source, k.HasLines, err = info.First()
	return k, err
}

// functions are the functions whose names fit a pattern.
func functions(img *kimage.Image, pattern string) (list []host.Function) {
	add := func(s *kimage.Symbol) {
		if s.IsFunction() {
			list = append(list, host.Function{Name: s.Name, Module: s.Module, Addr: uint64(s.Addr)})
		}
	}
	if !strings.ContainsAny(pattern, "*?[") {
		for _, s := range img.Lookup(pattern) {
			add(&s)
		}
		return list
	}
	symbols := img.Symbols()
	for i := range symbols {
		if ok, _ := path.Match(pattern, symbols[i].Name); ok {
			add(&symbols[i])
		}
	}
	return list
}

// tracepoints finds the tracepoints whose names fit a pattern, each once.
func tracepoints(types *source.File, img *kimage.Image) func(pattern string) []host.Tracepoint {
	var systems map[string]string
	return func(pattern string) (list []host.Tracepoint) {
		seen := map[string]bool{}
		if systems == nil {
			systems = map[string]string{}
			for _, e := range img.Events() {
				systems[e.Name] = e.System
			}
		}
		for _, tp := range img.Tracepoints() {
			if ok, _ := path.Match(pattern, tp.Name); !ok || seen[tp.Name] {
				continue
			}
			seen[tp.Name] = true
			list = append(list, host.Tracepoint{Name: tp.Name, System: systems[tp.Name], Params: tracepointParams(types, tp.Name)})
		}
		return list
	}
}

// initmem is the range that the kernel frees when it has booted. A symbol table without data tells of .init.text alone.
func initmem(img *kimage.Image) (r x86.Range) {
	for _, edges := range [][2]string{{"__init_begin", "__init_end"}, {"_sinittext", "_einittext"}} {
		from, to := img.Lookup(edges[0]), img.Lookup(edges[1])
		if len(from) > 0 && len(to) > 0 {
			return x86.Range{Start: from[0].Addr, End: to[0].Addr}
		}
	}
	return r
}

// tracepointParams are a tracepoint's parameters: of the function that calls its callbacks, which has
// their names, else of the callbacks' type.
func tracepointParams(types *source.File, name string) (list []ctype.Param) {
	_ = types.Places(source.Where{Function: "__traceiter_" + name}, func(p *source.Place) error {
		vars, err := p.Variables()
		for _, v := range vars {
			list = append(list, ctype.Param{Name: v.Name, Type: v.Type})
		}
		return err
	})
	if len(list) == 0 {
		if t, err := types.Named("btf_trace_" + name); err == nil {
			list = t.Signature()
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[1:] // the first is the callback's own data
}
