package stap

// parsed is the content of a script's file.
type parsed struct {
	globals   []*global
	aliases   []*probe
	probes    []*probe
	functions []*function
	embedded  []*token
}

type global struct {
	tok     *token
	name    string
	max     int64
	wrap    bool
	init    expr // nil, a *literal
	private bool
	library bool
}

type function struct {
	tok      *token
	name     string
	result   vtype
	params   []*param
	priority int64 // -1 where it is not given
	body     *block
	embedded *token
	private  bool
	library  bool
}

type param struct {
	tok  *token
	name string
	typ  vtype
}

type vtype uint8

const (
	unknown vtype = iota
	long
	str
	stats
)

func (t vtype) String() string { return [...]string{"unknown", "long", "string", "stats"}[t] }

// probe is a probe, or an alias with names.
type probe struct {
	tok      *token
	names    []*point
	points   []*point
	body     *block
	epilogue *block // of an alias, with it or in place of body
	after    bool   // +=
	library  bool
}

type point struct {
	parts      []*part
	optional   bool // ?
	sufficient bool // !
	cond       expr
}

type part struct {
	tok  *token
	name string
	arg  *literal
}

type (
	stmt interface{ position() *token }
	expr interface{ position() *token }
)

type base struct{ tok *token }

func (b *base) position() *token { return b.tok }

type (
	block struct {
		base
		list []stmt
	}
	nothing  struct{ base }
	exprStmt struct {
		base
		x expr
	}
	ifStmt struct {
		base
		cond        expr
		then, other stmt
	}
	forStmt struct {
		base
		start      expr // nil, or an expression
		cond, post expr
		body       stmt
	}
	foreachStmt struct {
		base
		value  *symbol
		keys   []*symbol
		sort   int // the key that is sorted by, from 1 on; 0 the value; -1 nothing
		down   bool
		by     string // @count
		array  *symbol
		hist   *histExpr
		slice  []expr // nil elements stand for *
		sliced bool
		limit  expr
		body   stmt
	}
	tryStmt struct {
		base
		body, catch *block
		to          *symbol
	}
	deleteStmt struct {
		base
		x expr
	}
	returnStmt struct {
		base
		x expr
	}
	jumpStmt struct{ base } // break, continue, next, by the token
)

type (
	literal struct {
		base
		isText bool
		text   string // with escapes
		number int64
		hex    bool // it is an address, and printed as one
	}
	symbol struct {
		base
		name string
	}
	index struct {
		base
		name string
		hist *histExpr
		keys []expr // nil elements stand for *
	}
	binary struct {
		base
		op   string
		x, y expr
	}
	unary struct {
		base
		op string
		x  expr
	}
	crement struct {
		base
		op   string
		post bool
		x    expr
	}
	assign struct {
		base
		op   string
		x, y expr
	}
	ternary struct {
		base
		cond, x, y expr
	}
	inArray struct {
		base
		keys []expr
		name string
		hist *histExpr
	}
	match struct {
		base
		op      string
		x       expr
		pattern *token
	}
	call struct {
		base
		name string
		args []expr
	}
	printExpr struct {
		base
		name   string
		format *token // or the delimiter
		pieces []directive
		args   []expr
		hist   *histExpr
	}
	embeddedExpr struct{ base }
	// target is $name, @var, @cast or any value that -> or [ ] follow.
	target struct {
		base
		what    string // "$", "@var", "@cast", "auto"
		name    string
		module  string
		of      expr // of @cast and auto
		path    []access
		address bool // &
	}
	statExpr struct {
		base
		what  string // "@count"
		of    expr
		shift *int64
	}
	histExpr struct {
		base
		what   string
		of     expr
		params []int64
	}
	definedExpr struct {
		base
		x expr
	}
	entryExpr struct {
		base
		x expr
	}
	perfExpr struct {
		base
		name string
	}
	constExpr struct {
		base
		name string
	}
	probewriteExpr struct {
		base
		x expr
	}
	// memoryExpr is @kderef, @uderef, @kregister, @uregister.
	memoryExpr struct {
		base
		what string
		size int64
		x    expr
	}
)

// access is a step from a value to a part of it.
type access struct {
	tok *token
	// name is the name in ->name, or the $ or $$ of a value that is printed whole.
	name   string
	pretty bool
	index  expr
	isNum  bool // index is a literal
}
