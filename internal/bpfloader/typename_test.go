//go:build linux

package main

import (
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// TestTypesThatLeadToThemselves: a damaged object's types have no end, and each question about them has.
func TestTypesThatLeadToThemselves(t *testing.T) {
	p := &btf.Pointer{}
	p.Target = p
	a := &btf.Array{Nelems: 1}
	a.Type = a
	s := &btf.Struct{Name: "s"}
	s.Members = []btf.Member{{Type: s}}
	require.Contains(t, typeName(p), "*")
	require.Contains(t, typeName(a), "[1]")
	require.True(t, alike(p, p))
	require.True(t, alike(a, a))
	_, _, ok := member(s, "x", 0)
	require.False(t, ok)
}

func TestNamesOfTypes(t *testing.T) {
	i := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	u := &btf.Int{Name: "unsigned int", Size: 4}
	s := &btf.Struct{Name: "s___old"}
	for want, typ := range map[string]btf.Type{
		"int": i, "struct s *": &btf.Pointer{Target: &btf.Const{Type: s}}, "int [3]": &btf.Array{Type: i, Nelems: 3}, "void *": &btf.Pointer{Target: &btf.Void{}},
		"u32": &btf.Typedef{Name: "u32", Type: u}, "function *": &btf.Pointer{Target: &btf.FuncProto{}}, "union {}": &btf.Union{},
	} {
		require.Equal(t, want, typeName(typ))
	}
	require.False(t, alike(i, u))
	require.True(t, alike(&btf.Typedef{Type: u}, u))
	require.True(t, alike(&btf.Pointer{Target: &btf.Struct{Name: "s"}}, &btf.Pointer{Target: s}), "a flavour")
	require.False(t, alike(&btf.Pointer{Target: &btf.Struct{Name: "other"}}, &btf.Pointer{Target: s}))
	require.True(t, alike(&btf.Pointer{Target: &btf.Void{}}, &btf.Pointer{Target: s}))
	require.False(t, alike(&btf.Array{Type: i, Nelems: 3}, &btf.Array{Type: i, Nelems: 4}))
	require.False(t, alike(i, &btf.Pointer{Target: s}))
}
