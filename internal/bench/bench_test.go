package bench

import (
	"testing"

	"kprobelab"
)

// BenchmarkHit has a call with its hit, on each path that makes one. `kprobelab
// bench` subtracts the call and compares with the floor.
func BenchmarkHit(b *testing.B) {
	for _, p := range Paths() {
		if p.parts == (Parts{}) {
			continue
		}
		b.Run(p.Name, func(b *testing.B) {
			r := &run{o: &Options{}, stands: map[standKey]*kprobelab.Lab{}}
			defer r.close()
			s, err := r.subject(&p, 0)
			benchSubject(b, s, err)
		})
	}
}

// BenchmarkFloor has the engine's own costs, each with its call.
func BenchmarkFloor(b *testing.B) {
	for _, f := range floorSpecs {
		b.Run(f.name, func(b *testing.B) {
			s, err := f.make()
			benchSubject(b, s, err)
			s.Close()
		})
	}
}

// benchSubject makes b.N calls with the subject's probe planted.
func benchSubject(b *testing.B, s *subject, err error) {
	if err == nil {
		err = s.plant()
	}
	if err == nil {
		err = s.run(warming)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	if err := s.run(b.N); err != nil {
		b.Fatal(err)
	}
}
