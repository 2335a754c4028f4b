package module

// Listed describes a sample, with the numbers of a run like the published one.
type Listed struct {
	Name, About string
	// Profile is the release of a sample that later kernels do not have, "" for any.
	Profile string
	CPUs    int
	// Parameter is the module's own parameter for the probed function, "" for none.
	Parameter string
	// Options are the defaults; MaxActive is 0 where there is no pool.
	Options Options
	Run     Sample
}

// Samples are the kernel's samples.
func Samples() []Listed {
	return []Listed{
		{
			Name: "kprobe", About: "kprobe_example: a kprobe on the function that makes tasks",
			CPUs: 1, Parameter: "symbol", Options: Options{Tasks: 1, Calls: 2}, Run: Kprobe,
		},
		{
			Name: "kretprobe", About: "kretprobe_example: what the function returned, and how long it took",
			CPUs: 1, Parameter: "func", Options: Options{MaxActive: 20, Tasks: 1, Calls: 2}, Run: Kretprobe,
		},
		{
			Name: "jprobe", About: "jprobe_example (to 4.14): the function's arguments",
			Profile: "4.4", CPUs: 1, Options: Options{Tasks: 1, Calls: 2}, Run: Jprobe,
		},
	}
}

// Articles are the modules of the article.
func Articles() []Listed {
	return []Listed{
		{
			Name: "kprobe", About: "who calls schedule(), and how often",
			Profile: "2.6.18", CPUs: 2, Options: Options{Seed: 1, Tasks: 4, Calls: 3}, Run: ArticleKprobe,
		},
		{
			Name: "jprobe", About: "sys_open's arguments",
			Profile: "2.6.18", CPUs: 2, Options: Options{Tasks: 1, Calls: 8}, Run: ArticleJprobe,
		},
		{
			Name: "kretprobe", About: "sys_open's negative results, with a pool of one",
			Profile: "2.6.18", CPUs: 2, Options: Options{Seed: 1, MaxActive: 1, Tasks: 8, Calls: 4}, Run: ArticleKretprobe,
		},
	}
}
