package explore

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"errors"
	"strings"

	"kprobelab/internal/bounded"
)

// Link packs a schedule into a part of an address: its scenario, profile, bugs and decisions, without the explanations.
func (s *Schedule) Link() string {
	plain := *s
	plain.Reason = ""
	plain.Lines = nil
	var b bytes.Buffer
	z, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		panic("BUG: " + err.Error()) // the level is a constant
	}
	head, body, _ := strings.Cut(plain.String(), "\n# \n\n")
	text := head + "\n" + strings.Join(s.Decisions(), "\n") + "\n" + body
	_, _ = z.Write([]byte(text)) // to memory
	_ = z.Close()
	return base64.RawURLEncoding.EncodeToString(b.Bytes())
}

var errLink = errors.New("the address has no whole schedule: it was cut, or changed")

// FromLink returns the text of the schedule that Link has packed.
func FromLink(link string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(link)
	if err != nil {
		return "", errLink
	}
	text, err := bounded.ReadAll(flate.NewReader(bytes.NewReader(b)), MaxSchedule)
	if err != nil {
		return "", errLink
	}
	return string(text), nil
}
