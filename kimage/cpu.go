package kimage

import (
	"errors"

	"kprobelab/internal/cpumodel"
	"kprobelab/kimage/internal/processor"
)

// DefaultCPU is the processor for which the text is made by default.
const DefaultCPU = cpumodel.Default

// HostCPU in place of a model is the processor that this program runs on, as
// its kernel describes it.
const HostCPU = processor.Host

// ErrCPU: Options.CPU names a processor or a feature that is not known. The message
// lists the known ones.
var ErrCPU = processor.ErrUnknown

// CPUModels lists the processors that Options.CPU takes by name, sorted.
func CPUModels() []string { return processor.Names() }

// parseCPU reads Options.CPU (processor.Parse).
func parseCPU(s string, exists func(flag string) bool, all func() []string) (*processor.Model, error) {
	m, err := processor.Parse(s, func(path string) ([]byte, error) { return readMaybePacked(path, nil) }, exists, all)
	var bad *processor.FileError
	if errors.As(err, &bad) {
		return nil, badFormat(bad.Path, -1, "%s", bad.Want)
	}
	return m, err
}

// model is the processor that the boot-time text was made for, or the kernel booted on.
func (img *Image) model() *processor.Model {
	if img.cpu == nil {
		return processor.Named(DefaultCPU)
	}
	return img.cpu
}

// Processor is the one that the boot-time text was made for, or the kernel booted on.
func (img *Image) Processor() Processor {
	img.processor.once.Do(func() { img.processor.p = img.model().Processor() })
	return img.processor.p
}

// NearestCPU picks one of the named processors to run the image's text on: the one that
// lacks fewest features of the processor for which the text was made. Among equals it
// takes that very processor, or else the one with the fewest additional features. The
// case of names does not matter. Names that are not among CPUModels are skipped; the
// result is empty if no name is left.
func (img *Image) NearestCPU(names []string) string { return img.model().Nearest(names) }

// NamedProcessor is a processor for code that belongs to no image, as Options.CPU writes
// it. An unknown name is an ErrCPU.
func NamedProcessor(name string) (Processor, error) {
	m, err := parseCPU(name, func(flag string) bool { return namedFeatures[flag] != 0 }, cpumodel.Flags)
	if err != nil {
		return nil, err
	}
	return m.Processor(), nil
}
