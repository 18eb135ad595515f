package extract

import (
	"strings"
	"unicode/utf8"
)

// paths finds what has slashes in it. A chain is a longest text of segments with
// single slashes between them; every match lies in one chain and runs up to the
// same place in it, the last segment that can end a path. So a chain is read
// once, whatever the number of its places where a path could begin.
func scanPaths(s string, yield func(kind Kind, start, end int)) {
	for done := 0; ; {
		slash := strings.IndexByte(s[done:], '/')
		if slash < 0 {
			return
		}
		slash += done
		first := segmentChars.backward(s, done, slash)
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

// chainEnd follows the segments from the first one, which ends at slash and may be
// empty. It returns where the last one starts that a path can end with, or -1,
// and the end of the chain.
func chainEnd(s string, first, slash int) (last, end int) {
	last = -1
	for {
		at := slash + 1
		c, _ := next(s, at)
		// What stands behind a leading slash is the first segment, not the last one.
		if c&nameChars != 0 && slash > first {
			last = at
		}
		if end = segmentChars.forward(s, at); end == at || end == len(s) || s[end] != '/' {
			return last, end
		}
		slash = end
	}
}

// pathStart returns the first place of a chain where a path begins that ends with the
// segment at last.
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
		_, i = next(s, i)
	}
	return 0, false
}

// startsPath reports whether none of [\w/.] stands before i.
func startsPath(s string, i int) bool {
	c, at := prev(s, i)
	return c&(word|dot) == 0 && (i == 0 || s[at] != '/')
}

// pathEnd returns the end of [\w@+-]+(?:\.[\w-]+)* at i.
func pathEnd(s string, i int) int {
	i = nameChars.forward(s, i)
	for i < len(s) && s[i] == '.' {
		end := labelChars.forward(s, i+1)
		if end == i+1 {
			break
		}
		i = end
	}
	return i
}

// isPath reports whether p is long enough and has two letters side by side.
func isPath(p string) bool {
	if len(p) < 6 || utf8.RuneCountInString(p) < 6 {
		return false
	}
	letters := 0
	for i := range len(p) {
		if !isLetter(p[i]) {
			letters = 0
			continue
		}
		if letters++; letters == 2 {
			return true
		}
	}
	return false
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

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
		start := labelChars.backward(s, low, at)
		if start == at {
			continue
		}
		if startsPath(s, start) {
			yield(File, start, end)
		}
	}
}

// extensionEnd returns the end of the known extension that is the whole word at i, or i.
func extensionEnd(s string, i int) int {
	end := i
	for end < len(s) && end < i+6 && s[end] < utf8.RuneSelf && byteClass[s[end]]&word != 0 {
		end++
	}
	if c, _ := next(s, end); c&word != 0 {
		return i
	}
	switch s[i:end] {
	case "go", "py", "ts", "tsx", "js", "jsx", "rs", "c", "h", "cpp", "java", "rb", "sh", "sql", "md",
		"json", "jsonl", "yaml", "yml", "toml", "lock", "mod", "sum", "css", "html", "txt", "csv":
		return end
	}
	return i
}
