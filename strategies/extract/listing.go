package extract

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/identifier"
	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolname"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// option is an object of a listing. said marks the values that were talked about.
type option struct {
	values []argument.Field
	said   []bool
	// names are the values that no other option has, under keys whose values tell options apart;
	// numbers are those with digits that not all have.
	names, numbers []string
}

const (
	// minDifferent is the share of the objects of a listing from which the values of a key that are
	// different are names: "True" is none, although no other object may have it.
	minDifferent = 0.75
	// minNameLen is the size of the shortest name.
	minNameLen = 4
	// nearlyAs is how many different values a key of names has beside the key with the most.
	nearlyAs = 0.9
)

// readObjects reads a result in JSON: one object is what came of the call, several, or the only one that was
// looked for, are a listing.
func (s *history) readObjects(c *toolCall, result string) (listing bool) {
	result = strings.TrimSpace(result)
	if len(result) > argument.MaxJSON || result == "" || result[0] != '{' && result[0] != '[' {
		return false
	}
	fs, ok := argument.Parse(result)
	if !ok {
		return false
	}
	var objects [][]argument.Field
	for i := 0; i < len(fs); {
		from, object := i, fs[i].Object
		for i < len(fs) && fs[i].Object == object {
			i++
		}
		if vs := argument.Short(fs[from:i]); len(vs) > 0 {
			objects = append(objects, vs)
		}
	}
	if len(objects) == 1 && (c.acts || result[0] == '{' || !toolname.Looks(c.tool) || toolname.Takes(c.tool)) {
		c.setResult(objects[0], fs)
		return false
	}
	if own := ownValues(result, fs); own != nil {
		c.setResult(own, fs)
		for _, f := range c.innerObjects(fs) {
			if c.result = append(c.result, f); paying().MatchString(f.Path) && len(f.Value) <= maxPaid { // it is of more use than the rest
				c.result = slices.Insert(c.result[:len(c.result)-1], 0, f)
			}
		}
		slices.SortStableFunc(c.result, func(a, b argument.Field) int { return strings.Count(a.Value, "@") - strings.Count(b.Value, "@") }) // which the next call seldom needs
		return false
	}
	rows := rowsOf(fs)
	if len(rows) == 0 || len(rows) > maxOptions || len(rows) > 1 && !isListing(rows) || len(rows) == 1 && (c.acts || !toolname.Looks(c.tool) || toolname.Takes(c.tool)) {
		return false
	}
	if c.options = optionsOf(rows); len(rows) == 1 { // all that was found
		if s.found != nil {
			s.found.dropOptions()
		}
		c.chosen, c.single, s.found = 0, true, c
		return true
	}
	if len(s.listings) == maxListings {
		s.listings[0].dropOptions()
	}
	s.listings = appendBounded(s.listings, c, maxListings)
	return true
}

// setResult notes the values of the result of a call, an object, and those that it lists as not done.
func (c *toolCall) setResult(own, all []argument.Field) {
	c.result = withoutLinks(withoutMarks(own, toolname.Looks(c.tool)))
	if f := lacked(all); c.acts && f.Key != "" {
		c.result = append(c.result, f)
	}
}

// withoutMarks returns the values of a result without the ids of others than itself that no person reads, and
// without the times at which it was written: of what was looked up, the time at which it was made may decide what
// can be done with it.
func withoutMarks(vs []argument.Field, looked bool) []argument.Field {
	return slices.DeleteFunc(vs, func(f argument.Field) bool {
		return writtenAt().MatchString(f.Key) && (!looked || !strings.HasPrefix(strings.ToLower(f.Key), "created")) || !strings.EqualFold(f.Key, "id") && identifier.KindOf(f.Value) == identifier.UUID
	})
}

// writtenAt is a key for when a record was written.
var writtenAt = text.Pattern(`(?i)^(?:created|updated|modified)_?at$`)

// withoutLinks returns what tells of an object of a service that has an address for people: not the
// addresses for programs and the like.
func withoutLinks(vs []argument.Field) []argument.Field {
	if !isLinked(vs) {
		return vs
	}
	return slices.DeleteFunc(vs, func(f argument.Field) bool { return !linkedKeys[f.Key] })
}

func isLinked(vs []argument.Field) bool {
	return slices.ContainsFunc(vs, func(f argument.Field) bool { return f.Key == "html_url" })
}

// linkedKeys are the keys of values that tell of an object with an address.
var linkedKeys = text.Set(`html_url id number name title state status message merged draft path ref tag_name sha conclusion`)

// optionsOf returns the objects of a listing as options.
func optionsOf(rows [][]argument.Field) []option {
	times := map[argument.Field]int{} // of a value under its key
	holders, different := map[string]int{}, map[string]int{}
	most := 0.0 // the largest share of different values
	key := func(f argument.Field) string { return f.Path + " " + f.Key }
	share := func(f argument.Field) float64 { return float64(different[key(f)]) / float64(holders[key(f)]) }
	isName := func(f argument.Field) bool {
		return len(f.Value) >= minNameLen && strings.ContainsFunc(f.Value, unicode.IsLetter)
	}
	for _, vs := range rows {
		for _, f := range vs {
			f.Object, f.Row = 0, 0
			holders[key(f)]++
			if times[f]++; times[f] == 1 {
				different[key(f)]++
			}
		}
	}
	for _, vs := range rows {
		for _, f := range vs {
			if isName(f) {
				most = max(most, share(f))
			}
		}
	}
	var out []option
	for _, vs := range rows {
		o := option{values: vs, said: make([]bool, len(vs))}
		for _, f := range vs {
			f.Object, f.Row = 0, 0
			switch own := times[f] < len(rows); {
			case own && times[f] == 1 && isName(f) && share(f) >= max(minDifferent, nearlyAs*most):
				o.names = append(o.names, f.Value)
			case own && len(f.Value) > 1 && strings.ContainsFunc(f.Value, unicode.IsDigit):
				o.numbers = append(o.numbers, f.Value)
			}
		}
		out = append(out, o)
	}
	return out
}

// rowsOf returns the short values of each object in a list, with those of the objects in it.
func rowsOf(fs []argument.Field) [][]argument.Field {
	var order []int
	rows := map[int][]argument.Field{}
	for _, f := range fs {
		if _, ok := rows[f.Row]; !ok {
			order = append(order, f.Row)
		}
		rows[f.Row] = append(rows[f.Row], f)
	}
	var out [][]argument.Field
	for _, row := range order {
		slices.SortStableFunc(rows[row], func(a, b argument.Field) int { return min(len(a.Path), 1) - min(len(b.Path), 1) }) // its own come first
		if vs := argument.Short(rows[row]); len(vs) > 0 {
			out = append(out, vs)
		}
	}
	return out
}

// minWhole is the number of values of its own that an object with others in it has at least.
const minWhole = 3

// ownValues returns the short values of one object that contains others; nil if the result is
// no such object.
func ownValues(result string, fs []argument.Field) []argument.Field {
	if result[0] != '{' {
		return nil
	}
	own := argument.Short(slices.DeleteFunc(slices.Clone(fs), func(f argument.Field) bool { return f.Object != 1 }))
	if len(own) < minWhole {
		return nil
	}
	return own
}

// isListing reports whether most objects are of a kind that comes more than once, as their
// first keys tell.
func isListing(objects [][]argument.Field) bool {
	times := map[string]int{}
	for _, vs := range objects {
		times[vs[0].Key]++
	}
	alike := 0
	for _, n := range times {
		if n > 1 {
			alike += n
		}
	}
	return 5*alike >= 4*len(objects) && alike > 0
}

// dropOptions keeps of a listing what was said of the chosen option, and drops the others.
func (c *toolCall) dropOptions() {
	c.newest = false // a text may have been written in between
	c.result, c.options = c.outcomeValues(), nil
}

// markNewest marks the newest listings if what they found may be asked for.
func (s *history) markNewest() {
	for i, c := range append(slices.Clip(s.listings), s.found) {
		if c != nil {
			c.newest = i >= len(s.listings)-1 && c.after >= s.requests-1
		}
	}
}

// mention marks the values of listings that a text of the user or the assistant contains, and reports
// whether it names an option. That is the one that is talked about until another one is.
func (s *history) mention(said string) (named bool) {
	said = text.Head(said, maxRequest)
	if s.found != nil {
		s.found.options[0].mark(said)
	}
	for i, c := range slices.Backward(s.listings) {
		least := minNumbers // of another option: any text has some number
		if c.chosen < 0 && i == len(s.listings)-1 {
			least = 1
		}
		k := c.optionIn(said, least)
		if named = k >= 0; named {
			if c.chosen != k {
				c.after = s.requests // it was offered, or asked for, now
			}
			c.chosen, s.discussed = k, c
		}
		if c.chosen >= 0 && (named || i == len(s.listings)-1) {
			c.options[c.chosen].mark(said)
		}
		if named {
			return true
		}
	}
	return false
}

// mark marks the values of an option that a text contains.
func (o *option) mark(said string) {
	for k, f := range o.values {
		o.said[k] = o.said[k] || len(f.Value) > 1 && containsValue(said, f.Value)
	}
}

// minNumbers is the number of numbers that tell which option without a name is talked about.
const minNumbers = 2

// optionIn returns the index of the option that a text names, or, if none has a name, of the one with the
// most numbers in the text, and not fewer than least; -1 for none, and for several: these are listed.
func (c *toolCall) optionIn(said string, least int) int {
	found, most := -1, least-1
	named, several, names, tied := "", false, false, false
	for k, o := range c.options {
		names = names || len(o.names) > 0
		i := slices.IndexFunc(o.names, func(n string) bool { return containsValue(said, n) })
		switch {
		case i < 0 || named != "" && strings.Contains(named, o.names[i]):
		case named == "" || strings.Contains(o.names[i], named):
			found, named = k, o.names[i]
		default:
			several = true
		}
		switch n := count(o.numbers, func(n string) bool { return containsValue(said, n) }); {
		case named != "":
		case n > most:
			found, most, tied = k, n, false
		case n == most && n >= minNumbers:
			tied = true
		}
	}
	if several || named == "" && (names || tied) {
		return -1
	}
	return found
}

// count returns the number of the elements for which f is true.
func count(list []string, f func(string) bool) (n int) {
	for _, x := range list {
		if f(x) {
			n++
		}
	}
	return n
}

// isLower reports whether a text has no capitals, as some people write.
func isLower(s string) bool { return !strings.ContainsFunc(s, unicode.IsUpper) }

// outcomeValues returns what came of a call: the values of its one object, or what was said
// of the option that was chosen, all of the newest listing.
func (c *toolCall) outcomeValues() []argument.Field {
	if c.chosen < 0 || c.options == nil {
		return c.result
	}
	o := c.options[c.chosen]
	var out []argument.Field
	for k, f := range o.values {
		if c.newest && (f.Path == "" || priced().MatchString(f.Path+" "+f.Key)) || o.said[k] || slices.Contains(o.names, f.Value) && len(out) == 0 {
			out = append(out, f)
		}
	}
	if c.single && !slices.ContainsFunc(out, func(f argument.Field) bool { return !slices.ContainsFunc(c.arguments, f.Is) }) { // no more than what was asked
		return withoutLinks(withoutMarks(slices.Clone(o.values), toolname.Looks(c.tool)))
	}
	return out
}

// listed returns what a listing lists in about n characters, "" if it is none: of each option as many
// values as there is room for, without what was asked for and what all have, those first that a request
// is about. Where two of each have no room, a third or more of the options are listed.
func (c *toolCall) listed(n int, request string) string {
	asked := strings.ToLower(request)
	known := slices.Clone(c.arguments)
	var shared []argument.Field // where all take place, and the like
	if len(c.options) > 1 {
		for _, f := range c.options[0].values {
			if slices.ContainsFunc(c.options, func(o option) bool { return !slices.ContainsFunc(o.values, f.Equals) }) {
				continue
			}
			if known = append(known, f); len(shared) < maxShared && len(f.Value) > minNameLen && strings.Contains(f.Value, " ") && !slices.ContainsFunc(c.arguments, f.Is) {
				shared = append(shared, f)
			}
		}
	}
	all := argument.Format(shared, nil, nil, true)
	if all = "all: " + all + rowSeparator; len(shared) == 0 || 3*len(all) > n {
		all = ""
	}
	n -= len(all)
	// The values of each option, and in the order that counts where there is no room for all.
	owns, ranked := make([][]argument.Field, len(c.options)), make([][]argument.Field, len(c.options))
	for i, o := range c.options {
		owns[i] = slices.DeleteFunc(slices.Clone(o.values), func(f argument.Field) bool { return slices.ContainsFunc(known, f.Is) })
		ranked[i] = o.ranked(owns[i], asked)
	}
	rows := func(most int) (rows []string, size int) {
		listed := map[string]bool{}
		last, labelled := "", 0     // label, and the characters since
		var labels []argument.Field // those of the option before
		for i, own := range owns {
			if len(own) > most {
				own = ranked[i][:most]
			}
			row := argument.Format(own, nil, nil, true)
			if row == "" || listed[row] {
				continue
			}
			listed[row] = true
			label := strings.ReplaceAll(own[0].Key, "_", " ") + " "
			lastWord := label[strings.LastIndexByte(strings.TrimSuffix(label, " "), ' ')+1:] // as short values have it
			switch row = strings.TrimPrefix(strings.TrimPrefix(row, label), lastWord); {
			case label != last || labelled > maxBelowLabel:
				row, last, labelled = label+row, label, 0
			case len(own) <= maxUnlabelled && slices.EqualFunc(own, labels, func(a, b argument.Field) bool { return a.Key == b.Key && a.Path == b.Path }):
				var short []string
				for _, f := range own {
					short = append(short, f.Value)
				}
				row = strings.Join(short, ", ")
			}
			labels = own
			rows = append(rows, row)
			labelled += utf8.RuneCountInString(row) + len(rowSeparator)
			size += utf8.RuneCountInString(row) + len(rowSeparator)
		}
		return rows, size - len(rowSeparator)
	}
	for most := argument.MaxCount; most > 1; most-- {
		if found, size := rows(most); size <= n {
			return all + strings.Join(found, rowSeparator)
		}
	}
	// The first options with what a choice needs tell more than the names of all.
	found, size := rows(minListed)
	left := 0
	for ; size > n; left++ {
		size -= utf8.RuneCountInString(found[len(found)-1-left]) + len(rowSeparator)
	}
	if first := found[:len(found)-left]; len(first) >= max(minListed, left/2) {
		return all + strings.Join(first, rowSeparator) + fmt.Sprintf("%sand %d more", rowSeparator, left)
	}
	found, _ = rows(1)
	return all + strings.Join(found, rowSeparator)
}

const (
	// maxShared is the number of values of all options that are told.
	maxShared = 2
	// minListed is the number of values of the first options of a listing of which not all have room, and of these options.
	minListed    = 3
	rowSeparator = "; "
)

// maxBelowLabel is the number of characters of options behind which their label is told again.
const maxBelowLabel = 58

// maxUnlabelled is the number of values of an option that need no keys where the option before has them.
const maxUnlabelled = 3

// ranked returns values of an option in the order of their ranks.
func (o *option) ranked(values []argument.Field, asked string) []argument.Field {
	ranks := map[argument.Field]int{}
	for _, f := range values {
		if _, ok := ranks[f]; !ok {
			ranks[f] = o.rank(f, asked)
		}
	}
	return slices.SortedStableFunc(slices.Values(values), func(a, b argument.Field) int { return ranks[a] - ranks[b] })
}

// rank orders the values of an option by what a choice depends on: its name, what the request, in small
// letters, asks for, prices, times, the rest.
func (o *option) rank(f argument.Field, asked string) int {
	key := f.Path + " " + f.Key
	isPrice, isTime := priced().MatchString(key), timed().MatchString(f.Key) || argument.IsClock(f.Value)
	arrives := strings.Contains(strings.ToLower(f.Key), "arriv") && !strings.Contains(asked, "arriv") // when it leaves says more
	switch {
	case slices.Contains(o.names, f.Value) && naming().MatchString(f.Key):
		return 0
	case len(o.names) > 0 && f.Value == o.names[0], len(o.names) == 0 && f == o.values[0]:
		return 1
	case isPrice && prose.ContainsWord(asked, strings.ToLower(f.Key)), isTime && !arrives && askingForTime().MatchString(asked) && !askingForCost().MatchString(asked):
		return 2
	case isPrice:
		return 3
	case isTime && !arrives:
		return 4
	case isTime:
		return 5
	}
	return 6
}

// naming, priced and timed are in the keys of names, of prices and of times; askingForTime and askingForCost are in a
// request for which times or prices count most.
var (
	naming        = text.Pattern(`(?i)name|title`)
	priced        = text.Pattern(`(?i)price|fare|cost|amount|total|rent\b|fee\b|charge`)
	timed         = text.Pattern(`(?i)time|date|duration`)
	askingForTime = text.Pattern(`\b(?:fast|quick|short|earl|late|soon|morning|noon|evening|night|time\b|when\b|leav|depart|arriv|[ap]m\b|(?:before|after) (?:\d|noon))|\b\d+ ?[ap]m\b`)
	askingForCost = text.Pattern(`\b(?:cheap|price|cost|expensive|afford|budget|lowest|fare)`)
)

// wasTaken reports whether a later call that was done tells most of what was said of a listing.
func (s *history) wasTaken(i int) bool {
	said := s.calls[i].outcomeValues()
	return len(said) > 0 && slices.ContainsFunc(s.calls[i+1:], func(c *toolCall) bool {
		if !c.acts || !c.done || c.failed {
			return false
		}
		told := 0
		for _, f := range said {
			is := func(a argument.Field) bool { return a.Value == f.Value }
			if slices.ContainsFunc(c.arguments, is) || slices.ContainsFunc(c.result, is) {
				told++
			}
		}
		return told >= len(said)-len(said)/4
	})
}
