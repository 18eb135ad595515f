package summary

import (
	"encoding/hex"
	"html"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// unlinked replaces an address whose host is in no message.
const unlinked = "(address left out: it is not in the messages)"

// schemes matches schemes of addresses that name a host.
const schemes = `(?:https?|hxxps?|wss?|s?ftp|ssh)`

var (
	// titled matches a link within the folder with a title, which readers show on demand.
	titled = text.Pattern(`(\]\(\s*<?[^\s<>()]{1,300}>?)\s+["'(]([^"'()\n]{1,200})["')]\s*\)`)
	// numeric matches a host that is a number.
	numeric = text.Pattern(`^(?:0x[0-9a-f]+|\d{4,}|\[[0-9a-f:.]{3,}.*)$`)
	// linked matches a link with a label, addresses an address that readers make a link, of mail, or with a query.
	linked    = text.Pattern(`(?i)\[([^\[\]\n]{0,300})\]\(\s*<?((?:` + schemes + `:|[/\\]{2}|www\.)[^\s<>)]*)>?(?:\s[^()\n]{0,200})?\)`)
	addresses = text.Pattern(`(?i)<?\b(?:(?:https?|wss?|ftp):[/\\]*|[a-z][a-z0-9+.-]{1,15}:[/\\]{2,}|www\.)(?:\[[0-9a-f:.]{2,45}\])?[^\s<>"'\x60)\]}|]+>?|\b[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}\b|\b[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?::\d{1,5})?/[^\s<>"'\x60()\[\]{}|?]*\?[^\s<>"'\x60()\[\]{}|]*`)
)

// withoutUnknownLinks removes the targets of links whose host is in no message: a model did
// not read them there, and what follows them shows them what stands in the address.
func (e *SourceIndex) withoutUnknownLinks(answer string) string {
	answer = linked().ReplaceAllStringFunc(answer, func(link string) string {
		m := linked().FindStringSubmatch(link)
		if e.knowsHost(m[2]) {
			return link
		}
		return m[1]
	})
	answer = titled().ReplaceAllStringFunc(answer, func(link string) string {
		if m := titled().FindStringSubmatch(link); strings.Count(m[2], " ") > 1 && e.others.share(wordsOf(m[2])) < 1 && !e.isUsers(wordsOf(m[2])) {
			return m[1] + ")"
		}
		return link
	})
	return addresses().ReplaceAllStringFunc(answer, func(address string) string {
		bare := strings.TrimRight(address, ".,;:!?*_")
		if strings.HasPrefix(bare, "git@") || e.knowsHost(strings.Trim(bare, "<>")) { // or a repository
			return address
		}
		return unlinked + address[len(bare):]
	})
}

// knowsHost reports whether the host of an address, or the domain that it is in, is in a
// message. A name without a dot is one of a local network, and one with a placeholder none.
func (e *SourceIndex) knowsHost(address string) bool {
	host := hostOf(address)
	if strings.ContainsAny(host, "{}$*") {
		return true
	}
	if numeric().MatchString(host) {
		return false
	}
	for strings.Contains(host, ".") {
		if e.others.share(hostWords(host)) == 1 {
			return true
		}
		_, host, _ = strings.Cut(host, ".")
		if !strings.Contains(host, ".") {
			return false
		}
	}
	return !strings.Contains(host, "%")
}

// hostOf returns the host of an address as a browser reads it.
func hostOf(address string) string {
	address, _ = text.Fold(strings.ReplaceAll(html.UnescapeString(address), "。", "."))
	if i := strings.IndexByte(address, ':'); i >= 0 && !strings.ContainsAny(address[:i], "./\\") {
		address = address[i+1:]
	}
	host := strings.TrimLeft(address, `/\`)
	if i := strings.IndexAny(host, `/\?#`); i >= 0 {
		host = host[:i]
	}
	host = host[strings.LastIndexByte(host, '@')+1:]
	if strings.HasPrefix(host, "[") && !strings.HasPrefix(host, "[::1]") {
		return strings.ToLower(host)
	}
	host, _, _ = strings.Cut(host, ":")
	return strings.ToLower(strings.Trim(host, "."))
}

// addHostsOf indexes the names of hosts in a message.
func (e *SourceIndex) addHostsOf(m *chat.Message) {
	e.addHosts(m.Content.String())
	for _, c := range m.ToolCalls {
		e.addHosts(c.Arguments)
	}
}

// addHosts indexes the names of hosts in a text.
func (e *SourceIndex) addHosts(s string) {
	for from := 0; ; {
		n := strings.IndexByte(s[from:], '.')
		if n < 0 {
			return
		}
		start, end := from+n, from+n
		for start > from && inHost(s[start-1]) {
			start--
		}
		for end < len(s) && inHost(s[end]) {
			end++
		}
		if host := strings.Trim(s[start:end], "."); strings.Contains(host, ".") {
			host, _ = text.Fold(host)
			e.others.add(hostWords(strings.ToLower(host)))
		}
		from = end
	}
}

func inHost(c byte) bool { return isAlnum(c) || c == '.' || c == '-' || c == '_' || c >= utf8.RuneSelf }

// hostWords returns the words by which a host is indexed, as one phrase.
func hostWords(host string) string { return "name of " + hex.EncodeToString([]byte(host)) }
