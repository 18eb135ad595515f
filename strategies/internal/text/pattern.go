package text

import (
	"regexp"
	"sync"
)

// Pattern returns a function that returns the compiled expression, for package variables. It
// is compiled on the first call, since large expressions take milliseconds and megabytes that
// a process which never matches them does not need. It panics if the expression is invalid.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
