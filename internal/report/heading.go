package report

import (
	"fmt"

	"kprobelab/kimage"
)

// Heading says whose rules answer and on which text: some answers depend on the processor that boot made the text for. live is
// the file of text that was laid over the image's, "" for none.
func Heading(img *kimage.Image, live string) string {
	head := fmt.Sprintf("%s: profile %s (%s)", img.Name(), img.Profile().Name, img.Standing())
	if cpu := img.Fact("CPU"); cpu.Value != "" {
		head += ", CPU " + cpu.Value + " (" + cpu.Evidence + ")"
	}
	if live != "" {
		head += ", text of " + live
	}
	return head
}
