package machine_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/tinyguest"
	"kprobelab/interp"
	. "kprobelab/machine"
)

// opener makes a machine on an engine.
type opener struct {
	name string
	open func(Source, *Options) (*Machine, error)
	// models returns the names of the CPUs that it emulates.
	models func() []string
}

// engines are the engines of this build: every test runs on each, one after the other.
var engines = []opener{{"interp", interp.New, interp.CPUModels}}

var engine opener

func open(src Source, o *Options) (*Machine, error) { return engine.open(src, o) }

func TestMain(m *testing.M) {
	code := 0
	for _, engine = range engines {
		fmt.Println("engine:", engine.name)
		code = max(code, m.Run())
	}
	os.Exit(code)
}

// ofUnicorn skips a test about Unicorn's own needs on other engines.
func ofUnicorn(t *testing.T) {
	if engine.name != "unicorn" {
		t.Skip("this is about Unicorn")
	}
}

// boot makes a machine of the image that the test closes.
func boot(t testing.TB, img Source, o *Options) *Machine {
	t.Helper()
	m, err := open(img, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

const (
	textBase = tinyguest.TextBase
	dataBase = tinyguest.DataBase
)

type (
	tinyImage = tinyguest.Image
	trapFuncs = tinyguest.Traps
)
