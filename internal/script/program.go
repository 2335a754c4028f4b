package script

// Type is the type of a value.
type Type uint8

const (
	// None is for what has no value.
	None Type = iota
	Int
	String
	// Stat is an aggregate.
	Stat
)

func (t Type) String() string { return [...]string{"unknown", "long", "string", "stats"}[t] }

// Limits bound what a handler may do.
type Limits struct {
	// StringSize is the room of a string with the NUL that C ends it with.
	StringSize int
	// Entries is the room of an array that does not say its own.
	Entries int
	// Nesting is how deep calls may be nested.
	Nesting int
	// Memory bounds what arrays take, in bytes.
	Memory int
}

// Program is what a script says, in a form that runs.
type Program struct {
	Limits   Limits
	Vars     []*Var
	Arrays   []*Array
	Funcs    []*Func
	Handlers []*Handler
}

// Var is a global variable.
type Var struct {
	Name string
	Type Type
	// Number and Text are what it has at the beginning.
	Number int64
	Text   string
	// Histogram is an aggregate's.
	Histogram Histogram

	index int
}

// Array is a global variable with keys.
type Array struct {
	Name  string
	Keys  []Type
	Value Type
	// Max is its room; 0 is the limits' Entries.
	Max int
	// Wrap has the oldest entry make room for a new one.
	Wrap bool
	// Full is told of a new entry for which there is no room, with the Near of its Elem: the entry is forgotten. Without
	// Full it is an error.
	Full      func(t *Thread, near string)
	Histogram Histogram

	index int
}

// Func is a function of the script.
type Func struct {
	Name   string
	Result Type
	// Locals are its variables; the first Params are its parameters.
	Locals []Type
	Params int
	Body   Stmt
	// Next is what runs in its place when it ends with Skip, nil for an error.
	Next *Func

	code *body
}

// Handler is what runs at a probe.
type Handler struct {
	Name   string
	Locals []Type
	Body   Stmt
	// Actions is how many statements it may execute.
	Actions int

	code *body
}

// Builtin is a function of the host. It gets its arguments evaluated; strings are valid
// until it returns.
type Builtin struct {
	Name   string
	Params []Type
	Result Type
	// Int is called where the result is Int or None, Text where it is String: it appends to
	// dst, whose capacity it must not pass: at most the limit's StringSize less one byte.
	Int  func(t *Thread, a *Args) int64
	Text func(t *Thread, a *Args, dst []byte) []byte
}

// MaxArgs is how many arguments a builtin can have.
const MaxArgs = 8

// Args are a builtin's arguments: each is in the array of its type, at its own place.
type Args struct {
	Int  [MaxArgs]int64
	Text [MaxArgs][]byte
	// Near says where the call is, for errors.
	Near string
}
