package kimage

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIRQEntryText: the code that compares with its end tells whether the text of
// interrupt entry is treated as entry text; if no code does, nothing is known.
func TestIRQEntryText(t *testing.T) {
	const (
		entry    = testBase + 0x40
		irqEntry = testBase + 0x60
		end      = testBase + 0x70
	)
	knows := append([]byte{0x48, 0x81, 0xff}, le.AppendUint32(nil, uint32(end&0xffffffff))...) // cmp $end,%rdi
	other := append([]byte{0x48, 0x81, 0xff}, le.AppendUint32(nil, uint32(entry&0xffffffff))...)
	for _, c := range []struct {
		name, function string
		code           []byte
		end            uint64
		check, opt     string
	}{
		{"optimizer_compares", "can_optimize", knows, end, "", "true"},
		{"optimizer_compares_otherwise", "can_optimize", other, end, "", "false"},
		{"optimizer_inlined", "arch_prepare_optimized_kprobe", knows, end, "", "true"},
		{"blacklist_hands_on", "arch_populate_kprobe_blacklist", append(bytes.Clone([]byte{0x48, 0xc7, 0xc6}), knows[3:]...), end, "true", ""},
		{"no_such_function", "can_probe", knows, end, "", ""},
		{"no_such_text", "can_optimize", knows, irqEntry, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			symbols := writeFile(t, "System.map", fmt.Appendf(nil,
				"%x T _stext\n%x t %s\n%x t next\n%x T __entry_text_start\n%x T entry_SYSCALL_64\n%x T __entry_text_end\n%x T __irqentry_text_start\n%x T smp_apic\n%x T __irqentry_text_end\n%x T _etext\n",
				uint64(testBase), uint64(testBase), c.function, uint64(testBase)+0x20, uint64(entry), uint64(entry), uint64(entry)+0x10,
				uint64(irqEntry), uint64(irqEntry), c.end, uint64(testBase)+0x80))
			text := append(bytes.Clone(c.code), bytes.Repeat([]byte{0x90}, 0x80-len(c.code))...)
			img := openBytes(t, testELF(etExec, testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testBase, data: text}),
				&Options{SystemMap: symbols, NoBoot: true})
			require.Equal(t, c.check, img.facts.Value("Check.IRQEntryText"))
			require.Equal(t, c.opt, img.facts.Value("Optimize.IRQEntryText"))
			require.Equal(t, c.opt == "true", img.InEntryText(irqEntry))
			_, listed := img.Blacklisted(irqEntry)
			require.Equal(t, c.check == "true", listed)
			require.True(t, img.InEntryText(entry))
		})
	}
}
