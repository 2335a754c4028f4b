package decoder

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sizeless are broadcasts whose size as does not check: no register has that size.
var sizeless = regexp.MustCompile(`^(vfpclassp.|vcvt(pd|u?qq)2ph) .*\{1to`)

// TestShortVectorsAreTheAssemblers: as, if installed, refuses an instruction by EVEX without
// AVX512VL exactly where our tables require it.
func TestShortVectorsAreTheAssemblers(t *testing.T) {
	as, err := exec.LookPath("as")
	if err != nil {
		t.Skip("there is no as here")
	}
	message := regexp.MustCompile(`:(\d+): Error: (.*)`)
	for _, e := range []Encoding{EncEvex0F, EncEvex0F38, EncEvex0F3A, EncEvex5, EncEvex6} {
		var list []Inst
		source := ".arch .noavx512vl\n"
		for _, b := range Forms(e) {
			i, err := Decode(b)
			require.NoError(t, err)
			text := strings.TrimPrefix(i.Text(0), "{evex} ")
			word, _, _ := strings.Cut(text, " ")
			if ext := i.Extensions(); newerThanAs[ext[0]] || slices.Contains(ext, "APX_F") || PrefixWord(word) || sizeless.MatchString(text) {
				continue
			}
			list = append(list, i)
			source += "{evex} " + text + "\n"
		}
		cmd := exec.Command(as, "--64", "-mmnemonic=att", "-o", t.TempDir()+"/a.o", "-")
		cmd.Stdin = strings.NewReader(source)
		out, _ := cmd.CombinedOutput()
		refused := map[int]string{}
		for _, m := range message.FindAllStringSubmatch(string(out), -1) {
			n, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			refused[n] = m[2]
		}
		var wrong []string
		for n := range list {
			if why, ext := refused[n+2], list[n].Extensions(); (why != "") != slices.Contains(ext, "AVX512VL") {
				wrong = append(wrong, fmt.Sprintf("%x %s: %v, as says %q", list[n].Bytes(), list[n].Text(0), ext, why))
			}
		}
		require.Empty(t, wrong, "%v: of %d", e, len(list))
		require.NotEmpty(t, refused)
	}
}
