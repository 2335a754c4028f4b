package definition

import (
	"strings"

	"kprobelab/profile"
)

// Show is the notation in which a value is printed.
type Show int

// The notations.
const (
	ShowUnsigned Show = iota
	ShowSigned
	ShowHex
	// ShowBareHex is hexadecimal without 0x.
	ShowBareHex
	// ShowChar prints 'c'.
	ShowChar
	// ShowSymbol prints an address as symbol+0xoffset/0xsize.
	ShowSymbol
	// ShowString prints "text", or (fault).
	ShowString
)

// Type is an argument type (struct fetch_type). Each type has one object, so two
// types are the same if their pointers are.
type Type struct {
	// Name is the type's name in a definition.
	Name string
	// Size is the value's size in the record, in bytes. For a string it is the size of its __data_loc.
	Size   int
	Signed bool
	Show   Show
	// Decl is the type in the format file.
	Decl string
	// Format is the conversion in the print format.
	Format string

	since profile.FetchTypes
}

// IsString reports whether the record holds a __data_loc.
func (t *Type) IsString() bool { return t.Show == ShowString }

const dataLoc = "__data_loc char[]"

// types are the kernel's (probe_fetch_types[]), by the release that brought
// them.
var types = []*Type{
	{"string", 4, true, ShowString, dataLoc, `\"%s\"`, profile.Types44},
	{"ustring", 4, true, ShowString, dataLoc, `\"%s\"`, profile.Types58},
	{"symstr", 4, true, ShowString, dataLoc, `\"%s\"`, profile.Types61},
	{"u8", 1, false, ShowUnsigned, "u8", "%u", profile.Types44},
	{"u16", 2, false, ShowUnsigned, "u16", "%u", profile.Types44},
	{"u32", 4, false, ShowUnsigned, "u32", "%u", profile.Types44},
	{"u64", 8, false, ShowUnsigned, "u64", "%Lu", profile.Types44},
	{"s8", 1, true, ShowSigned, "s8", "%d", profile.Types44},
	{"s16", 2, true, ShowSigned, "s16", "%d", profile.Types44},
	{"s32", 4, true, ShowSigned, "s32", "%d", profile.Types44},
	{"s64", 8, true, ShowSigned, "s64", "%Ld", profile.Types44},
	{"x8", 1, false, ShowHex, "u8", "0x%x", profile.Types49},
	{"x16", 2, false, ShowHex, "u16", "0x%x", profile.Types49},
	{"x32", 4, false, ShowHex, "u32", "0x%x", profile.Types49},
	{"x64", 8, false, ShowHex, "u64", "0x%Lx", profile.Types49},
	{"char", 1, false, ShowChar, "u8", "'%c'", profile.Types612},
	{"symbol", 8, false, ShowSymbol, "u64", "%pS", profile.Types58},
}

// types44 shows unsigned numbers in hexadecimal: the x types came later.
var types44 = func() []*Type {
	var list []*Type
	for _, t := range types {
		if t.since > profile.Types44 {
			continue
		}
		old := *t
		if old.Show == ShowUnsigned {
			old.Show, old.Format = ShowHex, strings.Replace("0x"+t.Format, "u", "x", 1)
		}
		list = append(list, &old)
	}
	return list
}()

// types33 shows unsigned numbers in hexadecimal without 0x, and prints integers of 4 bytes and more as long.
var types33 = func() []*Type {
	var list []*Type
	for _, t := range types44 {
		old := *t
		if long := map[string]string{"u32": "%lx", "u64": "%llx", "s32": "%ld", "s64": "%lld"}[t.Name]; long != "" {
			old.Format = long
		}
		if old.Show == ShowHex {
			old.Show, old.Format = ShowBareHex, strings.TrimPrefix(old.Format, "0x")
		}
		list = append(list, &old)
	}
	return list
}()

// findType finds a type by its name; a bitfield has the type of its container. It
// returns nil for an unknown name.
func findType(name string, set profile.FetchTypes) *Type {
	if strings.HasPrefix(name, "b") {
		_, container, ok := strings.Cut(name, "/")
		bits, err := kstrtoull(container, 0)
		if !ok || err != nil {
			return nil
		}
		name = map[uint64]string{8: "u8", 16: "u16", 32: "u32", 64: "u64"}[bits]
	}
	list := types
	switch set {
	case profile.Types33:
		list = types33
	case profile.Types44:
		list = types44
	}
	for _, t := range list {
		if t.Name == name && t.since <= max(set, profile.Types44) {
			return t
		}
	}
	return nil
}

// defaultType returns the type of an argument that names none: x64, or u64 before
// there were x types.
func defaultType(set profile.FetchTypes) *Type {
	if set == profile.Types44 {
		return findType("u64", set)
	}
	return findType("x64", set)
}
