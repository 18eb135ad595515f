package extract

import (
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	maxValues     = 16  // of the arguments or of a result of a call
	maxShortValue = 120 // characters of one
	maxKey        = 40  // of its key
	maxOptions    = 40  // of a listing
	maxListings   = 3
	maxJSON       = 64 << 10 // bytes of a result that is read as JSON
	maxFailures   = 12       // lines of one result
)

// option is an object of a listing. said marks the values that were talked about.
type option struct {
	values []argument
	said   []bool
	// names are the values that no other option has, under keys whose values tell options apart;
	// numbers are those with digits that not all have.
	names, numbers []string
}

// record adds a call. If there are too many, the oldest that only looked goes.
func (s *history) record(c *toolCall) {
	if len(s.calls) >= maxCalls {
		i := max(0, slices.IndexFunc(s.calls[:maxCalls/2], func(c *toolCall) bool { return !c.acts }))
		s.calls = slices.Delete(s.calls, i, i+1)
	}
	s.calls = append(s.calls, c)
}

// shortValues returns copies of the values that are one short line.
func shortValues(fs []argument) []argument {
	var out []argument
	for _, f := range fs {
		v := strings.TrimSpace(f.value)
		if v == "" || v == "null" || text.Longer(v, maxShortValue) || !isPrintable(v) || text.Longer(f.key, maxKey) || !isPrintable(f.key) {
			continue
		}
		if out = append(out, argument{key: strings.Clone(f.key), value: strings.Clone(v), object: f.object, path: strings.Clone(f.path), list: strings.Clone(f.list)}); len(out) == maxValues {
			break
		}
	}
	return out
}

// readObjects reads a result in JSON: one object is what came of the call, several are a
// listing.
func (s *history) readObjects(c *toolCall, result string) (listing bool) {
	result = strings.TrimSpace(result)
	if len(result) > maxJSON || result == "" || result[0] != '{' && result[0] != '[' {
		return false
	}
	fs, ok := parseArguments(result)
	if !ok {
		return false
	}
	var objects [][]argument
	for i := 0; i < len(fs); {
		from, object := i, fs[i].object
		for i < len(fs) && fs[i].object == object {
			i++
		}
		if vs := shortValues(fs[from:i]); len(vs) > 0 {
			objects = append(objects, vs)
		}
	}
	if len(objects) == 1 {
		c.result = withoutLinks(objects[0])
		return false
	}
	if own := ownValues(result, fs); own != nil {
		c.result = withoutLinks(own)
		s.inner, s.innerOf = rowsOf(slices.DeleteFunc(fs, func(f argument) bool { return f.row == 1 })), c
		return false
	}
	rows := rowsOf(fs)
	if len(rows) > maxOptions || !isListing(rows) {
		return false
	}
	c.options = optionsOf(rows)
	if len(s.listings) == maxListings {
		s.listings[0].settle()
	}
	s.listings = appendBounded(s.listings, c, maxListings)
	return true
}

// withoutLinks returns what tells of an object of a service that has an address for people: not the
// addresses for programs and the like.
func withoutLinks(vs []argument) []argument {
	if !slices.ContainsFunc(vs, func(f argument) bool { return f.key == "html_url" }) {
		return vs
	}
	return slices.DeleteFunc(vs, func(f argument) bool { return !linkedKeys[f.key] })
}

// linkedKeys are the keys of values that tell of an object with an address.
var linkedKeys = wordSet(`html_url id number name title state status message merged draft path ref tag_name sha conclusion`)

const (
	// minDifferent is the share of the objects of a listing from which the values of a key that are
	// different are names: "True" is none, although no other object may have it.
	minDifferent = 0.75
	// minNameLen is the size of the shortest name.
	minNameLen = 4
	// nearlyAs is how many different values a key of names has beside the key with the most.
	nearlyAs = 0.9
)

// optionsOf returns the objects of a listing as options.
func optionsOf(rows [][]argument) []option {
	times := map[argument]int{} // of a value under its key
	holders, different := map[string]int{}, map[string]int{}
	most := 0.0 // the largest share of different values
	key := func(f argument) string { return f.path + " " + f.key }
	share := func(f argument) float64 { return float64(different[key(f)]) / float64(holders[key(f)]) }
	isName := func(f argument) bool {
		return len(f.value) >= minNameLen && strings.ContainsFunc(f.value, unicode.IsLetter)
	}
	for _, vs := range rows {
		for _, f := range vs {
			f.object, f.row = 0, 0
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
			f.object, f.row = 0, 0
			switch own := times[f] < len(rows); {
			case own && times[f] == 1 && isName(f) && share(f) >= max(minDifferent, nearlyAs*most):
				o.names = append(o.names, f.value)
			case own && len(f.value) > 1 && strings.ContainsFunc(f.value, unicode.IsDigit):
				o.numbers = append(o.numbers, f.value)
			}
		}
		out = append(out, o)
	}
	return out
}

// rowsOf returns the short values of each object in a list, with those of the objects in it.
func rowsOf(fs []argument) [][]argument {
	var order []int
	rows := map[int][]argument{}
	for _, f := range fs {
		if _, ok := rows[f.row]; !ok {
			order = append(order, f.row)
		}
		rows[f.row] = append(rows[f.row], f)
	}
	var out [][]argument
	for _, row := range order {
		slices.SortStableFunc(rows[row], func(a, b argument) int { return min(len(a.path), 1) - min(len(b.path), 1) }) // its own come first
		if vs := shortValues(rows[row]); len(vs) > 0 {
			out = append(out, vs)
		}
	}
	return out
}

// minWhole is the number of values of its own that an object with others in it has at least.
const minWhole = 3

// ownValues returns the short values of one object that contains others; nil if the result is
// no such object.
func ownValues(result string, fs []argument) []argument {
	if result[0] != '{' {
		return nil
	}
	own := shortValues(slices.DeleteFunc(slices.Clone(fs), func(f argument) bool { return f.object != 1 }))
	if len(own) < minWhole {
		return nil
	}
	return own
}

// settle keeps of a listing what was said of the chosen option, and drops the others.
func (c *toolCall) settle() { c.result, c.options = c.outcomeValues(), nil }

// isListing reports whether most objects are of a kind that comes more than once, as their
// first keys tell.
func isListing(objects [][]argument) bool {
	times := map[string]int{}
	for _, vs := range objects {
		times[vs[0].key]++
	}
	alike := 0
	for _, n := range times {
		if n > 1 {
			alike += n
		}
	}
	return 5*alike >= 4*len(objects) && alike > 0
}

// mention marks the values of listings that a text of the user or the assistant contains, and reports
// whether it names an option. That is the one that is talked about until another one is.
func (s *history) mention(said string) (named bool) {
	if len(s.listings) == 0 {
		return false
	}
	said = text.Head(said, maxRequest)
	for i, c := range slices.Backward(s.listings) {
		least := minNumbers // of another option: any text has some number
		if c.chosen < 0 && i == len(s.listings)-1 {
			least = 1
		}
		k := c.optionIn(said, least)
		if named = k >= 0; named {
			c.chosen, s.talkedOf = k, c
		}
		if c.chosen >= 0 && (named || i == len(s.listings)-1) {
			o := &c.options[c.chosen]
			for k, f := range o.values {
				o.said[k] = o.said[k] || len(f.value) > 1 && containsValue(said, f.value)
			}
		}
		if named {
			return true
		}
	}
	return false
}

// minNumbers is the number of numbers that tell which option without a name is talked about.
const minNumbers = 2

// optionIn returns the index of the option that a text names, or, if none has a name, of the one with the
// most numbers in the text, and not fewer than least; -1 for none.
func (c *toolCall) optionIn(said string, least int) int {
	found, most := -1, least-1
	for k, o := range c.options {
		if slices.ContainsFunc(o.names, func(n string) bool { return containsWord(said, n) }) {
			return k
		}
		if n := count(o.numbers, func(n string) bool { return containsValue(said, n) }); n > most {
			found, most = k, n
		}
	}
	if slices.ContainsFunc(c.options, func(o option) bool { return len(o.names) > 0 }) {
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

// containsValue reports whether a text contains a value, a time also as people write it: 7:05 for 19:05.
func containsValue(said, v string) bool {
	if containsWord(said, v) {
		return true
	}
	at, err := time.Parse("15:04", text.Head(v, len("15:04")))
	return err == nil && len(v) <= len("15:04:05") && containsWord(said, at.Format("3:04"))
}

// containsWord reports whether s contains v with no letter or digit next to it.
func containsWord(s, v string) bool {
	for at := 0; ; {
		i := strings.Index(s[at:], v)
		if i < 0 {
			return false
		}
		i += at
		before, _ := prev(s, i)
		after, _ := next(s, i+len(v))
		if before&word == 0 && after&word == 0 {
			return true
		}
		at = i + 1
	}
}

// outcomeValues returns what came of a call: the values of its one object, or what was said
// of the option that was chosen.
func (c *toolCall) outcomeValues() []argument {
	if c.chosen < 0 || c.options == nil {
		return c.result
	}
	o := c.options[c.chosen]
	var out []argument
	for k, f := range o.values {
		if o.said[k] || slices.Contains(o.names, f.value) && len(out) == 0 {
			out = append(out, f)
		}
	}
	return out
}

// is reports whether two values are the same: numbers and truth values, only if their keys are.
func (f argument) is(other argument) bool {
	return f.value == other.value && (f.key == other.key || len(f.value) > len("False") && strings.ContainsFunc(f.value, unicode.IsLetter))
}

// equals reports whether two values are the same under the same keys.
func (f argument) equals(other argument) bool {
	return f.value == other.value && f.key == other.key && f.path == other.path
}

// values returns values as text, without those that are in known. Values of a list follow
// their key, those of an object in an object the key of that. Briefly, what has letters has no key, and
// other values have its last word.
func values(fs, known []argument, briefly bool) string {
	var parts []string
	key, path := "", ""
	if len(fs) > 0 {
		path = fs[0].path
	}
	for _, f := range fs {
		if slices.ContainsFunc(known, f.is) {
			continue
		}
		k := strings.ReplaceAll(f.key, "_", " ")
		shown := k
		if briefly {
			shown = k[strings.LastIndexByte(k, ' ')+1:]
			if vagueKeys[strings.ToLower(shown)] || slices.ContainsFunc(fs, func(o argument) bool { return o.key != f.key && strings.HasSuffix(o.key, shown) }) {
				shown = k // pickup date, dropoff date
			}
			switch {
			case len(f.value) > len("false") && strings.ContainsFunc(f.value, unicode.IsLetter) && !isCode(f.value):
				shown = ""
			case strings.EqualFold(f.value, "true") || strings.EqualFold(f.value, "false"):
				shown = k // shared ride True
			}
		}
		if f.path != path {
			if key, path = "", f.path; path != "" {
				shown = strings.ReplaceAll(path, "_", " ") + ": " + shown
			}
		}
		if k == key && key != "" {
			parts[len(parts)-1] += " " + f.value
		} else {
			key = k
			parts = append(parts, strings.TrimSpace(shown+" "+f.value))
		}
	}
	return strings.Join(parts, ", ")
}

// isCode reports whether a value is one word with a digit and capitals only: HAT123.
func isCode(v string) bool {
	return strings.ContainsFunc(v, unicode.IsDigit) && strings.ToUpper(v) == v && !strings.ContainsAny(v, " :@/")
}

// vagueKeys are last words of keys that say nothing without those before them.
var vagueKeys = wordSet(`time allowed options number type language length available count id seating status night day days est`)

var (
	// actVerbs are words in the names of tools that change something.
	actVerbs = wordSet(`book reserve buy purchase order pay transfer send cancel update delete create add modify change set schedule
		refund return exchange submit confirm post put patch commit push merge publish deploy release write edit move rename remove
		insert upload assign close open approve reject play start stop kill restart install share invite subscribe unsubscribe
		register enroll apply issue grant revoke rent hire spawn launch charge capture void migrate rollback`)
	// lookVerbs are words in the names of tools that only look, whatever else the name says.
	lookVerbs = wordSet(`get list search find lookup read query check fetch view show grep glob ls cat think calculate describe status`)
	// actCommands are commands that change something, by their first words.
	actCommands = []string{
		"git commit", "git push", "git merge", "git rebase", "git tag", "git reset", "git revert", "git cherry-pick", "git checkout", "git switch",
		"git branch", "git stash", "git rm", "git mv", "git worktree add", "git clone", "rm ", "mv ", "cp ", "mkdir ", "npm install", "npm publish",
		"pip install", "go get", "go install", "go mod", "cargo add", "cargo publish", "apt", "brew install", "docker run", "docker build",
		"docker push", "docker compose up", "kubectl apply", "kubectl delete", "kubectl create", "terraform apply", "helm ", "gh pr create",
		"gh pr merge", "gh pr comment", "gh pr review", "gh pr edit", "gh pr close", "gh pr ready", "gh issue create", "gh issue comment", "gh issue edit", "gh issue close", "gh workflow run", "gh repo create", "gh release", "psql -c", "kill", "systemctl", "sed -i", "ln -s",
		"docker rm", "docker stop", "kubectl scale", "kubectl rollout", "kubectl patch", "aws s3 cp", "aws s3 mv", "aws s3 rm", "aws s3 sync", "fly deploy",
		"flyctl deploy", "gcloud app deploy", "gcloud run deploy", "heroku ", "pulumi up", "ansible-playbook", "alembic upgrade", "alembic downgrade",
	}
)

// readCommands are commands that only show or prepare something, by their first words.
var readCommands = []string{
	"cat ", "head ", "tail ", "ls ", "grep ", "rg ", "find ", "wc ", "sed -n", "which ", "pwd ", "echo ", "tree ", "awk ", "jq ", "stat ", "file ", "type ",
	"git log", "git diff", "git status", "git show", "git blame", "git reflog", "git merge-base", "git rev-parse", "git branch -a", "git branch --", "git ls-", "git grep",
	"gh api ", "curl ", "wget ", "gh pr view", "gh pr diff", "gh pr list", "gh pr checks", "gh run view", "gh run list", "gh issue view", "gh issue list", "go doc", "go list", "go env",
	"git add ", "git remote -v", "git config --get", "git worktree list", "git stash list", "git tag -l", "go mod graph", "go mod why", "go version", "env ", "date ", "ps ", "du ", "df ",
}

func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		set[w] = true
	}
	return set
}

// configured reports whether a tool changes something by the Options, and whether they name it.
func (s *history) configured(tool string) (acts, known bool) {
	longest := func(patterns []string) int {
		n := 0
		for _, p := range patterns {
			whole, _ := path.Match(p, tool) // without a match if the pattern is invalid
			short, _ := path.Match(p, shortName(tool))
			if whole || short {
				n = max(n, len(p))
			}
		}
		return n
	}
	act, look := longest(s.acts), longest(s.looks)
	return act >= look, act+look > 0
}

// actsByVerb reports whether a call changes something, by the words of its name or by its
// command.
func actsByVerb(name, command string) bool {
	if command != "" {
		for part := range strings.FieldsFuncSeq(command, func(r rune) bool { return r == ';' || r == '&' || r == '|' }) {
			part = withoutFolder(strings.TrimSpace(part))
			if beginsWith(part, actCommands) && !beginsWith(part, readCommands) || sends(part) {
				return true
			}
		}
		return false
	}
	return !looks(name) && slices.ContainsFunc(nameWords(name), func(w string) bool { return actVerbs[w] })
}

// sends reports whether a command is a request by HTTP that changes something.
func sends(command string) bool {
	return sending().MatchString(command) && !fetching().MatchString(command)
}

// sending is a request that sends something.
var (
	sending = text.Pattern(`^(?:gh api|curl|https?|wget)\b.* (?:(?:-X|--request|--method)[ =]?(?:POST|PUT|PATCH|DELETE)\b|(?:--data|--form|--json|--post-)|POST |PUT |PATCH |DELETE )|^gh api .* (?:-[fF] |--(?:raw-)?field\b|--input\b)|^curl .* -s?[dF] ?[\S]`)
	// fetching is one that only asks, although it has fields.
	fetching = text.Pattern(` (?:(?:-X|--request|--method)[ =]?GET|-G|--get)\b|\bquery=['"]?(?:query|\{)`)
)

// writesSQL reports whether an argument is a statement that changes a database.
func writesSQL(fs []argument) bool {
	return slices.ContainsFunc(fs, func(f argument) bool { return writing().MatchString(text.Head(f.value, 40)) })
}

// writing begins a statement of SQL that changes something.
var writing = text.Pattern(`(?i)^\s*(?:insert +into|update +\S+ +set|delete +from|(?:create|alter|drop|truncate) +(?:table|index|view|database|schema|user|role)|merge +into|grant +\w+)\b`)

// looks reports whether a tool only looks, by the words of its name.
func looks(name string) bool {
	return slices.ContainsFunc(nameWords(name), func(w string) bool { return lookVerbs[w] })
}

// gets reports whether a name begins with "get", which may be to look or to take.
func gets(name string) bool { return nameWords(name)[0] == "get" }

// isConfirmed reports whether the user has just agreed to what the assistant asked to confirm.
func (s *history) isConfirmed() bool {
	n := len(s.turns)
	return n > 1 && s.turns[n-1].calls == 0 && (confirming().MatchString(s.turns[n-2].lastText) || lastQuestion(s.turns[n-2].lastText) != "") && agreeing().MatchString(s.turns[n-1].request.head)
}

var (
	confirming = text.Pattern(`(?i)\b(?:correct|right|ok(?:ay)?) *\?\s*$|\b(?:confirm|go ahead|proceed|is (?:that|this|it|everything) (?:right|correct|ok(?:ay)?|fine))\b`)
	agreeing   = text.Pattern(`(?i)^\W*(?:(?:yes|ye|yeah|yep|yup|sure|ok(?:ay)?|correct|right|perfect|great|good|please do|go ahead|that(?:'?s| is) (?:right|correct|good|fine|it|confirmed|perfect|great)|sounds good|confirm(?:ed)?|` +
		`ja|genau|gerne|oui|d'accord|claro|vale|sim|certo)\b|(?:s[ií]|да)(?:[ ,.!]|$)|好|是的|可以|はい|네)`)
)

// nameWords returns the words of a name in camelCase, snake_case or kebab-case, in lower
// case, without what is before its last dot.
func nameWords(name string) []string {
	name = name[strings.LastIndexByte(name, '.')+1:]
	var out []string
	start := 0
	for i, r := range name {
		if i > start && (unicode.IsUpper(r) || !unicode.IsLetter(r)) {
			out = append(out, strings.ToLower(name[start:i]))
			start = i
		}
		if !unicode.IsLetter(r) {
			start = i + 1
		}
	}
	return append(out, strings.ToLower(name[min(start, len(name)):]))
}

// attempt returns what a call runs, by its tool, program and subcommand, and the targets of a check:
// the other words of its first command, without flags, numbers and what is quoted.
func (c *toolCall) attempt() (what string, targets []string) {
	command := runner().ReplaceAllString(scriptRunner().ReplaceAllString(withoutFolder(c.description), "$1 "), "")
	command = quotedWords().ReplaceAllString(command, "")
	if i := strings.IndexAny(command, "|;&>"); i > 0 {
		command = command[:i]
	}
	what = c.tool
	program := true // of the words that tell what is run
	for i, w := range strings.Fields(command) {
		switch {
		case strings.HasPrefix(w, "-") || i > 0 && digit.has(w[0]):
		case i == 0 || program && subcommand().MatchString(w):
			what += " " + w
			program = i == 0
		default:
			targets = append(targets, w)
			program = false
		}
	}
	if !checking().MatchString(command) {
		targets = nil
	}
	return what, targets
}

var (
	quotedWords = text.Pattern(`"[^"]*"|'[^']*'`)
	// runner is before a program that is run by another one, scriptRunner before a script of a package.
	runner       = text.Pattern(`^(?:(?:python3? -m|npx|pnpm exec|uv run|poetry run|pipenv run|bundle exec|sudo|time) +)+`)
	scriptRunner = text.Pattern(`^(npm|pnpm|yarn|bun) run(?:-script)? +`)
	subcommand   = text.Pattern(`^[a-z][a-z:-]*$`)
)

// repeats reports whether a call on some targets does again what one on others did: it has no target
// that is not one of theirs or around it. One without targets, or on everything, is repeated by any.
func repeats(again, targets []string) bool {
	if len(targets) == 0 || len(targets) == 1 && (targets[0] == "." || targets[0] == "./...") {
		return true
	}
	for _, a := range again {
		folder := strings.TrimSuffix(strings.TrimSuffix(a, "..."), "/")
		if !slices.ContainsFunc(targets, func(t string) bool {
			return t == a || folder == "." || strings.HasPrefix(t, folder+"/") || strings.HasPrefix(t, folder+"::")
		}) {
			return false
		}
	}
	return true
}

// withoutFolder returns a command without the change of the folder and assignments before it, and
// without the folder that it names as an option.
func withoutFolder(command string) string {
	return folderOption().ReplaceAllString(folderPrefix().ReplaceAllString(command, ""), "$1")
}

var (
	folderPrefix = text.Pattern(`^(?:(?:cd [^;&|]+|\w+=(?:\$\([^)]*\)|[^ ;&|])*)(?:&&|;| ) *)+`)
	folderOption = text.Pattern(`^(git|go|make) -C \S+`)
)

// located is a line of a failed check with the place of a fault: file.go:12: message.
var located = text.Pattern(`^\S+\.\w+:\d+(?::\d+)?:? +\S.*[A-Za-z]{3}`)

// failureLines returns the lines of a failed call's output that report failures.
func failureLines(head, tail string) []string {
	lines := splitLines(text.Head(head, 20_000))
	if head != tail {
		lines = append(lines, splitLines(text.Tail(tail, 4000))...)
	}
	var out []string
	for _, l := range lines {
		if len(l) >= minFailure && !text.Longer(l, maxLine) && (isFailure(l) || located().MatchString(l)) && !slices.Contains(out, l) {
			if out = append(out, strings.Clone(l)); len(out) == maxFailures {
				break
			}
		}
	}
	return out
}
