package explore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScenariosByName(t *testing.T) {
	name := Library()[0]
	p, err := Open(name, nil)
	require.NoError(t, err)
	require.Equal(t, name, p.Scenario().Name)

	bug := Switches()[0]
	p, err = Open("", []string{bug.ID})
	require.NoError(t, err)
	require.Equal(t, bug.Scenario, p.Scenario().Name)

	_, err = Open("nosuch", nil)
	require.ErrorIs(t, err, ErrNone)
	_, err = Open("", []string{"nosuch"})
	require.Error(t, err)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("no scenario"), 0o600))
	_, err = Open(file, nil)
	require.ErrorContains(t, err, file+": ")
}

func TestReports(t *testing.T) {
	bug := Switches()[0]
	p, err := Open("", []string{bug.ID})
	require.NoError(t, err)
	kernel, err := Kernel("", []string{bug.ID})
	require.NoError(t, err)
	res, err := p.Explore(t.Context(), Options{Profile: kernel, Bound: 2})
	require.NoError(t, err)
	var text, json strings.Builder
	r := p.Report(kernel, []string{bug.ID}, 2, res)
	require.NoError(t, r.WriteText(&text))
	require.NoError(t, r.WriteJSON(&json))
	require.NotEqual(t, OK, r.Verdict)
	require.Contains(t, text.String(), "up to 2 switches")
	require.Contains(t, text.String(), string(r.Verdict)+": "+r.Reason)
	require.Contains(t, json.String(), `"verdict":"`+string(r.Verdict)+`"`)
	require.NotEmpty(t, r.Schedule)
}
