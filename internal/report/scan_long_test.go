package report

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// blank is a list of so many bytes, in lines without a point.
type blank struct{ left int64 }

var blankLine = append(bytes.Repeat([]byte(" "), 1000), '\n')

func (b *blank) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(int64(len(p)), b.left)], blankLine)
	b.left -= int64(n)
	return n, nil
}

// A list of points has as many bytes as the bound says.
func TestListsThatAreTooLong(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads two gigabytes")
	}
	points, err := ReadPoints(&blank{bounded.ListFile})
	require.NoError(t, err)
	require.Empty(t, points)
	_, err = ReadPoints(&blank{bounded.ListFile + 1})
	require.ErrorContains(t, err, fmt.Sprintf("more than %d GiB", bounded.ListFile>>30))
}
