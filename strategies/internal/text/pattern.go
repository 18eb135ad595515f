package text

import (
	"regexp"
	"sync"
)

// Regexp is an expression that package regexp runs only on texts in which it matches.
type Regexp struct {
	*regexp.Regexp
	automaton *automaton
}

// Pattern returns a function that returns the compiled expression, for package variables. It
// is compiled on the first call, since large expressions take milliseconds and megabytes that
// a process which never matches them does not need. It panics if the expression is invalid.
func Pattern(expr string) func() *Regexp {
	return sync.OnceValue(func() *Regexp { return &Regexp{regexp.MustCompile(expr), newAutomaton(expr)} })
}

// MatchString is that of regexp.Regexp, as are the others.
func (r *Regexp) MatchString(s string) bool {
	if r.automaton != nil {
		if matches, known := r.automaton.match(s); known {
			return matches
		}
	}
	return r.Regexp.MatchString(s)
}

// FindString returns the first match, "" without one.
func (r *Regexp) FindString(s string) string {
	if !r.MatchString(s) {
		return ""
	}
	return r.Regexp.FindString(s)
}

// FindStringIndex returns where the first match is, nil without one.
func (r *Regexp) FindStringIndex(s string) []int {
	if !r.MatchString(s) {
		return nil
	}
	return r.Regexp.FindStringIndex(s)
}

// FindStringSubmatch returns the groups of the first match, nil without one.
func (r *Regexp) FindStringSubmatch(s string) []string {
	if !r.MatchString(s) {
		return nil
	}
	return r.Regexp.FindStringSubmatch(s)
}

// FindStringSubmatchIndex returns where the groups of the first match are, nil without one.
func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	if !r.MatchString(s) {
		return nil
	}
	return r.Regexp.FindStringSubmatchIndex(s)
}

// FindAllStringIndex returns where the first n matches are, all for -1.
func (r *Regexp) FindAllStringIndex(s string, n int) [][]int {
	if !r.MatchString(s) {
		return nil
	}
	return r.Regexp.FindAllStringIndex(s, n)
}

// FindAllStringSubmatch returns the groups of the first n matches, all for -1.
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	if !r.MatchString(s) {
		return nil
	}
	return r.Regexp.FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex returns where the groups of the first n matches are, all for -1.
func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	if !r.MatchString(s) {
		return nil
	}
	return r.Regexp.FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString returns s with its matches replaced.
func (r *Regexp) ReplaceAllString(s, by string) string {
	if !r.MatchString(s) {
		return s
	}
	return r.Regexp.ReplaceAllString(s, by)
}
