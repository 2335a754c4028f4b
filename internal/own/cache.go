package own

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/kimage"
)

// CacheVariable is the environment variable that names the folder in which answers
// are kept; "off" keeps none. Without it, that is kprobelab in the user's cache
// folder.
const CacheVariable = "KPROBELAB_CACHE"

// Measured returns the answers of Measure, from the cache if the image was measured
// before. An image is recognised by its build id and its text.
func Measured(img *kimage.Image) ([]kimage.Answer, error) {
	if !askable(img) {
		return nil, nil
	}
	path := cachePath(img)
	if answers := readCache(path); answers != nil {
		return answers, nil
	}
	answers, err := Measure(img)
	if err == nil && len(answers) > 0 {
		writeCache(path, answers)
	}
	return answers, err
}

// cachePath returns the path of an image's answers in the cache; "" if they are not kept.
func cachePath(img *kimage.Image) string {
	id := img.BuildID()
	if id == "" {
		return ""
	}
	dir := os.Getenv(CacheVariable)
	switch dir {
	case "off":
		return ""
	case "":
		user, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(user, "kprobelab")
	}
	return filepath.Join(dir, "measured", fmt.Sprintf("%s-%.8x-%d.json", id, textSum(img), Version))
}

// textSum is of all that decides the answers: the code and the symbols.
func textSum(img *kimage.Image) []byte {
	h := sha256.New()
	for _, s := range img.Sections() {
		if s.Alloc && s.Exec {
			fmt.Fprintln(h, s.Name, s.Addr, len(s.Data))
			h.Write(s.Data)
		}
	}
	for _, name := range asked {
		for _, s := range img.Lookup(name) {
			fmt.Fprintln(h, name, s.Addr, s.Size)
		}
	}
	return h.Sum(nil)
}

// kept is the form of a file.
type kept struct {
	Version int             `json:"version"`
	Answers []kimage.Answer `json:"answers"`
}

// readCache reads a file of answers. Whatever is wrong with it, there are none, and
// the image is asked again.
func readCache(path string) []kimage.Answer {
	if path == "" {
		return nil
	}
	if bounded.Ours(filepath.Dir(path)) != nil || bounded.Ours(path) != nil {
		return nil
	}
	b, err := bounded.ReadFile(path, bounded.AnswersFile)
	if err != nil {
		return nil
	}
	var k kept
	if json.Unmarshal(b, &k) != nil || k.Version != Version || len(k.Answers) > bounded.Answers || slices.ContainsFunc(k.Answers, odd) {
		return nil
	}
	return k.Answers
}

// odd reports whether an answer cannot have been written here: it will be printed.
func odd(a kimage.Answer) bool {
	return slices.ContainsFunc([]string{a.Field, a.Value, a.Evidence}, func(s string) bool {
		return s == "" || len(s) > bounded.AnswerText || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
	})
}

// writeCache keeps the answers, all or nothing. Where that is not possible, the
// next one asks again.
func writeCache(path string, answers []kimage.Answer) {
	b, err := json.Marshal(kept{Version, answers})
	if path == "" || err != nil || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return
	}
	_, err = f.Write(b)
	if closed := f.Close(); err != nil || closed != nil || os.Rename(f.Name(), path) != nil {
		_ = os.Remove(f.Name()) // nothing more can be done about it
	}
}
