package extract

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

var (
	// actVerbs are words in the names of tools that change something.
	actVerbs = text.Set(`book reserve buy purchase order pay transfer send cancel update delete create add modify change set schedule
		refund return exchange submit confirm post put patch commit push merge publish deploy release write edit move rename remove
		insert upload assign close open approve reject play start stop kill restart install share invite subscribe unsubscribe
		register enroll apply issue grant revoke rent hire spawn launch charge capture void migrate rollback
		checkout transition reply turn enable disable pause resume hold redeem waive escalate archive mute unmute forward
		reschedule swap upgrade downgrade extend renew lock unlock accept decline restore reset rotate toggle terminate reassign
		resolve acknowledge withdraw deposit sign trigger block unblock activate deactivate dial copy
		sync stake adjust flag`)
	// plainVerbs are those that are no nouns, which say what is done where a name begins with them.
	plainVerbs = text.Set(`book refund reserve buy purchase pay cancel checkout send update delete create add modify submit confirm remove insert set`)
	// lookVerbs are words in the names of tools that only look, whatever else the name says.
	lookVerbs = text.Set(`get list search find lookup read query check fetch view show grep glob ls cat think calculate describe status`)
	// actCommands are commands that change something, by their first words.
	actCommands = []string{
		"git commit", "git push", "git merge", "git rebase", "git tag", "git reset", "git revert", "git cherry-pick", "git checkout", "git switch",
		"git branch", "git stash", "git rm", "git mv", "git worktree add", "git clone", "rm ", "mv ", "cp ", "npm install", "npm publish",
		"pip install", "go get", "go install", "go mod", "cargo add", "cargo publish", "apt", "brew install", "docker run", "kubectl run",
		"gh workflow run", "kill", "sed -i", "ln -s", "submit ", "heroku ", "ansible-playbook", "alembic upgrade", "alembic downgrade",
		"npm version", "crontab ", "rsync ", "scp ", "certbot ", "at ", "chown ", "dd ", "pg_restore ", "mongorestore ",
	}
	// managers are programs whose commands name what is done behind what it is done to, as in "aws ec2 stop-instances".
	managers = text.Set(`aws az gcloud kubectl oc helm docker docker-compose podman gh glab argocd stripe vault systemctl service fly flyctl doctl
		terraform pulumi eksctl supabase netlify wrangler firebase`)
	// managerVerbs are words of these commands that change something, managerLooks those that only look.
	managerVerbs = text.Set(`create update delete put change modify terminate start stop restart reload reboot pause resume set unset add remove
		rm mv cp sync push upload build up down apply destroy deploy undo scale autoscale patch edit replace annotate label taint untaint
		cordon uncordon drain expose rollback upgrade install uninstall import restore reset enable disable mask unmask attach detach
		register publish invoke cancel rerun merge close reopen comment review ready tag untag clone fork transfer lock unlock kill
		prune write revoke rotate resize send trigger verify`)
	managerLooks = text.Set(`logs top explain diff plan history wait inspect`)
)

// showCommands are those whose output says nothing later.
var showCommands = []string{"ls ", "pwd ", "cat ", "echo ", "wc ", "which ", "head ", "tail ", "stat ", "file ", "tree ", "date "}

// onlyShows reports whether what a command line shows, if anything, says nothing later.
func onlyShows(command string) bool {
	return !slices.ContainsFunc(shellCommands(command), func(c shellCommand) bool {
		return !c.prepares() && !beginsWith(c.text, showCommands) && !strings.HasSuffix(c.text, " --help")
	})
}

// readCommands are commands that only show or prepare something, by their first words.
var readCommands = []string{
	"cat ", "open ", "goto ", "scroll_", "search_file ", "search_dir ", "find_file ", "head ", "tail ", "ls ", "grep ", "rg ", "find ", "wc ", "sed -n", "which ", "pwd ", "echo ", "tree ", "awk ", "jq ", "stat ", "file ", "type ",
	"git log", "git diff", "git status", "git show", "git blame", "git reflog", "git merge-base", "git rev-parse", "git branch -a", "git branch -v", "git branch -r", "git branch -l", "git branch --list", "git branch --show-current", "git branch --contains", "git branch --merged", "git ls-", "git grep",
	"gh api ", "curl ", "wget ", "gh pr view", "gh pr diff", "gh pr list", "gh pr checks", "gh run view", "gh run list", "gh issue view", "gh issue list", "gh repo view", "go doc", "go list", "go env",
	"git --version", "git cat-file", "git check-ignore", "git config --get", "git config --global --list", "git config --list", "git config --local --list", "git config -l", "git count-objects", "git describe", "git for-each-ref", "git fsck", "git rev-list", "git verify-pack",
	"launchctl list", "lsof ", "npm list", "npm ls", "npm view", "pgrep ", "pip list", "pip show", "uname ", "xxd ", "md5 ", "md5sum ", "shasum ", "sha1sum ", "sha256sum ", "cmp ", "diff ",
	"git add ", "git remote -v", "git worktree list", "git stash list", "git stash show", "git tag -l", "git tag --list", "helm list", "helm get", "helm status", "helm history", "heroku logs", "heroku ps", "crontab -l", "go mod graph", "go mod why", "go version", "env ", "date ", "ps ", "du ", "df ",
	"docker ps", "docker logs", "docker inspect", "docker compose ps", "docker compose logs", "kubectl get", "kubectl logs", "kubectl describe", "journalctl ", "systemctl status",
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
		return actsByCommand(command)
	}
	return !looks(name) && slices.ContainsFunc(nameWords(name), func(w string) bool { return actVerbs[w] })
}

// actsByCommand reports whether a command line changes something, also by what it runs on another host or in a container.
func actsByCommand(line string) bool {
	previous := ""
	return slices.ContainsFunc(shellCommands(line), func(c shellCommand) bool {
		input := "" // the command whose output it reads
		if c.follows == "|" {
			input = previous
		}
		previous = c.text
		command := withoutFolder(c.text)
		if inner := runner().ReplaceAllString(command, ""); inner != command {
			return actsByCommand(inner)
		}
		if rehearsing().MatchString(command) {
			return false
		}
		listing := command == "git branch" || command == "git tag"
		return !listing && beginsWith(command, actCommands) && !beginsWith(command, readCommands) || manages(command) || sends(command) ||
			deploys(command) || changesData(command, input)
	})
}

// rehearsing is a flag with which a command changes nothing.
var rehearsing = text.Pattern(` --(?:help|dry-run)\b`)

// manages reports whether a command of a program for other systems changes something, by the first of its words that tells.
func manages(command string) bool {
	program, rest, _ := strings.Cut(command, " ")
	if !managers[program] {
		return false
	}
	for w := range strings.FieldsSeq(rest) {
		verb, _, joined := strings.Cut(w, "-") // run-instances
		switch {
		case verb == "": // a flag
		case !managerWord().MatchString(w) || lookVerbs[verb] || managerLooks[verb]:
			return false
		case managerVerbs[verb] || joined && (actVerbs[verb] || verb == "run"):
			return true
		}
	}
	return false
}

var managerWord = text.Pattern(`^[a-z][a-z0-9:-]*$`)

// changesData reports whether a command of a client of a database changes data, by its statement or by loading what a file
// or the output of another command has.
func changesData(command, input string) bool {
	if !databaseClient().MatchString(command) {
		return settingKeys().MatchString(command)
	}
	loads := input != "" && !beginsWith(input, []string{"echo ", "printf "}) || loading().MatchString(command)
	return loads || writingInCommand().MatchString(command+" "+input)
}

var (
	databaseClient   = text.Pattern(`^(?:psql|mysql|mariadb|sqlite3|snowsql|duckdb|clickhouse-client|bq query|sqlcmd|cqlsh)\b`)
	loading          = text.Pattern(` <[^<]`)
	writingInCommand = text.Pattern(`(?i)[\s;](?:` + writes + `)`)
	settingKeys      = text.Pattern(`(?i)^redis-cli\b(?: -\w+ \S+)* (?:\w*set(?:nx|ex)?|\w*(?:add|rem|del|pop|push)|unlink|flush\w+|p?expire\w*|persist|rename\w*|\w*(?:incr|decr)\w*|config set|restore|copy|move)\b`)
)

// deploys reports whether a command brings something into use or out of it, by a word or a script of that name.
func deploys(command string) bool {
	return deploying().MatchString(command) && !beginsWith(command, readCommands) && !checking().MatchString(command) && !inspecting().MatchString(command)
}

var deploying = text.Pattern(`^(?:[\w./@-]+ ){0,3}(?:\w+:|[\w./-]*/)?(?:deploy|destroy|publish|migrate|rollback)(?:[:-]\w+)?(?:\.(?:sh|py|js|ts))?(?: |$)`)

// sends reports whether a command is a request by HTTP that changes something.
func sends(command string) bool {
	return sending().MatchString(command) && !fetching().MatchString(command)
}

// sending is a request that sends something.
var (
	sending = text.Pattern(`^(?:gh api|curl|https?|wget)\b.* (?:(?:-X|--request|--method)[ =]?(?:POST|PUT|PATCH|DELETE)\b|(?:--data|--form|--json|--post-)|POST |PUT |PATCH |DELETE )|^gh api .* (?:-[fF] |--(?:raw-)?field\b|--input\b)|^curl .* -s?[dF] ?\S`)
	// fetching is one that only asks, although it has fields.
	fetching = text.Pattern(` (?:(?:-X|--request|--method)[ =]?GET|-G|--get)\b|\bquery=['"]?(?:query|\{)`)
)

// writesData reports whether an argument is a statement of SQL or of GraphQL that changes something.
func writesData(fs []argument) bool {
	return slices.ContainsFunc(fs, func(f argument) bool { return writing().MatchString(text.Head(f.value, maxHandleInput)) })
}

// writes is a statement of SQL that changes something.
const writes = `insert\s+(?:or\s+\w+\s+|ignore\s+)?(?:into|overwrite)\b|update\s+(?:only\s+)?\S+(?:\s+(?:as\s+)?\w+)?\s+set\b|delete\s+from\b|replace\s+into\b` +
	`|(?:create|alter|drop|truncate)\s+(?:or\s+replace\s+)?(?:(?:(?:global|local|temp|temporary|transient|unlogged|external|materialized|unique|secure)\s+)*` +
	`(?:table|index|view|database|schema|user|role|warehouse|stage)\b|(?:function|procedure|trigger)\s+[\w."]+\s*\()|truncate\s+[\w."]+\s*(?:;|$)` +
	`|merge\s+into\b|copy\s+into\b|copy\s+[\w."]+\s+from\b|grant\s+\w+|call\s+[\w.]+\s*\(`

// writing begins a statement that changes something, behind comments and the begin of a transaction, or one with common tables.
var writing = text.Pattern(`(?i)^(?:\s|--[^\n]*\n|#[^\n]*\n|/\*(?s:.*?)\*/|(?:begin|start\s+transaction|set|use)\b[^;]*;)*` +
	`(?:` + writes + `|with\s+(?:recursive\s+)?[\w"]+\s*(?:\([^)]*\)\s*)?as\s(?s:.*)[\s(](?:insert\s+into|update\s+\S+\s+set|delete\s+from|merge\s+into)\b|mutation\b\s*\w*\s*[({@])`)

// looks reports whether a tool only looks, by the words of its name: one looks, it does not begin with what
// acts, and nothing that acts is joined to it, as in find_and_close.
func looks(name string) bool {
	words := nameWords(name)
	for i, w := range words {
		if (w == "and" || w == "then" || w == "or") && i+1 < len(words) && actVerbs[words[i+1]] {
			return false
		}
	}
	rest := words[1:]
	return lookVerbs[words[0]] || (!plainVerbs[words[0]] || len(rest) < 2) && slices.ContainsFunc(rest, func(w string) bool { return lookVerbs[w] })
}

// writesByMethod reports whether an argument is the method of a request by HTTP that changes something.
func writesByMethod(fs []argument) bool {
	return slices.ContainsFunc(fs, func(f argument) bool {
		return strings.HasSuffix(strings.ToLower(f.key), "method") && writingMethod().MatchString(f.value)
	})
}

var writingMethod = text.Pattern(`(?i)^(?:POST|PUT|PATCH|DELETE)$`)

// takes reports whether the name of a tool says that it gets a thing for the user, such as a ride, and not what is
// known of it.
func takes(name string) bool {
	words := nameWords(name)
	return words[0] == "get" && slices.ContainsFunc(words[1:], func(w string) bool { return takenNouns[w] })
}

var takenNouns = text.Set(`ride rides cab taxi lift ticket tickets seat seats table room refund loan coupon`)

// isConfirmed reports whether the user has just agreed to what the assistant asked to confirm.
func (s *history) isConfirmed() bool {
	n := len(s.turns)
	return n > 1 && s.turns[n-1].calls == 0 && (confirming().MatchString(s.turns[n-2].lastText) || lastQuestion(s.turns[n-2].lastText) != "") && agreeing().MatchString(s.turns[n-1].request.head)
}

var (
	confirming = text.Pattern(`(?i)\b(?:correct|right|ok(?:ay)?) *\?\s*$|\b(?:confirm|go ahead|proceed|is (?:that|this|it|everything) (?:right|correct|ok(?:ay)?|fine))\b`)
	agreeing   = text.Pattern(`(?i)^\W*(?:(?:yes|ye|fine|yeah|yep|yup|sure|ok(?:ay)?|correct|right|perfect|great|good|please do|go ahead|that(?:'?s| is) (?:right|correct|good|fine|it|confirmed|perfect|great)|sounds good|confirm(?:ed)?|` +
		`ja|genau|gerne|oui|d'accord|claro|vale|sim|certo)\b|(?:s[ií]|да)(?:[ ,.!]|$)|好|是的|可以|はい|네)`)
)

// nameWords returns the words of a name in camelCase, snake_case or kebab-case, in lower
// case, without what is before its last dot and before the last two underscores.
func nameWords(name string) []string {
	name = shortName(name)
	if i := strings.LastIndex(name, "__"); i > 0 {
		name = name[i+2:]
	}
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
