package machine

// The ports of the machine's hypercalls. Guest code makes one by writing to its port (out %al,
// $port). They are the ports of emu/ports.h, which describes them.
const (
	PortCallout = 0xe0
	PortYield   = 0xe1
	PortSleep   = 0xe2
	PortExit    = 0xe3
	PortConsole = 0xe4
	PortClock   = 0xe5
	PortTask    = 0xe6
	PortCPU     = 0xe7
	PortReturn  = 0xe8
)
