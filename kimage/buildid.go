package kimage

import (
	"encoding/hex"
	"strings"
)

// noteBuildID is NT_GNU_BUILD_ID.
const noteBuildID = 3

// maxBuildID is more than any linker writes (a SHA-1 has 20 bytes).
const maxBuildID = 64

// BuildID is the linker's fingerprint of the image in hexadecimal, "" if it has none.
// Two images can have the same.
func (img *Image) BuildID() string {
	for _, list := range [][]*Section{img.sections, img.other} {
		for _, s := range list {
			if s.Module == "" && strings.HasPrefix(s.Name, ".note") {
				if id := buildID(s.Data); id != "" {
					return id
				}
			}
		}
	}
	return ""
}

// buildID finds it among notes: the lengths of name and content, a type, the name
// and the content, each padded to 4 bytes (ELF, "Note Section").
func buildID(notes []byte) string {
	for len(notes) >= 12 {
		name, desc := uint64(le.Uint32(notes)), uint64(le.Uint32(notes[4:]))
		kind := le.Uint32(notes[8:])
		at := 12 + (name+3)&^3
		end := at + desc
		if end > uint64(len(notes)) {
			return ""
		}
		if kind == noteBuildID && string(notes[12:12+name]) == "GNU\x00" && desc > 0 && desc <= maxBuildID {
			return hex.EncodeToString(notes[at:end])
		}
		notes = notes[min((end+3)&^3, uint64(len(notes))):]
	}
	return ""
}
