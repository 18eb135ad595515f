package shell

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/toolname"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// showCommands are those whose output says nothing later.
var showCommands = []string{"ls ", "pwd ", "cat ", "echo ", "wc ", "which ", "head ", "tail ", "stat ", "file ", "tree ", "date "}

// OnlyShows reports whether what a command line shows, if anything, says nothing later.
func OnlyShows(command string) bool {
	return !slices.ContainsFunc(Commands(command), func(c Command) bool {
		return !c.Prepares() && !beginsWith(c.Text, showCommands) && !c.selects() && !helping().MatchString(c.Text)
	})
}

// helping is a command that tells how a program is used, or which one it is.
var helping = text.Pattern(`^\S+ (?:help|version)\b| --(?:help|version)\b`)

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

// Reads reports whether a command only shows or prepares something.
func Reads(command string) bool {
	command = WithoutFolder(command)
	return beginsWith(command, readCommands) && !sends(command)
}

// Shows reports whether the output of a command says nothing later, by its first words.
func Shows(command string) bool { return beginsWith(WithoutFolder(command), showCommands) }

// WritesData reports whether a text begins with a statement of SQL or of GraphQL that changes something.
func WritesData(s string) bool { return writing().MatchString(s) }

// Acts reports whether a command line changes something, also by what it runs on another host or in a container.
func Acts(line string) bool {
	previous := ""
	return slices.ContainsFunc(Commands(line), func(c Command) bool {
		input := "" // the command whose output it reads
		if c.Follows == "|" {
			input = previous
		}
		previous = c.Text
		command := WithoutFolder(c.Text)
		if inner := runner().ReplaceAllString(command, ""); inner != command {
			return Acts(inner)
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
		case !managerWord().MatchString(w) || toolname.IsLookVerb(verb) || managerLooks[verb]:
			return false
		case managerVerbs[verb] || joined && (toolname.IsActVerb(verb) || verb == "run"):
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

// deploys reports whether a command brings something into use or out of it, by a word or a script of that name.
func deploys(command string) bool {
	return deploying().MatchString(command) && !beginsWith(command, readCommands) && !checking().MatchString(command) && !inspecting().MatchString(command)
}

var deploying = text.Pattern(`^(?:[\w./@-]+ ){0,3}(?:\w+:|[\w./-]*/)?(?:deploy|destroy|publish|migrate|rollback)(?:[:-]\w+)?(?:\.(?:sh|py|js|ts))?(?: |$)`)

// sends reports whether a command is a request by HTTP that changes something.
func sends(command string) bool {
	return sending().MatchString(command) && !fetching().MatchString(command)
}

// writes is a statement of SQL that changes something.
const writes = `insert\s+(?:or\s+\w+\s+|ignore\s+)?(?:into|overwrite)\b|update\s+(?:only\s+)?\S+(?:\s+(?:as\s+)?\w+)?\s+set\b|delete\s+from\b|replace\s+into\b` +
	`|(?:create|alter|drop|truncate)\s+(?:or\s+replace\s+)?(?:(?:(?:global|local|temp|temporary|transient|unlogged|external|materialized|unique|secure)\s+)*` +
	`(?:table|index|view|database|schema|user|role|warehouse|stage)\b|(?:function|procedure|trigger)\s+[\w."]+\s*\()|truncate\s+[\w."]+\s*(?:;|$)` +
	`|merge\s+into\b|copy\s+into\b|copy\s+[\w."]+\s+from\b|grant\s+\w+|call\s+[\w.]+\s*\(`

// writing begins a statement that changes something, behind comments and the begin of a transaction, or one with common tables.
var writing = text.Pattern(`(?i)^(?:\s|--[^\n]*\n|#[^\n]*\n|/\*(?s:.*?)\*/|(?:begin|start\s+transaction|set|use)\b[^;]*;)*` +
	`(?:` + writes + `|with\s+(?:recursive\s+)?[\w"]+\s*(?:\([^)]*\)\s*)?as\s(?s:.*)[\s(](?:insert\s+into|update\s+\S+\s+set|delete\s+from|merge\s+into)\b|mutation\b\s*\w*\s*[({@])`)

var (
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

var (
	databaseClient   = text.Pattern(`^(?:psql|mysql|mariadb|sqlite3|snowsql|duckdb|clickhouse-client|bq query|sqlcmd|cqlsh)\b`)
	loading          = text.Pattern(` <[^<]`)
	writingInCommand = text.Pattern(`(?i)[\s;](?:` + writes + `)`)
	settingKeys      = text.Pattern(`(?i)^redis-cli\b(?: -\w+ \S+)* (?:\w*set(?:nx|ex)?|\w*(?:add|rem|del|pop|push)|unlink|flush\w+|p?expire\w*|persist|rename\w*|\w*(?:incr|decr)\w*|config set|restore|copy|move)\b`)
)

// sending is a request that sends something.
var (
	sending = text.Pattern(`^(?:gh api|curl|https?|wget)\b.* (?:(?:-X|--request|--method)[ =]?(?:POST|PUT|PATCH|DELETE)\b|(?:--data|--form|--json|--post-)|POST |PUT |PATCH |DELETE )|^gh api .* (?:-[fF] |--(?:raw-)?field\b|--input\b)|^curl .* -s?[dF] ?\S`)
	// fetching is one that only asks, although it has fields.
	fetching = text.Pattern(` (?:(?:-X|--request|--method)[ =]?GET|-G|--get)\b|\bquery=['"]?(?:query|\{)`)
)
