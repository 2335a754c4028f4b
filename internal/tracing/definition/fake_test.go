package definition_test

import (
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/definition"
)

// fakeKernel knows a handful of symbols. fn and twice are functions, mod is a
// loaded module with modfn in it.
type fakeKernel struct{}

func (fakeKernel) Entry(symbol string, offset int64) error {
	switch strings.TrimPrefix(symbol, "mod:") {
	case "fn", "twice", "modfn":
		if offset != 0 {
			return errno.EINVAL
		}
		return nil
	}
	return errno.ENOENT
}

func (fakeKernel) Count(symbol string) (int, bool) {
	module, name, in := strings.Cut(symbol, ":")
	if in && module != "mod" {
		return 0, false
	}
	if in {
		symbol = name
	}
	return map[string]int{"fn": 1, "twice": 2, "modfn": 1}[symbol], true
}

// fakeType is a C type: a pointer, an array, a structure or an integer.
type fakeType struct {
	target, elem *fakeType
	members      map[string]definition.Member
	size         int
	signed, char bool
}

func (f *fakeType) Target() (definition.CType, bool) { return f.target, f.target != nil }
func (f *fakeType) Elem() (definition.CType, bool)   { return f.elem, f.elem != nil }
func (f *fakeType) Int() (size int, signed, ok bool) { return f.size, f.signed, f.size > 0 }
func (f *fakeType) Char() bool                       { return f.char }
func (f *fakeType) Composite() bool                  { return f.members != nil }
func (f *fakeType) Member(name string) (m definition.Member, ok bool) {
	m, ok = f.members[name]
	return m, ok
}

var (
	charType = &fakeType{size: 1, signed: true, char: true}
	intType  = &fakeType{size: 4, signed: true}
	longType = &fakeType{size: 8}
	dentry   = &fakeType{members: map[string]definition.Member{
		"d_name": {Type: &fakeType{members: map[string]definition.Member{
			"name": {Type: &fakeType{target: charType}, Offset: 64},
		}}, Offset: 256},
		"flags": {Type: intType, Offset: 35, Bits: 5},
		"tiny":  {Type: &fakeType{size: 1}, Offset: 101, Bits: 2},
		"iname": {Type: &fakeType{elem: charType}, Offset: 512},
	}}
	file = &fakeType{members: map[string]definition.Member{
		"f_path": {Type: &fakeType{members: map[string]definition.Member{
			"dentry": {Type: &fakeType{target: dentry}, Offset: 64},
		}}, Offset: 128},
	}}
	mm   = &fakeType{members: map[string]definition.Member{"flags": {Type: longType, Offset: 128}}}
	task = &fakeType{members: map[string]definition.Member{
		"pid": {Type: intType, Offset: 32},
		"mm":  {Type: &fakeType{target: mm}, Offset: 64},
		"bit": {Type: intType, Offset: 35, Bits: 1},
	}}
)

// withoutTypes is a kernel of which no prototype is known.
type withoutTypes struct{ fakeKernel }

func (withoutTypes) Proto(string) (definition.Proto, bool) { return definition.Proto{}, false }

func (fakeKernel) Proto(symbol string) (definition.Proto, bool) {
	if symbol != "fn" {
		return definition.Proto{}, false
	}
	return definition.Proto{Params: []definition.Param{{Name: "file", Type: &fakeType{target: file}}, {Name: "n", Type: intType}, {Name: "len", Type: longType}}}, true
}

// TypeByID has characters where integers of 8 bytes look.
func (fakeKernel) TypeByID(id int) (definition.CType, bool) { return charType, id == 8 }

func (fakeKernel) Struct(name string) (definition.CType, bool) {
	t, ok := map[string]*fakeType{"file": file, "dentry": dentry, "task_struct": task, "mm_struct": mm}[name]
	return t, ok
}
