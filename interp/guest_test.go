package interp

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/tinyguest"
	"kprobelab/kimage"
	"kprobelab/machine"
)

var guestImage = sync.OnceValues(func() (*kimage.Image, error) {
	return kimage.Open("../testdata/guest.elf", nil)
})

// boot makes a machine that the test closes, and returns its engine, too.
func boot(t testing.TB, src machine.Source, o *machine.Options) (*machine.Machine, *engine) {
	t.Helper()
	var e machine.Engine
	m, err := machine.New(src, o, func(h *machine.Host) (_ machine.Engine, err error) {
		e, err = open(h)
		return e, err
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m, e.(*engine)
}

func bootGuest(t testing.TB, o *machine.Options) (*machine.Machine, *kimage.Image) {
	t.Helper()
	img, err := guestImage()
	require.NoError(t, err)
	m, _ := boot(t, img, o)
	return m, img
}

const (
	textBase = tinyguest.TextBase
	dataBase = tinyguest.DataBase + pageSize // that can be written
)

type traps = tinyguest.Traps

// tiny is an image of one function.
func tiny(code []byte) *tinyguest.Image {
	img := &tinyguest.Image{}
	img.Add("code", code...)
	return img
}
