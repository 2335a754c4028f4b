package script

// Type is the type of a value.
type Type uint8

const (
	// None is the result type of a function without a value.
	None Type = iota
	Int
	String
	// Stat is an aggregate.
	Stat
)

func (t Type) String() string { return [...]string{"unknown", "long", "string", "stats"}[t] }

// Limits bound what a handler may do.
type Limits struct {
	// StringSize is the room of a string in bytes, the NUL of C included.
	StringSize int
	// Entries is the room of an array whose Max is 0, in elements.
	Entries int
	// Nesting is the number of calls that may be active inside of each other.
	Nesting int
	// Memory bounds the arrays of a program, in bytes.
	Memory int
}

// Program is a script after its front end: variables, functions and handlers that Compile can turn into code.
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
	// Number and Text are its first value.
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
	// Next is the function that runs in its place when it ends with Skip. If Next is nil, Skip is an error.
	Next *Func

	code *body
}

// Handler is the code that a probe runs.
type Handler struct {
	Name   string
	Locals []Type
	Body   Stmt
	// Actions is the number of statements that one run may execute.
	Actions int

	code *body
}

// Builtin is a function of the host. Its arguments are evaluated; strings are valid
// until it returns.
type Builtin struct {
	Name   string
	Params []Type
	Result Type
	// Int is called if the result is Int or None, Text if it is String. Text appends to
	// dst and must not exceed its capacity: at most Limits.StringSize less one byte.
	Int  func(t *Thread, a *Args) int64
	Text func(t *Thread, a *Args, dst []byte) []byte
}

// MaxArgs is the number of arguments that a builtin may have.
const MaxArgs = 8

// Args are a builtin's arguments: each is in the array of its type, at its own place.
type Args struct {
	Int  [MaxArgs]int64
	Text [MaxArgs][]byte
	// Near names the place of the call, for errors.
	Near string
}
