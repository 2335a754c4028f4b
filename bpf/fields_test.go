package bpf_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/bpf"
	"kprobelab/bpf/answer"
	"kprobelab/internal/ctype"
	"kprobelab/internal/integration/dumps/runs"
)

// fieldsObject asks in each of the ways of CO-RE: a member that is not there is guarded.
func fieldsObject() []byte {
	guards := asking("fsync", []uint32{1, 4}, record{0, 3, "0:0", fieldExists}, record{0, 3, "0:0", fieldOffset})
	// if r1 == 0 goto the end, past the instruction that wants the member
	guards.code = [][8]byte{guards.code[0], {0x15, 1, 1, 0, 0, 0, 0, 0}, guards.code[1], returnZero, exit}
	guards.lines = append(guards.lines, "if (there)")
	guards.records[1].instruction = 2
	return object{[]program{
		asking("read", []uint32{8, 16, 1}, record{0, 3, "0:1", fieldOffset}, record{0, 3, "0:2", fieldOffset}, record{0, 5, "0", typeExists}),
		guards,
	}}.build()
}

func fieldsOf(a *answer.Object) map[string]answer.Field {
	m := map[string]answer.Field{}
	for _, f := range a.Fields {
		m[f.Kind+" "+f.Name] = f
	}
	return m
}

// TestFieldsOfTheKernels: CO-RE's answers about fields are those of each kernel's own BTF, as another reader reads it.
func TestFieldsOfTheKernels(t *testing.T) {
	eachKernel(t, fieldsObject(), nil, func(t *testing.T, l *kprobelab.Lab, a *answer.Object) {
		raw, _ := l.Image.BTF()
		types, err := ctype.ReadBTF(raw, nil)
		require.NoError(t, err)
		offset := func(member string) int {
			for s := range types.Named("task_struct") {
				if m, ok := s.Member(member); ok {
					return int(m.Offset)
				}
			}
			require.Fail(t, member)
			return 0
		}
		for _, p := range a.Programs {
			require.True(t, p.Loads, "%+v", p)
		}
		got := fieldsOf(a)
		require.Len(t, got, 4)
		pid := got["field task_struct.pid"]
		require.Equal(t, answer.Present, pid.Found)
		require.Equal(t, offset("pid"), *pid.Offset)
		require.Equal(t, []string{"read"}, pid.Programs)
		require.False(t, pid.Guarded)
		tgid := got["field task_struct.tgid"]
		require.Equal(t, answer.OtherType, tgid.Found)
		require.Equal(t, offset("tgid"), *tgid.Offset)
		require.Equal(t, [2]string{"pid_t", "long int"}, [2]string{tgid.Type, tgid.Wanted})
		require.True(t, tgid.Relocated)
		nosuch := got["field task_struct.nosuch"]
		require.Equal(t, answer.Absent, nosuch.Found)
		require.True(t, nosuch.Guarded)
		require.Nil(t, nosuch.Offset)
		require.Equal(t, answer.Absent, got["type nosuch"].Found)
		require.True(t, got["type nosuch"].Guarded)
	})
}

// ownTypes is BTF with a task_struct of its own: pid is at 1000, and nosuch at 1004.
func ownTypes() []byte {
	var text table
	var types, all bytes.Buffer
	put(&types, text.add("int"), 1<<24, 4, 1<<24|32)
	put(&types, text.add("task_struct"), 4<<24|2, 2000, text.add("pid"), 1, 8000, text.add("nosuch"), 1, 8032)
	put(&all, 0xeb9f|1<<16, 24, 0, uint32(types.Len()), uint32(types.Len()), uint32(text.Len()))
	all.Write(types.Bytes())
	all.Write(text.Bytes())
	return all.Bytes()
}

// TestTypesOfAFile: with --btf, the types of the file are the kernel's, for the kernel that is named, and for each other one.
func TestTypesOfAFile(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "own.btf")
	require.NoError(t, os.WriteFile(own, ownTypes(), 0o600))
	file := runs.File(t, "6.1")
	find := func(context.Context, string) (string, error) { return file, nil }
	o := options(t)
	require.NoError(t, o.AddTypes("second="+own))
	table, err := bpf.Ask(t.Context(), "x.o", fieldsObject(), []string{"first", "second"}, find, o)
	require.NoError(t, err)
	first, second := fieldsOf(&answer.Object{Fields: table.Columns[0].Fields}), fieldsOf(&answer.Object{Fields: table.Columns[1].Fields})
	require.NotEqual(t, 1000, *first["field task_struct.pid"].Offset)
	require.Equal(t, 1000, *second["field task_struct.pid"].Offset)
	require.Equal(t, 1004, *second["field task_struct.nosuch"].Offset)
	require.Equal(t, answer.Absent, first["field task_struct.nosuch"].Found)
	require.Equal(t, answer.Absent, second["field task_struct.tgid"].Found)
	for i, want := range []bool{true, false} { // the second has no tgid
		require.Equal(t, "read", table.Columns[i].Programs[1].Name)
		require.Equal(t, want, table.Columns[i].Programs[1].Loads)
	}
	var out bytes.Buffer
	require.NoError(t, table.Text(&out, false))
	require.Regexp(t, `(?m)^task_struct.pid +present \+\d+ +moved \+1000$`, out.String())
	require.Regexp(t, `(?m)^task_struct.nosuch +absent, guarded +present \+1004$`, out.String())
	require.Regexp(t, `(?m)^task_struct.tgid +another type \+\d+ +absent$`, out.String())
}

// TestTypesThatAreNone: an error that names the file, and nothing of a file without end.
func TestTypesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string][]byte{"empty": nil, "text": []byte("int x;"), "other_order": {0xeb, 0x9f, 0, 1}} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, data, 0o600))
		o := &bpf.Options{}
		require.ErrorIs(t, o.AddTypes(file), bpf.ErrTypes, name)
		require.ErrorContains(t, o.AddTypes("6.1="+file), file)
	}
	require.Error(t, new(bpf.Options).AddTypes(filepath.Join(dir, "absent")))
	damaged := ownTypes()
	binary.LittleEndian.PutUint32(damaged[12:], 1<<31)
	o := options(t)
	o.KernelTypes = map[string][]byte{"": damaged}
	dump := runs.File(t, "6.1")
	_, err := bpf.Ask(t.Context(), "x.o", fieldsObject(), []string{"6.1"}, func(context.Context, string) (string, error) { return dump, nil }, o)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "\n")
	require.ErrorContains(t, err, "--btf")
}
