package tokens

// The splitters return the end of the piece of s, which is valid UTF-8, that begins at s[i].
// They match as the patterns of tiktoken-go do in regexp2, which tries the alternatives in order.
// Both take linear time for a whole text: beyond the end of a piece they read only a run that
// becomes one or two pieces.

// splitCL100K splits by the pattern of CL100K:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func splitCL100K(s string, i int) int {
	c, n := classAt(s, i)
	next := i + n
	switch {
	case c&letter != 0:
		return run(s, next, letter)
	case c == number:
		return numbers(s, next)
	case c == newline:
		return whiteSpace(s, i)
	}
	if end := contraction(s, i); end > i {
		return end
	}
	if next < len(s) {
		switch d, n := classAt(s, next); {
		case d&letter != 0:
			return run(s, next+n, letter)
		case s[i] == ' ' && d&symbol != 0:
			c, next = d, next+n
		}
	}
	if c == space {
		return whiteSpace(s, i)
	}
	return run(s, run(s, next, symbol), newline)
}

// splitO200K splits by the pattern of O200K:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func splitO200K(s string, i int) int {
	c, n := classAt(s, i)
	next := i + n
	switch {
	case c&letter != 0:
		end, _ := word(s, i)
		return contraction(s, end)
	case c == number:
		return numbers(s, next)
	case c == newline:
		return whiteSpace(s, i)
	}
	end, cased := word(s, next)
	switch {
	case c == mark && (end == next || cased):
		return contraction(s, next) // the first alternative, without its optional character
	case end > next:
		return contraction(s, end)
	}
	if s[i] == ' ' && next < len(s) {
		if d, n := classAt(s, next); d == other {
			c, next = d, next+n
		}
	}
	if c == space {
		return whiteSpace(s, i)
	}
	end = run(s, next, symbol)
	for end < len(s) && (s[end] == '\r' || s[end] == '\n' || s[end] == '/') {
		end++
	}
	return end
}

// word returns the end of the match of the first two alternatives of O200K at s[i], between the
// optional character and the contraction, or i. Where no lower case follows, the first one
// goes back to the last character that both of its sets have; cased reports that there is
// none, so that only the second one matches.
func word(s string, i int) (end int, cased bool) {
	tail := i // end of the last character in both sets
	for end = i; end < len(s); {
		c, n := classAt(s, end)
		if c == lower {
			return run(s, end+n, lower|caseless|mark), false
		}
		if c&(upper|caseless|mark) == 0 {
			break
		}
		end += n
		if c != upper {
			tail = end
		}
	}
	if tail > i {
		return tail, false
	}
	return end, end > i
}

// numbers returns the end of at most two numbers at s[i].
func numbers(s string, i int) int {
	for range 2 {
		if i == len(s) {
			break
		}
		c, n := classAt(s, i)
		if c != number {
			break
		}
		i += n
	}
	return i
}

// contraction returns the end of a contraction at s[i], or i. Unlike OpenAI's library,
// regexp2 does not take ſ (U+017F) for an s.
func contraction(s string, i int) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return i
	}
	switch a := s[i+1] | 0x20; a {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v', 'l':
		if i+2 == len(s) {
			return i
		}
		if b := s[i+2] | 0x20; a == 'l' && b == 'l' || a != 'l' && b == 'e' {
			return i + 3
		}
	}
	return i
}

// whiteSpace returns the end of the piece of white space at s[i]: after the last line break of
// the run, or before its last character if text follows, which that belongs to.
func whiteSpace(s string, i int) int {
	end, last, line := i, i, i
	for end < len(s) {
		c, n := classAt(s, end)
		if c&(space|newline) == 0 {
			break
		}
		last = end
		end += n
		if c == newline {
			line = end
		}
	}
	switch {
	case line > i:
		return line
	case end < len(s) && last > i:
		return last
	}
	return end
}
