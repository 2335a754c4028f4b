package module_test

import (
	"fmt"

	"kprobelab"
	"kprobelab/internal/sample/module"
	"kprobelab/kimage"
	"kprobelab/profile"
)

func ExampleArticleJprobe() {
	kernel, _ := profile.Named("2.6.18")
	img, err := kprobelab.OpenImage("", &kimage.Options{Profile: kernel})
	if err != nil {
		panic(err)
	}
	l, err := kprobelab.New(img, nil)
	if err != nil {
		panic(err)
	}
	defer l.Close()
	err = module.ArticleJprobe(l, &module.Options{Calls: 2}, func(e module.Event) {
		if e.Line != "" {
			fmt.Println(e.Line)
		}
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// Registered a jprobe.
	// process 'cat' call open('/etc/ld.so.cache', 0, 0)
	// process 'cat' call open('/lib/libc.so.6', 0, -524289)
	// process 'rmmod' call open('/etc/ld.so.cache', 0, 0)
	// process 'rmmod' call open('/lib/libc.so.6', 0, -524289)
	// process 'rmmod' call open('/proc/modules', 0, 438)
	// jprobe unregistered
}
