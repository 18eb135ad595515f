package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/charclass"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// IsCheck reports whether a command checks something.
func IsCheck(command string) bool { return checking().MatchString(command) }

// CheckWord returns the word of a command that says that it checks something, in lower case, "" for none.
func CheckWord(command string) string { return strings.ToLower(checking().FindString(command)) }

// checking is a command that checks something.
var checking = text.Pattern(`(?i)\b(?:lint|golangci-lint|test|tests|pytest|jest|vitest|tsc|tsgo|build|vet|typecheck|mypy|ruff|eslint|clippy)\b|\bcheck(?:[^\w-]|$)`)

// RunsInline reports whether a command runs code that stands in it.
func RunsInline(command string) bool {
	return slices.ContainsFunc(Commands(command), func(c Command) bool { return inline().MatchString(WithoutFolder(c.Text)) })
}

var inline = text.Pattern(`^(?:npx |uv run |poetry run )?(?:python[\d.]*|node|tsx|ts-node|deno|bun|ruby|perl|php)\b(?: \S+)*? -(?:c|e|p|r|-eval) `)

// Attempt is a simple command of a call: what it runs, by the tool, its program and its subcommand, and what
// it checks or installs.
type Attempt struct {
	What    string
	Targets []string
	Checks  bool
	chain   int // the number of the commands joined by && that it is among
}

// maxAttempts is the number of attempts of a call, and of targets of one.
const maxAttempts = 16

// AttemptsOf returns what a command line runs, without what only shows something unless that is all.
func AttemptsOf(tool, command string) []Attempt {
	var out, shown []Attempt
	chain := 0
	for _, c := range Commands(WithoutRedirections(command)) {
		if c.Follows != "&&" {
			chain++
		}
		line := WithoutFolder(c.Text)
		rest := scriptRunner().ReplaceAllString(interpreter().ReplaceAllString(runner().ReplaceAllString(line, ""), "$1"), "$1 ")
		if rest != line && strings.ContainsAny(rest, ";&|") { // of a shell in a container
			for _, a := range AttemptsOf(tool, rest) { // chains of their own
				a.chain += chain
				out = append(out, a)
			}
			chain = out[len(out)-1].chain
			continue
		}
		words := strings.Fields(rest)
		switch {
		case len(words) == 0 || len(out) >= maxAttempts || inspecting().MatchString(rest):
		case narrowing[words[0]] || beginsWith(rest, readCommands):
			shown = append(shown[:0], NewAttempt(tool, words))
		default:
			a := NewAttempt(tool, words)
			a.chain = chain
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		out = append(shown, Attempt{What: tool})[:1]
	}
	return out
}

// NewAttempt returns the attempt of the words of a simple command, of which flags and numbers are left out.
func NewAttempt(tool string, words []string) Attempt {
	a := Attempt{What: tool}
	program := true          // of the words that tell what is run
	selected := false        // by the flag before the word
	var line strings.Builder // without flags
	for i, w := range words {
		if i == 0 && strings.Contains(w, "bin/") { // wherever it is installed
			w = path.Base(w)
		}
		flag, value, set := strings.Cut(w, "=")
		switch {
		case w == "-c" && strings.HasSuffix(a.What, " go test"): // which runs none
			a.What = strings.TrimSuffix(a.What, "test") + "build"
			continue
		case strings.HasPrefix(w, "-") && selecting().MatchString(flag):
			if program, selected = false, !set; set {
				a.Targets = append(a.Targets, selectedMark+value)
			}
			continue
		case strings.HasPrefix(w, "-"), i > 0 && charclass.Digit.Has(w[0]):
		case i == 0 || program && subcommand().MatchString(w):
			a.What += " " + w
			line.WriteString(w + " ")
			program = i == 0
		default:
			if len(a.Targets) == 0 {
				line.WriteString(w)
			}
			if selected {
				w = selectedMark + w
			}
			a.Targets = append(a.Targets, w)
			program = false
		}
		selected = false
	}
	plain := line.String()
	a.Checks = checking().MatchString(plain) && !handling[words[0]]
	if a.Targets = a.Targets[:min(len(a.Targets), maxAttempts)]; installing().MatchString(plain) {
		for i, w := range a.Targets {
			if end := strings.IndexAny(w[1:], "=<>~@"); end >= 0 {
				a.Targets[i] = w[:end+1]
			}
		}
	} else if !a.Checks {
		a.Targets = nil
	}
	return a
}

// handling are programs that check nothing, whatever the files are called.
var handling = text.Set(`git gh mkdir chmod touch rm cp mv ln`)

// IsRepeated reports whether what was run, and may have failed, was run again: of commands joined by &&, the
// last check or the last command.
func IsRepeated(ran []Attempt, again func(Attempt) bool) bool {
	checked := false
	for i := 0; i < len(ran); {
		check, end := -1, i
		for ; end < len(ran) && ran[end].chain == ran[i].chain; end++ {
			if ran[end].Checks {
				check = end
			}
		}
		if check >= 0 && !again(ran[check]) && (check == end-1 || !again(ran[end-1])) {
			return false
		}
		checked = checked || check >= 0
		i = end
	}
	return checked || again(ran[len(ran)-1])
}

// Repeats reports whether a call on some targets does again what one on others did: it has no target
// that is not one of theirs or around it. One without targets, or on everything, is repeated by any.
func Repeats(again, targets []string) bool {
	if IsAll(targets) {
		return true
	}
	for _, a := range again {
		place := strings.TrimPrefix(a, selectedMark)
		folder := strings.TrimSuffix(strings.TrimSuffix(place, "..."), "/")
		if !slices.ContainsFunc(targets, func(target string) bool {
			t := strings.TrimPrefix(target, selectedMark)
			return t == place || selects(a, target) || folder == "." || strings.HasPrefix(t, folder+"/") || strings.HasPrefix(t, folder+"::")
		}) {
			return false
		}
	}
	return true
}

// IsAll reports whether targets are all there is.
func IsAll(targets []string) bool {
	return len(targets) == 0 || len(targets) == 1 && (targets[0] == "." || targets[0] == "./...")
}

// selectedMark begins a target that a flag selects.
const selectedMark = "="

// selects reports whether a pattern of names selects what another one does, as TestLamp does TestLampOn|TestLampOff.
func selects(pattern, narrower string) bool {
	if !strings.HasPrefix(pattern, selectedMark) || !strings.HasPrefix(narrower, selectedMark) || strings.ContainsAny(pattern, "/.^$") {
		return false
	}
	wide := strings.Split(pattern[len(selectedMark):], "|")
	for n := range strings.SplitSeq(narrower[len(selectedMark):], "|") {
		if !slices.ContainsFunc(wide, func(w string) bool { return w != "" && strings.Contains(n, w) }) {
			return false
		}
	}
	return true
}

var (
	// runner is before a program that is run by another one or in a container, scriptRunner before a script
	// of a package, interpreter before a file that is run.
	runner = text.Pattern(`^(?:(?:python[\d.]* -m|npx|pnpm exec|yarn exec|uv run|poetry run|pipenv run|bundle exec|sudo|time|(?:ba|z|da)?sh -l?c` +
		`|(?:docker|podman)(?:-compose| compose(?: -f \S+)*)? exec(?: -[euw] \S+| --(?:user|env|workdir)[= ]\S+| -\S+)* \S+|kubectl exec(?: -[nc] \S+| -\S+)* \S+(?: -[nc] \S+)* --|ssh(?: -[46AaCGgKkMNnqsTtVvXxYy]+| -[BbcDEeFIiJlmOopSWw] ?\S+)* [\w.@-]+) +)+`)
	scriptRunner = text.Pattern(`^(npm|pnpm|yarn|bun|mise|deno|poe|pdm) run(?:-script)? +`)
	interpreter  = text.Pattern(`^(?:python[\d.]*|(?:ba|z|da)?sh|node|ruby|perl)(?: -[A-Zuxe]\w*)* +([^-\s])`)
	subcommand   = text.Pattern(`^[a-z][a-z:-]*$`)
	// selecting is a flag that says what is run of all there is.
	selecting = text.Pattern(`^--?(?:run|bench|[tkmgf]|grep|filter|file|filename|tests?|testNamePattern|test-name-pattern|only|spec|project|D\w*[tT]est)$`)
	// installing is a command that does the same for each of its targets.
	installing = text.Pattern(`\b(?:install|apply)\b`)
	// inspecting is a flag with which a command does nothing.
	inspecting = text.Pattern(` --(?:help|version|dry-run)\b`)
)
