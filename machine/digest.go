package machine

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"kprobelab/internal/contract"
)

// Digester is an Engine that can say in a few bytes how it goes on.
type Digester interface {
	Engine
	// Digest writes all that decides how the engine goes on.
	Digest(w hash.Hash)
	DigestState(w hash.Hash, s contract.State)
}

// ErrNoDigest: the engine cannot say in a digest how it goes on.
var ErrNoDigest = errors.New("this engine has no digest of its state")

// StateHash is a digest of all that decides how the machine goes on: memory, the
// CPUs' and tasks' registers, clock and scheduler. It fails with ErrNoDigest on an
// engine that is no Digester.
func (m *Machine) StateHash() ([32]byte, error) {
	e, ok := m.engine.(Digester)
	if !ok {
		return [32]byte{}, fmt.Errorf("%s: %w", m.engine.Name(), ErrNoDigest)
	}
	h := sha256.New()
	text, _ := m.random.MarshalBinary() // it cannot fail
	h.Write(text)
	put := func(list ...uint64) {
		for _, v := range list {
			_ = binary.Write(h, binary.LittleEndian, v) // a hash does not fail
		}
	}
	put(m.sh.Instrs, m.sh.Extra, uint64(m.curCPU), uint64(m.curTask))
	e.Digest(h)
	for _, t := range m.tasks {
		put(uint64(t.state), t.wake, t.scheds, uint64(len(t.results)))
		e.DigestState(h, t.saved)
	}
	return [32]byte(h.Sum(nil)), nil
}
