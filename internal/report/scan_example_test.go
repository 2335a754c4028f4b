package report_test

import (
	"fmt"
	"os"
	"strings"

	"kprobelab"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
)

// What would registering a kprobe answer at these points?
func ExampleScan_WritePoints() {
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	points, _ := report.ReadPoints(strings.NewReader("gcd+0x\nnosuch+4\n1fff a comment\n"))
	totals, _ := report.NewScan(img).WritePoints(os.Stdout, report.ScanJSON, points)
	fmt.Println(totals.Points, totals.Refused[report.Refused{Reason: rule.UnknownSymbol, Errno: -2}])
	// Output:
	// {"address":"","symbol":"gcd+0x","offset":0,"errno":-22,"ftrace":false,"boostable":false,"emulated":false,"optimized":false,"reason":"BAD_LINE","hazard":""}
	// {"address":"","symbol":"nosuch","offset":4,"errno":-2,"ftrace":false,"boostable":false,"emulated":false,"optimized":false,"reason":"UNKNOWN_SYMBOL","hazard":""}
	// {"address":"0x0000000000001fff","symbol":"","offset":0,"errno":-2,"ftrace":false,"boostable":false,"emulated":false,"optimized":false,"reason":"NO_SYMBOL","hazard":""}
	// 3 1
}
