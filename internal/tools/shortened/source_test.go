package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTestsThatAreShortened(t *testing.T) {
	const head = "package x\nimport (\n\"testing\"\n\"m/integration/dumps\"\nruns \"m/integration/dumps/runs\"\n\"pgregory.net/rapid\"\n)\n"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"asks":                 {"func TestA(t *testing.T) { if testing.Short() { t.Skip() } }\nfunc TestB(t *testing.T) {}", []string{"TestA"}},
		"by_a_function":        {"func TestA(t *testing.T) { t.Run(\"x\", func(t *testing.T) { one() }) }\nfunc one() { two() }\nfunc two() { _ = testing.Short() }", []string{"TestA"}},
		"by_a_method":          {"func TestA(t *testing.T) { h().run() }\ntype x struct{}\nfunc (x) run() { _ = testing.Short() }\nfunc h() x { return x{} }", []string{"TestA"}},
		"by_a_variable":        {"func TestA(t *testing.T) { _ = n }\nvar n = func() int { if testing.Short() { return 1 }; return 2 }()", []string{"TestA"}},
		"as_a_value":           {"func TestA(t *testing.T) { f := testing.Short; f() }", []string{"TestA"}},
		"functions_in_circles": {"func TestA(t *testing.T) { one() }\nfunc one() { two() }\nfunc two() { one() }", nil},
		"a_dump":               {"func TestA(t *testing.T) { dumps.File(t, \"6.1\") }\nfunc TestB(t *testing.T) { runs.File(t, \"6.1\") }", []string{"TestA", "TestB"}},
		"names_of_dumps_alone": {"func TestA(t *testing.T) { _ = dumps.Kernels }", nil},
		"fewer_checks":         {"func TestA(t *testing.T) { rapid.Check(t, func(*rapid.T) {}) }\nfunc TestB(t *testing.T) { _ = rapid.Int() }", []string{"TestA"}},
		"fuzz_and_example":     {"func FuzzA(f *testing.F) { _ = testing.Short() }\nfunc Example() { _ = testing.Short() }\nfunc Testing() { _ = testing.Short() }", []string{"Example", "FuzzA"}},
		"scripts":              {"func TestA(t *testing.T) { run(\"testdata/a\") }\nfunc TestB(t *testing.T) { run(\"testdata/b\") }", []string{"TestA"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"x_test.go": head + c.text, "testdata/a/s.txtar": "[!short] exec x\n", "testdata/b/s.txtar": "exec x\n"} {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o777))
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666))
			}
			found, err := tests(dir)
			require.NoError(t, err)
			require.Equal(t, c.want, found)
		})
	}
}
