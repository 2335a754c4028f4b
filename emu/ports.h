/*
 * The ports of the machine's hypercalls, for C, Go and the guest's assembly.
 * Guest code makes one by writing to its port (out %al, $port). Every other
 * port reads as zero, and what is written to it is lost.
 */
#ifndef KPL_PORTS_H
#define KPL_PORTS_H

#define KPL_PORT_CALLOUT 0xe0 /* calls the Go function of the stub that the out begins; rdi: the frame */
#define KPL_PORT_YIELD   0xe1 /* lets another task run */
#define KPL_PORT_SLEEP   0xe2 /* rdi: for how many virtual nanoseconds */
#define KPL_PORT_EXIT    0xe3 /* ends the task */
#define KPL_PORT_CONSOLE 0xe4 /* al: one byte */
#define KPL_PORT_CLOCK   0xe5 /* rax becomes the virtual nanoseconds since boot */
#define KPL_PORT_TASK    0xe6 /* rax becomes the number of the running task */
#define KPL_PORT_CPU     0xe7 /* rax becomes the number of the running CPU */
#define KPL_PORT_RETURN  0xe8 /* the function that the host called has returned */

#endif
