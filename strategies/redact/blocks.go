package redact

import "strings"

// maskBlock masks the value of the secret name at s[name:end], in a file of YAML, that is not on
// the line of the name: a block after | or > at value, or a value on the next line. It reports
// whether the value is a block.
func maskBlock(s string, name, end, value int, e *edits) bool {
	n := s[name:end]
	block := value < len(s) && (s[value] == '|' || s[value] == '>')
	if block {
		value = blockSigns.end(s[:min(len(s), value+3)], value+1)
	}
	next := blank.end(s, value)
	size := lineBreak(s, next)
	if size == 0 {
		return false
	}
	escaped := s[next] == '\\'
	indent := indentOf(s, name)
	s = s[:min(len(s), next+maxBlock)]
	for at := next + size; at < len(s); {
		start := blank.end(s, at)
		stop := lineEnd(s, start, '\n')
		if escaped {
			stop = lineEnd(s, start, '"')
		}
		if start-at <= indent && stop > start {
			break
		}
		v := strings.TrimRight(s[start:stop], " \t")
		if block && isBlockSecret(n, v) {
			e.mask(s, start, start+len(v), KindAssignment)
		}
		if size = lineBreak(s, stop); size == 0 || !block {
			if from, to, quoted := valueAt(s, start); !block && from <= start+1 && strings.Trim(s[to:stop], "\"'") == "" && (quoted || mixed(s[from:to])) && len(s[from:to]) >= 6 && !spared(n, s[from:to], quoted) {
				e.mask(s, from, to, KindAssignment)
			}
			break
		}
		at = stop + size
	}
	return block
}

const maxBlock = 4096 // bytes

var blockSigns = setOf("0-9+-")

// lineBreak returns the length of the end of a line at i, also of one that is escaped.
func lineBreak(s string, i int) int {
	for _, end := range []string{"\n", "\r\n", `\n`, `\r\n`} {
		if strings.HasPrefix(s[i:], end) {
			return len(end)
		}
	}
	return 0
}

// indentOf returns the width of the blanks before the name at i, and before the dash of a list.
func indentOf(s string, i int) int {
	start := blank.start(s, i, maxBlank)
	if start > 0 && start < i && s[start-1] == '-' {
		i = start - 1
		start = blank.start(s, i, maxBlank)
	}
	return i - start
}

// isBlockSecret reports whether a line of the block of a name is a secret: one word, or several
// as in a passphrase.
func isBlockSecret(name, v string) bool {
	if strings.Contains(v, " ") {
		return !sentence(v) && !placeholder(v) && (mixed(v) && len(v) >= 10 && strings.Count(v, " ") < 6 || passphraseEnd(v, 0) == len(v))
	}
	return len(v) >= 4 && !spared(name, v, false) && (mixed(v) || isPassword(name))
}

// passphraseEnd returns the end of a passphrase that begins at i: four to eight words up to the
// end of a sentence or of a line, of which none is typical of sentences. It returns i without one.
func passphraseEnd(s string, i int) int {
	rest := s[i:min(len(s), i+128)]
	at := 0
	for n := 1; n <= 8; n++ {
		end := lowerDigit.end(rest, at)
		if end-at < 3 || end-at > 12 || isProse(rest[at:end]) || digits(rest[at:end]) {
			return i
		}
		if n >= 4 && (end == len(rest) || indexByte("\n\r\\.,;\"'`)", rest[end])) {
			return i + end
		}
		if end == len(rest) || rest[end] != ' ' {
			return i
		}
		at = end + 1
	}
	return i
}

var lowerDigit = setOf("0-9a-z")

// kubernetesSecrets finds the values of the data of a Secret of Kubernetes in YAML, whatever their names are.
func kubernetesSecrets(t *source, e *edits) {
	s := t.s
	for at := range t.literal("kind: Secret\n") {
		start := max(0, strings.LastIndex(s[max(0, at-maxBlock):at], "\n---")+1) + max(0, at-maxBlock)
		rest, _, _ := strings.Cut(s[start:min(len(s), start+4*maxBlock)], "\n---")
		inData := false
		for line := range strings.Lines(rest) {
			name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
			indented := strings.TrimLeft(line, " ") != line
			switch {
			case !indented:
				inData = line == "data:\n" || line == "stringData:\n"
			case inData && ok && strings.TrimSpace(name) != "":
				if from, to, _ := valueAt(value, 0); to-from >= 8 && !placeholder(value[from:to]) {
					e.mask(s, start+len(name)+len(": ")+from, start+len(name)+len(": ")+to, KindAssignment)
				}
			}
			start += len(line)
		}
	}
}
