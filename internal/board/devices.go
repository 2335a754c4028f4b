package board

// Devices is the range of physical memory in which devices have their registers. An address without a register reads as zero.
const (
	Devices    = 0xfec00000
	DevicesEnd = 0xff000000

	hpet       = 0xfed00000
	localAPIC  = 0xfee00000
	deviceSize = 0x1000
)

// The registers of the HPET, which counts at 100 MHz.
const (
	hpetCapabilities = 0x0
	hpetPeriod       = 0x4
	hpetConfig       = 0x10
	hpetCounter      = 0xf0
	hpetCounterHigh  = 0xf4
)

// ReadDevice is a read by the n-th processor, of size bytes at a physical address.
func (b *Board) ReadDevice(n int, pa uint64, size int) uint64 {
	if pa-localAPIC < deviceSize {
		return uint64(b.readAPIC(b.cpus[n], uint32(pa-localAPIC)))
	}
	if pa-hpet >= deviceSize {
		return 0
	}
	ticks := b.HPETBase + b.clock.Now()/10
	switch pa - hpet {
	case hpetCapabilities:
		if size == 8 {
			return 0x009896808086a201
		}
		return 0x8086a201
	case hpetPeriod:
		return 10_000_000 // femtoseconds
	case hpetConfig:
		return 1
	case hpetCounter:
		if size == 8 {
			return ticks
		}
		return uint64(uint32(ticks))
	case hpetCounterHigh:
		return ticks >> 32
	}
	return 0
}

// WriteDevice is a write.
func (b *Board) WriteDevice(n int, pa, v uint64) {
	if pa-localAPIC < deviceSize {
		b.writeAPIC(b.cpus[n], uint32(pa-localAPIC), uint32(v))
	}
}

// The ports of devices that a quiet kernel uses. PortSerial is the first serial line's data.
const (
	PortSerial    = 0x3f8
	portPIC       = 0x20
	portPIC2      = 0xa0
	portKeyboard  = 0x64
	portRTCData   = 0x71
	portPMTimer   = 0x608
	portReset     = 0xcf9
	keyboardReset = 0xfe
	resetCPU      = 4
	readyToSend   = 0x60
	pmHertz       = 3_579_545
)

// In reads size bytes from a port. Where nothing is, all bits are ones, as on a bus.
func (b *Board) In(port uint32, size int) uint32 {
	switch port {
	case portPMTimer:
		return uint32(b.PMBase+scale(b.clock.Now(), pmHertz, 1_000_000_000)) & 0xffffff
	case PortSerial + 5: // line status
		return readyToSend
	case portKeyboard, portPIC, portPIC2, portRTCData, PortSerial, PortSerial + 1, PortSerial + 2, PortSerial + 6:
		return 0 // nothing to be read, nothing that waits to be taken
	}
	return uint32(1<<(8*size) - 1)
}

// Resets reports whether a write to a port resets the machine: by the keyboard controller's pin, or by
// the chipset's register.
func Resets(port uint32, size int, v uint32) bool {
	return port == portKeyboard && v&0xff == keyboardReset || port == portReset && size == 1 && v&resetCPU != 0
}

// Model specific registers of the board (SDM Vol. 4).
const (
	msrTSC         = 0x10
	msrAPICBase    = 0x1b
	msrTSCDeadline = 0x6e0
	msrX2APIC      = 0x800
	msrX2APICID    = 0x802
	msrX2APICICR   = 0x830
	msrX2APICSelf  = 0x83f
	msrX2APICEnd   = 0x840
	// apicBase: the APIC is on; bootCPU is a bit of the first processor's.
	apicBase = 0xfee00800
	bootCPU  = 1 << 8
)

// MSR is a register of the n-th processor; false if it is none of the board's.
func (b *Board) MSR(n int, msr uint32) (uint64, bool) {
	c := b.cpus[n]
	switch {
	case msr == msrTSC:
		return b.TSC(), true
	case msr == msrAPICBase && n == 0:
		return apicBase | bootCPU, true
	case msr == msrAPICBase:
		return apicBase, true
	case msr == msrX2APICID:
		return uint64(c.id), true
	case msr >= msrX2APIC && msr < msrX2APICEnd:
		return uint64(b.readAPIC(c, (msr-msrX2APIC)*16)), true
	}
	return 0, false
}

// SetMSR sets a register; false if it is none of the board's.
func (b *Board) SetMSR(n int, msr uint32, v uint64) bool {
	c := b.cpus[n]
	switch {
	case msr == msrTSC, msr == msrAPICBase:
	case msr == msrTSCDeadline:
		b.deadline(c, v)
	case msr == msrX2APICICR: // one register, with a destination of 32 bits
		b.broadcast = 0xffffffff
		b.send(c, uint32(v), uint32(v>>32))
	case msr == msrX2APICSelf:
		c.raise(int(v & 0xff))
		b.Aim()
	case msr >= msrX2APIC && msr < msrX2APICEnd:
		b.writeAPIC(c, (msr-msrX2APIC)*16, uint32(v))
	default:
		return false
	}
	return true
}
