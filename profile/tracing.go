package profile

// Tracing is the syntax and output of kprobe_events and the tracing files (docs/spec 9).
type Tracing struct {
	// Exists: there is kprobe_events (2.6.33 and later).
	Exists bool
	// FirstEventID is the number of the first kprobe event: one more than the kernel's own events
	// have.
	FirstEventID int

	// BootClock and TAIClock: trace_clock has boot (4.10 and later), and tai
	// (5.19 and later).
	BootClock, TAIClock bool
	// ErrorLog: there is error_log (5.2 and later).
	ErrorLog bool
	// ErrorCommandMax bounds the part of a command that error_log keeps, the prefix and the
	// newlines included; the caret's column is then kept in 8 bits (to 5.17). 0 means no bound.
	ErrorCommandMax int
	// Misspelled: BAD_VAR says "$-valiable" (to 7.1, and not in stable releases of 2026).
	Misspelled bool

	// DynamicEvents: there is dynamic_events, and deletion can name places and
	// whole groups of events (5.0 and later).
	DynamicEvents bool
	// Append: a definition under the name of an existing event adds a probe to
	// it (5.4 and later); before, it takes the event's place.
	Append bool
	// MatchCut: a deletion compares no more than 63 characters of an argument
	// with its name (to 7.1, and not in stable releases of 2026).
	MatchCut bool
	// RawCommand: whether a line deletes is decided by its very first
	// character (5.12 and later); before, by the first word's.
	RawCommand bool
	// AutoNames: the kernel names "p:group/", and "-:group/" deletes all of the group (6.0 and
	// later); a "." separates as "/" does.
	AutoNames bool
	// GroupHyphen allows a hyphen in a group's name (6.2 and later, and stable releases): 5.10,
	// whose code compares no byte with it, does not.
	GroupHyphen bool
	// LongEventName lets an event name of 64 characters pass (to 6.11, and not in stable releases).
	LongEventName bool
	// MaxActive: a return probe's pool can be given (4.12 and later), and is
	// read back.
	MaxActive bool
	// ReturnSuffix: a place can end in %return (5.10 and later).
	ReturnSuffix bool
	// UniqueSymbols refuses a name that no symbol or several have before
	// anything is registered (6.6 and later, and stable releases).
	UniqueSymbols bool
	// UniqueFirst makes that test before the one for a function's entry, of
	// the symbols of loaded modules too, with EINVAL for all (6.12).
	UniqueFirst bool
	// VmlinuxHidesModules: a symbol of the kernel itself hides symbols of modules with the same
	// name (7.1 and later, 7.0.10).
	VmlinuxHidesModules bool

	// RefuseOpenEnd refuses filters that end in an operator (7.3, and stable releases of 2026).
	RefuseOpenEnd bool
	// FilterFunctions: a filter compares FIELD.function with a function's bounds (6.3 and later).
	FilterFunctions bool
	// FilterCPUSets: a filter compares with a list of CPUs, CPUS{0,2-3} (6.6 and later).
	FilterCPUSets bool
	// FilterStack: a filter accepts stacktrace as a field, which equals no value (6.4 and later).
	FilterStack bool

	// Types is the set of argument types.
	Types FetchTypes
	// CommFetch: $comm can be fetched (4.8 and later).
	CommFetch bool
	// ArgFetch: $argN and arrays can be fetched, and immediates and user memory (4.20 and later).
	ArgFetch bool
	// CommUpper: $COMM is $comm (6.0 and later, and stable releases).
	CommUpper bool
	// LoneQuote takes an immediate text that is one quotation mark for an empty
	// text (5.4 to 6.19, and not in stable releases of 2026); after, it is not closed.
	LoneQuote bool
	// RefusesNotrace: a function without an ftrace site is EINVAL, where the kernel has
	// such sites (4.19 and later; not with KPROBE_EVENTS_ON_NOTRACE).
	RefusesNotrace bool
	// RefusesParts: a part or a clone with a suffix is EINVAL too, even if the function that
	// it was made of has a site (4.19 to 5.3).
	RefusesParts bool
	// BoundaryEINVAL: a place inside an instruction is EINVAL, with a line in the log
	// (to 5.1; later ones pass EILSEQ on).
	BoundaryEINVAL bool
	// PerfGoodNames: a symbol that perf's kprobe unit is given has to be a C identifier, as
	// an event's name has (to 5.1).
	PerfGoodNames bool
	// UnknownSymbolZero: an argument may name a symbol that is not there, and is 0 then
	// (to 4.19; later it is ENOENT).
	UnknownSymbolZero bool
	// BTFArgs: parameters can be named, and types are taken from BTF (6.12).
	BTFArgs bool
	// NoBTFArgs: the kernel knows the grammar of BTFArgs and was built without it
	// (PROBE_EVENTS_BTF_ARGS): a parameter by name is EOPNOTSUPP.
	NoBTFArgs bool
	// ExitArgs: parameters can be fetched where a function returns, too (6.9).
	ExitArgs bool
	// StarRefused: $arg* of a function without BTF is EOPNOTSUPP (7.3, and stable
	// releases from 6.12.115 on); before, that is logged, and the word is then read as
	// a variable, which does not exist: EINVAL.
	StarRefused bool
	// ArgZero looks for argument number 0 among the parameters that BTF names, where a word of
	// a definition is $arg0 alone: ENOENT, for there is none (6.5 to 7.1, and not in stable
	// releases of 2026); before and after, 0 is no number of an argument: EINVAL.
	ArgZero bool
	// CountArgs refuses more than 128 arguments with E2BIG (6.12); before, the
	// rest is ignored.
	CountArgs bool
	// CountArgsLogged: error_log has that refusal too (6.14 and later).
	CountArgsLogged bool
	// MaxArgText is the longest fetch expression (MAX_ARGSTR_LEN): 63
	// characters, and 255 from 7.3 on.
	MaxArgText int
	// LongArgE2BIG is the errno of an argument that is too long (6.12);
	// before, EINVAL.
	LongArgE2BIG bool
	// NoTypeLogged: a line of dynamic_events that no kind of event takes is in error_log
	// (6.19 and later).
	NoTypeLogged bool
	// StringTypeLogged: a type that does not fit $comm is in error_log (6.12).
	StringTypeLogged bool
	// MaxRecord bounds an event's fixed fields in bytes (6.1.y and later); 0
	// means no bound.
	MaxRecord int
	// FileOffsetTwice: a uprobe's argument @+OFFSET is read at twice the offset (4.20 to 7.1,
	// and not in stable releases of 2026).
	FileOffsetTwice bool
	// UserNoSymbols: a uprobe's argument cannot have the types symbol and symstr (6.6 and later).
	UserNoSymbols bool
	// EventCasts: typecasts are there for event probes only, and error_log says so of a
	// kprobe's (7.2 and later, and 7.1.y; with Typecasts a kprobe can have them).
	EventCasts bool
	// Typecasts: $current, (type[,member])argument->member, this_cpu_ptr() and
	// this_cpu_read() can be fetched, and a fetch nests 8 levels at most (7.3).
	Typecasts bool

	// EmptyUserFaults: an empty text of user memory counts as unreadable
	// (strncpy_from_user_nofault, to 6.14).
	EmptyUserFaults bool

	// BareArrays declares an array in format without its length (5.18 and later).
	BareArrays bool
	// MigrateDisable: a line of trace has a fifth flag, and the first flag covers bottom halves too
	// (5.15 and later).
	MigrateDisable bool
	// LazyResched: the second flag of a line of trace shows a lazy reschedule, and is B if all its
	// bits are set (7.3; not 6.12).
	LazyResched bool
	// ReschedBit is the bit of a task's flags that requests a reschedule (TIF_NEED_RESCHED),
	// LazyReschedBit the bit that requests one on the way out of the kernel
	// (TIF_NEED_RESCHED_LAZY); 0 if there is none.
	ReschedBit, LazyReschedBit int
	// TriggerCounted: the stack of a stacktrace trigger counts the preemption that the handler
	// itself has turned off; the event's record does not (__trace_stack with tracing_gen_ctx, to
	// 6.14).
	TriggerCounted bool
	// SanitizeStar turns a "*" in an automatic name into "_" (6.17 and later, 6.12.44).
	SanitizeStar bool
}

// The flags of a record for a requested reschedule of its task (TRACE_FLAG_NEED_RESCHED,
// TRACE_FLAG_NEED_RESCHED_LAZY). The lazy one means TRACE_FLAG_IRQS_NOSUPPORT without LazyResched.
const (
	TraceLazyResched = 0x02
	TraceNeedResched = 0x04
)

// FetchTypes names a release's set of argument types.
type FetchTypes int

// The sets.
const (
	// Types33 are u8 to u64 (shown in hexadecimal, without 0x), s8 to s64, string, and
	// bitfields.
	Types33 FetchTypes = iota
	// Types44 shows u8 to u64 with 0x.
	Types44
	// Types49 adds x8 to x64.
	Types49
	// Types58 adds symbol and ustring.
	Types58
	// Types61 adds symstr.
	Types61
	// Types612 adds char.
	Types612
)
