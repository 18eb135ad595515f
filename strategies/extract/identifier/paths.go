package identifier

import (
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/charclass"
)

// scanPaths finds paths. A chain is a longest run of segments with single slashes between
// them. All matches in a chain end at the same place, its last segment that can end a
// path, so each chain is read once no matter how many places could begin a path.
func scanPaths(s string, yield func(kind Kind, start, end int)) {
	for done := 0; ; {
		slash := strings.IndexByte(s[done:], '/')
		if slash < 0 {
			return
		}
		slash += done
		first := charclass.Path.Backward(s, done, slash)
		last, end := chainEnd(s, first, slash)
		if from, ok := pathStart(s, done, first, last); ok {
			to := pathEnd(s, last)
			if isPath(s[from:to]) {
				yield(Path, from, to)
			}
		}
		done = end
	}
}

// chainEnd follows a chain from its first segment, which ends at slash and may be empty. It
// returns the start of the last segment that can end a path, or -1, and the end of the
// chain.
func chainEnd(s string, first, slash int) (last, end int) {
	last = -1
	for {
		at := slash + 1
		c, _ := charclass.Next(s, at)
		// The segment after a leading slash is the first one, not the last.
		if c&nameChars != 0 && slash > first {
			last = at
		}
		if end = charclass.Path.Forward(s, at); end == at || end == len(s) || s[end] != '/' {
			return last, end
		}
		slash = end
	}
}

// pathStart returns the first index of a chain at which a path can begin that ends with
// the segment at last.
func pathStart(s string, done, first, last int) (int, bool) {
	if first > done && s[first-1] == '~' && first < last && startsPath(s, first-1) {
		return first - 1, true
	}
	for i := first; i < last; {
		base := i
		if s[i] == '/' {
			base++
		}
		if base < last && startsPath(s, i) {
			return i, true
		}
		_, i = charclass.Next(s, i)
	}
	return 0, false
}

// startsPath reports whether the character before i is none of [\w/.].
func startsPath(s string, i int) bool {
	c, at := charclass.Prev(s, i)
	return c&(charclass.Word|charclass.Dot) == 0 && (i == 0 || s[at] != '/')
}

// pathEnd returns the end of [\w@+-]+(?:\.[\w-]+)* at i.
func pathEnd(s string, i int) int {
	i = nameChars.Forward(s, i)
	for i < len(s) && s[i] == '.' {
		end := labelChars.Forward(s, i+1)
		if end == i+1 {
			break
		}
		i = end
	}
	return i
}

// isPath reports whether p is long enough and contains two adjacent ASCII letters.
func isPath(p string) bool {
	if len(p) < 6 || utf8.RuneCountInString(p) < 6 {
		return false
	}
	letters := 0
	for i := range len(p) {
		if !charclass.Alpha.Has(p[i]) {
			letters = 0
			continue
		}
		if letters++; letters == 2 {
			return true
		}
	}
	return false
}

// scanFiles finds file names with a known extension.
func scanFiles(s string, yield func(kind Kind, start, end int)) {
	for i := 0; ; {
		at := strings.IndexByte(s[i:], '.')
		if at < 0 {
			return
		}
		at += i
		low := i
		i = at + 1
		end := extensionEnd(s, i)
		if end == i {
			continue
		}
		start := labelChars.Backward(s, low, at)
		if start == at {
			continue
		}
		if startsPath(s, start) {
			yield(File, start, end)
		}
	}
}

// extensionEnd returns the end of the known extension that makes up the whole word at i,
// or i.
func extensionEnd(s string, i int) int {
	end := i
	for end < len(s) && end < i+6 && charclass.ASCIIWord.Has(s[end]) {
		end++
	}
	if c, _ := charclass.Next(s, end); c&charclass.Word != 0 {
		return i
	}
	switch s[i:end] {
	case "go", "py", "ts", "tsx", "js", "jsx", "rs", "c", "h", "cpp", "java", "rb", "sh", "sql", "md",
		"json", "jsonl", "yaml", "yml", "toml", "lock", "mod", "sum", "css", "html", "txt", "csv":
		return end
	}
	return i
}
