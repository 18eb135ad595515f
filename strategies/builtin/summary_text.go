package builtin

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// The sections of a summary message. Quotations follow their length, so that none can be
// mistaken for a section.
const (
	summaryMarker  = "[Conversation Summary]"
	verbatimMarker = "[Verbatim User Messages]"
	noteMarker     = "[Note]"

	summaryNote = "The conversation up to here was replaced by this summary. What the user said, quoted or in the messages " +
		"that follow, comes before what the summary says. Take no step that the user has not asked for; ask if in doubt."
	// acknowledgment separates a summary from a user message, since some providers require
	// alternating roles.
	acknowledgment = "Understood."

	quotesTrimmed = "Earlier ones are left out or cut."
	quoteCut      = "\n[... middle elided ...]\n"
)

// summaryText is a parsed summary message.
type summaryText struct {
	body string
	// quotes are messages of the user, oldest first.
	quotes []string
	// trimmed reports whether quotations were dropped or cut.
	trimmed bool
}

// isSummaryText reports whether a text is that of a summary message.
func isSummaryText(s string) bool { return strings.HasPrefix(s, summaryMarker) }

// trim limits the quotations to n characters in total. It removes the oldest, and the
// middle of the newest if it alone is too long.
func (s *summaryText) trim(n int) {
	total, lengths := 0, make([]int, len(s.quotes))
	for i, q := range s.quotes {
		lengths[i] = utf8.RuneCountInString(q)
		total += lengths[i]
	}
	s.trimmed = false
	for len(s.quotes) > 1 && total > n {
		total -= lengths[0]
		s.quotes, lengths, s.trimmed = s.quotes[1:], lengths[1:], true
	}
	if total > n {
		q := s.quotes[0]
		s.quotes[0], s.trimmed = text.Head(q, n/2)+quoteCut+text.Tail(q, n/2), true
	}
}

// String returns the text of the message.
func (s *summaryText) String() string {
	var b strings.Builder
	b.WriteString(summaryMarker + "\n" + strings.ReplaceAll(s.body, verbatimMarker, strings.Trim(verbatimMarker, "[]")))
	if len(s.quotes) > 0 {
		b.WriteString("\n\n" + verbatimMarker + "\nWhat the user said, oldest first.")
		if s.trimmed {
			b.WriteString(" " + quotesTrimmed)
		}
		for _, q := range s.quotes {
			fmt.Fprintf(&b, "\n%s%d%s\n%s", quoteOpen, utf8.RuneCountInString(q), quoteClose, q)
		}
	}
	b.WriteString("\n\n" + noteMarker + "\n" + summaryNote)
	return b.String()
}

// A quotation begins with a line with its number of characters.
const (
	quoteOpen  = "--- "
	quoteClose = " characters ---"
)

// parseSummary parses the text of a summary message. Unrecognized text becomes part of the
// body.
func parseSummary(text string) summaryText {
	body := strings.TrimPrefix(text, summaryMarker)
	if i := strings.Index(body, "\n\n"+verbatimMarker+"\n"); i >= 0 {
		if s, ok := parseQuotes(body[i+len(verbatimMarker)+3:]); ok {
			s.body = strings.TrimSpace(body[:i])
			return s
		}
	}
	if i := strings.LastIndex(body, "\n\n"+noteMarker+"\n"); i >= 0 {
		body = body[:i]
	}
	return summaryText{body: strings.TrimSpace(body)}
}

// parseQuotes parses the section of quotations after its marker.
func parseQuotes(section string) (s summaryText, ok bool) {
	head, rest, _ := strings.Cut(section, "\n")
	s.trimmed = strings.HasSuffix(head, quotesTrimmed)
	for strings.HasPrefix(rest, quoteOpen) {
		length, quote, _ := strings.Cut(rest[len(quoteOpen):], "\n")
		n, err := strconv.Atoi(strings.TrimSuffix(length, quoteClose))
		q := text.Head(quote, n)
		if err != nil || n < 1 || utf8.RuneCountInString(q) < n {
			return summaryText{}, false
		}
		s.quotes = append(s.quotes, q)
		rest = strings.TrimPrefix(quote[len(q):], "\n")
	}
	return s, len(s.quotes) > 0
}

const summarySystem = "You write summaries of conversations between a user and an assistant that uses tools. " +
	"You state what was said and done, add nothing, and answer no question that occurs in it."

const summaryForm = `Keep names, numbers, paths, links, dates and identifiers exactly as they are. Write in the user's language. Name only tools that were called. Claim no wish or decision that the user did not state; a condition ("after the review") stays a condition. Use these sections:

## Key Facts & Decisions
what is known and was decided, preferences and constraints

## Tool Outcomes
each tool that was called, and what came of it

## Flow
how the conversation went, in order, in short`

// summaryRequest returns the request for a first summary of lines, or for an update of a
// previous one.
func summaryRequest(previous, lines string) string {
	if previous == "" {
		return "Summarize this conversation.\n\n<messages>\n" + lines + "\n</messages>\n\n" + summaryForm
	}
	return "Bring a summary up to date with what was said since. Keep what still holds, and drop what newer messages have made obsolete." +
		"\n\n<summary>\n" + previous + "\n</summary>\n\n<messages>\n" + lines + "\n</messages>\n\n" + summaryForm
}
