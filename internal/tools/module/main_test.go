package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOtherPathInFiles(t *testing.T) {
	const to = "example.org/x/kprobelab"
	for _, c := range []struct{ name, file, text, want string }{
		{"imports", "a.go", "package a\n\nimport (\n\t\"os\"\n\n\t\"kprobelab\"\n\t_ \"kprobelab/x86\" // \"kprobelab/x86\"\n)\n\nvar s = \"kprobelab/x86\"\n",
			"package a\n\nimport (\n\t\"os\"\n\n\t\"example.org/x/kprobelab\"\n\t_ \"example.org/x/kprobelab/x86\" // \"kprobelab/x86\"\n)\n\nvar s = \"kprobelab/x86\"\n"},
		{"other_module_of_the_same_beginning", "a.go", "package a\n\nimport \"kprobelabs/x86\"\n", "package a\n\nimport \"kprobelabs/x86\"\n"},
		{"text_of_a_program_in_tests", "testdata/main.go.txt", "package main\n\nimport \"kprobelab/run\"\n", "package main\n\nimport \"example.org/x/kprobelab/run\"\n"},
		{"file_that_does_not_parse", "a.go", "pack kprobelab", "pack kprobelab"},
		{"generator", "doc.go", "//go:generate go run kprobelab/internal/tools/x\npackage a\n", "//go:generate go run example.org/x/kprobelab/internal/tools/x\npackage a\n"},
		{"module", "go.mod", "module kprobelab\n\nrequire (\n\tkprobelabs v1.0.0\n\tkprobelab v0.0.0\n)\n", "module example.org/x/kprobelab\n\nrequire (\n\tkprobelabs v1.0.0\n\texample.org/x/kprobelab v0.0.0\n)\n"},
		{"module_below", "b/go.mod", "module kprobelab/b\n\nreplace kprobelab => ..\n", "module example.org/x/kprobelab/b\n\nreplace example.org/x/kprobelab => ..\n"},
		{"page", "a.md", "kprobelab run: go doc kprobelab/run, t/kprobelab/call\n\timport \"kprobelab\"\n", "kprobelab run: go doc example.org/x/kprobelab/run, t/kprobelab/call\n\timport \"example.org/x/kprobelab\"\n"},
		{"pattern_of_awk", "scripts/check.sh", `/ kprobelab\/interp( |$)/`, `/ example.org\/x\/kprobelab\/interp( |$)/`},
		{"anything_else", "a.txt", "kprobelab/run", "kprobelab/run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := renamed(c.file, []byte(c.text), "kprobelab", to)
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
			back, err := renamed(c.file, got, to, "kprobelab")
			require.NoError(t, err)
			require.Equal(t, c.text, string(back), "the way back")
		})
	}
}

func TestPathsThatNobodyCanGet(t *testing.T) {
	for _, p := range []string{"", "kprobe", "example.org/", "example.org//x", "-x", "example.org/a b", "/usr/bin:/bin", "Example.org/x", "example.org/..", "example.org/x;touch hit"} {
		_, err := rename(t.TempDir(), p)
		require.ErrorContains(t, err, "is no module path", p)
	}
}
