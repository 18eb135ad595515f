package prose

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// IsLetterOrDigit reports whether r is part of a word of any script.
func IsLetterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// Sentences returns the sentences of s, which end with a punctuation mark or with the line.
// They share memory with s.
func Sentences(s string) []string {
	var out []string
	for _, line := range SplitLines(s) {
		start := 0
		for i, r := range line {
			end := i + utf8.RuneLen(r)
			if !EndsSentence(r) || r < utf8.RuneSelf && end < len(line) && line[end] != ' ' || r == '.' && abbreviates(line[start:end], strings.TrimLeft(line[end:], " ")) {
				continue
			}
			out = append(out, Unmarked(line[start:end]))
			start = end
		}
		if rest := Unmarked(line[start:]); rest != "" {
			out = append(out, rest)
		}
	}
	return out
}

// FirstSentence returns the first of the sentences of s, "" if it has none.
func FirstSentence(s string) string { return append(Sentences(s), "")[0] }

// abbreviates reports whether the point at the end of s is that of an abbreviation or of an ordinal number, behind which
// the sentence goes on with next.
func abbreviates(s, next string) bool {
	at := strings.LastIndexAny(s, " \t(/") + 1
	word := s[at : len(s)-1]
	first, _ := utf8.DecodeRuneInString(next)
	switch always, known := abbreviations[word]; {
	case word == "" || next == "":
		return false
	case known:
		return always || unicode.IsDigit(first)
	case len(word) == 1 && unicode.IsLetter(rune(word[0])): // it may be in two parts
		former := strings.LastIndexByte(strings.TrimRight(s[:at], " "), ' ') + 1
		return twoPart().MatchString(s[at:]+next) || twoPart().MatchString(s[former:])
	case len(word) <= len("22") && strings.Trim(word, "0123456789") == "":
		before := text.Tail(s[:at], maxAbbreviation)
		return monthName().MatchString(next) || ordinal().MatchString(before) || unicode.IsLower(first) && dating().MatchString(before)
	}
	return unicode.IsDigit(first) && strings.HasSuffix(word, "str") || unicode.IsLower(first) && pointed().MatchString(word)
}

// maxAbbreviation is the size, in characters, of what before a number tells that it is an ordinal one.
const maxAbbreviation = 12

// abbreviations are words with a point that more follows: a number where it is false.
var abbreviations = map[string]bool{
	"e.g": true, "i.e": true, "vs": true, "cf": true, "etc": true, "approx": true, "incl": true, "excl": true,
	"Mr": true, "Mrs": true, "Ms": true, "Dr": true, "dr": true, "Prof": true, "St": true, "Mt": true, "Rev": true,
	"bzw": true, "ca": true, "Ca": true, "inkl": true, "exkl": true, "zzgl": true, "ggf": true, "evtl": true, "sog": true, "z.B": true, "d.h": true, "u.a": true, "Nr": true, "nr": true, "Hr": true, "Tel": true, "tel": true,
	"Sr": true, "Sra": true, "Srta": true, "Dra": true, "Ud": true, "Uds": true, "Mme": true, "Mlle": true,
	"Art": false, "Abs": false, "Kap": false, "Fig": false, "fig": false, "Eq": false, "Sec": false, "Vol": false, "Ch": false, "p": false, "pp": false, "pág": false, "max": false, "Max": false, "min": false, "Min": false,
	"Jan": false, "Feb": false, "Mar": false, "Apr": false, "Jun": false, "Jul": false, "Aug": false, "Sep": false, "Sept": false, "Oct": false, "Okt": false, "Nov": false, "Dec": false, "Dez": false,
}

// EndsSentence reports whether r ends a sentence.
func EndsSentence(r rune) bool { return strings.ContainsRune(".!?。！？؟।", r) }

// IsQuestion reports whether a sentence is a question.
func IsQuestion(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRight(s, "\"'`)*_»”’ "))
	// A Greek question ends with a semicolon.
	return r == '?' || r == '？' || r == '؟' || r == ';' && strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Greek, r) })
}

var (
	// twoPart is an abbreviation in two parts, pointed one with points between its letters.
	twoPart = text.Pattern(`^(?:z\. ?B|d\. ?h|u\. ?a|s\. ?[ou]|i\. ?d|p\. ?ej|[ap]\. ?m|e\. ?g|i\. ?e)\.`)
	pointed = text.Pattern(`^(?:\p{L}\.)+\p{L}$`)
	// monthName begins what follows the number of a day; ordinal and dating end what comes before an ordinal number, dating
	// if the sentence goes on.
	monthName = text.Pattern(`(?i)^(?:jan(?:uar|ner|\.)|jänner|feb(?:ruar|er|\.)|märz|mrz\.|apr(?:il|\.)|mai|juni|juli|aug(?:ust|\.)|sept?(?:ember|\.)|okt(?:ober|\.)|nov(?:ember|\.)|dez(?:ember|\.))(?:\P{L}|$)`)
	ordinal   = text.Pattern(`(?i)(?:^|\W)(?:der|die|das|dem|den|des|im|zum|zur|vom|beim) $`)
	dating    = text.Pattern(`(?i)(?:^|\W)(?:am|bis|ab|seit|und|oder|jede[nrms]?) $`)
)
