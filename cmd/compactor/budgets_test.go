package main_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// budget is the most that a package may have of something, in all or for 1,000 lines or words of comments. A few are allowed
// whatever the size of the package.
type budget struct {
	what       string
	most       float64
	few        int
	measuredBy func(s *size) (n, of int)
}

var budgets = []budget{
	{"lines with four or more && and ||, for 1,000", 1, 1, func(s *size) (int, int) { return s.conditions, s.lines }},
	{"lines over 140 columns, for 1,000", 10, 3, func(s *size) (int, int) { return s.wide, s.lines }},
	{"bytes of regular expressions", 4096, 0, func(s *size) (int, int) { return s.patterns, 1000 }},
	{"methods of one type", 60, 0, func(s *size) (int, int) { return maxOf(s.methods), 1000 }},
	{"of the word what, for 1,000 words of comments", 3, 2, func(s *size) (int, int) { return s.whats, s.words }},
	{"of the words tell, tells and told, for 1,000 words of comments", 0.5, 2, func(s *size) (int, int) { return s.tells, s.words }},
}

// size counts the non-test files of a package.
type size struct {
	lines, conditions, wide, patterns, words, whats, tells int
	methods                                                map[string]int // by receiver
}

var commentWord = regexp.MustCompile(`[a-z']+`)

func (s *size) add(file string, content []byte) error {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, content, parser.ParseComments)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(content) {
		s.lines++
		if columns := []rune(strings.ReplaceAll(strings.TrimSuffix(string(line), "\n"), "\t", "    ")); len(columns) > 140 {
			s.wide++
		}
	}
	for _, group := range parsed.Comments {
		for _, word := range commentWord.FindAllString(strings.ToLower(group.Text()), -1) {
			s.words++
			switch word {
			case "what":
				s.whats++
			case "tell", "tells", "told":
				s.tells++
			}
		}
	}
	operators := map[int]int{} // by line
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				operators[set.Position(n.OpPos).Line]++
			}
		case *ast.FuncDecl:
			if n.Recv != nil {
				s.methods[receiver(n.Recv.List[0].Type)]++
			}
		case *ast.CallExpr:
			if name := called(n.Fun); name == "MustCompile" || strings.HasSuffix(strings.ToLower(name), "pattern") {
				s.patterns += literals(n.Args)
			}
		}
		return true
	})
	for _, n := range operators {
		if n >= 4 {
			s.conditions++
		}
	}
	return nil
}

func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

func called(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// literals returns the bytes of the string literals in arguments.
func literals(args []ast.Expr) (n int) {
	for _, arg := range args {
		ast.Inspect(arg, func(x ast.Node) bool {
			if lit, ok := x.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				n += len(lit.Value) - 2
			}
			return true
		})
	}
	return n
}

func maxOf(counts map[string]int) (most int) {
	for _, n := range counts {
		most = max(most, n)
	}
	return most
}

// How easily a package is read: a package outside a budget is split, or its code is written again.
func TestPackagesAreWithinTheirBudgets(t *testing.T) {
	t.Parallel()
	sizes := map[string]*size{}
	walk(t, moduleRoot(t), func(pkg, file string, content []byte) error {
		if sizes[pkg] == nil {
			sizes[pkg] = &size{methods: map[string]int{}}
		}
		return sizes[pkg].add(file, content)
	})
	if len(sizes) < 20 {
		t.Fatalf("only %d packages found: is this the module?", len(sizes))
	}
	for pkg, s := range sizes {
		for _, b := range budgets {
			n, of := b.measuredBy(s)
			if got := float64(n) * 1000 / float64(max(1, of)); n > b.few && got > b.most {
				t.Errorf("%s: %.1f %s, at most %g are allowed", pkg, got, b.what, b.most)
			}
		}
	}
}
