//go:build linux

package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// packed is a file of kprobelab pack, taken apart as package archive describes it, so that damaged files have
// checksums that fit.
type packed struct {
	version uint32
	header  map[string]any
	parts   []part
}

type part struct {
	name string
	data []byte // unpacked
}

const packMagic = "kpblpack"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// pack lets the program pack the guest kernel.
func (a *attacker) pack(more ...string) ([]byte, error) {
	dir, err := os.MkdirTemp(a.dir, "pack-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if out, err := exec.Command(a.program, append([]string{"pack", "-o", dir, "-"}, more...)...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pack: %w: %s", err, out)
	}
	list, err := filepath.Glob(filepath.Join(dir, "*.kpack"))
	if err != nil || len(list) != 1 {
		return nil, fmt.Errorf("pack made %d files: %w", len(list), err)
	}
	return os.ReadFile(list[0])
}

// unpack takes a good file apart.
func unpack(b []byte) (*packed, error) {
	le, fixed := binary.LittleEndian, len(packMagic)+12
	length := int(le.Uint32(b[12:]))
	p := &packed{version: le.Uint32(b[8:])}
	if err := json.Unmarshal(b[fixed:fixed+length], &p.header); err != nil {
		return nil, err
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	b = b[fixed+length:]
	for _, s := range p.header["sections"].([]any) {
		head := s.(map[string]any)
		n := int(head["packed"].(float64))
		data, err := d.DecodeAll(b[:n], nil)
		if err != nil {
			return nil, err
		}
		p.parts = append(p.parts, part{head["name"].(string), data})
		b = b[n:]
	}
	return p, nil
}

// bytes puts it together; lie may change what the header says of a part.
func (p *packed) bytes(lie func(head map[string]any)) []byte {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	var heads []any
	var body []byte
	for _, s := range p.parts {
		b := enc.EncodeAll(s.data, nil)
		head := map[string]any{"name": s.name, "packed": len(b), "size": len(s.data), "crc32c": crc32.Checksum(b, castagnoli)}
		lie(head)
		heads = append(heads, head)
		body = append(body, b...)
	}
	p.header["sections"] = heads
	head, err := json.Marshal(p.header)
	if err != nil {
		panic(err)
	}
	out := binary.LittleEndian.AppendUint32([]byte(packMagic), p.version)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(head)))
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(head, castagnoli))
	return append(append(out, head...), body...)
}

// damagedPack is a file that is cut or flipped anywhere, or one whose checksums fit:
// parts that say something else, lie about their lengths, are missing, come twice,
// unpack to a lot; a newer version.
func damagedPack(rng *rand.Rand, good []byte) []byte {
	p, err := unpack(good)
	if err != nil || rng.IntN(3) == 0 {
		return mutate(rng, good)
	}
	honest := func(map[string]any) {}
	at := rng.IntN(len(p.parts))
	switch rng.IntN(8) {
	case 0:
		p.version = uint32(odd[rng.IntN(len(odd))])
	case 1:
		return p.bytes(func(head map[string]any) {
			if key := []string{"packed", "size", "crc32c"}[rng.IntN(3)]; rng.IntN(3) == 0 {
				head[key] = odd[rng.IntN(len(odd))] & 0xffffffff
			}
		})
	case 2:
		p.parts = slices.Delete(p.parts, at, at+1)
	case 3:
		p.parts = append(p.parts, p.parts[at])
	case 4:
		p.parts[at].data = make([]byte, 64<<20)
	case 5:
		for key := range p.header {
			if rng.IntN(3) == 0 {
				p.header[key] = []any{"\x1b[31m\n\t", -1, nil, []any{}, map[string]any{}, 1e300}[rng.IntN(6)]
			}
		}
	case 6:
		p.parts[at].name = p.parts[rng.IntN(len(p.parts))].name
	default:
		for range 1 + rng.IntN(3) {
			if i := rng.IntN(len(p.parts)); p.parts[i].name == "kernel" {
				p.parts[i].data = mutateText(rng, p.parts[i].data)
			} else {
				p.parts[i].data = mutate(rng, p.parts[i].data)
			}
		}
	}
	return p.bytes(honest)
}

// damagedArchive checks probes over a folder with damaged files among good ones.
func damagedArchive(c *tryOut) {
	dir := filepath.Join(c.dir, "kernels")
	_ = os.Mkdir(dir, 0o700)
	for i := range 1 + c.rng.IntN(3) {
		good := c.seeds.packs[c.rng.IntN(len(c.seeds.packs))]
		b := good
		if i == 0 || c.rng.IntN(2) == 0 {
			b = damagedPack(c.rng, good)
		}
		c.file(filepath.Join("kernels", fmt.Sprintf("6.%d.0.abcdef0%d.kpack", c.rng.IntN(20), i)), b)
	}
	if c.rng.IntN(8) == 0 {
		_ = os.Symlink("../kernels", filepath.Join(dir, "loop.kpack"))
	}
	probes := c.seeds.points
	if c.rng.IntN(3) == 0 {
		probes = mutateText(c.rng, probes)
	}
	args := []string{"check", "--archive", dir, "--format", []string{"text", "tsv", "json", "junit", "annotations"}[c.rng.IntN(5)]}
	if c.rng.IntN(3) == 0 {
		args = append(args, "--changed")
	}
	c.run(nil, append(args, c.file("probes", probes))...)
}
