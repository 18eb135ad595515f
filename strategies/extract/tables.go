package extract

import (
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Words of programs, of agents and of the field. All else follows from the structure of a conversation.
var (
	// carriers are elements in which agents put the words of the user, additions those that they put beside them.
	carriers  = text.Set(`task feedback answer user_query user_message user_input user_request user_feedback`)
	additions = text.Set(`environment_details system-reminder system_reminder ide_opened_file ide_selection`)
	// outputs are elements with the output of a command.
	outputs = text.Set(`stdout stderr output`)
	// looking are programs that change nothing; of git and others, the subcommands that do not.
	looking = text.Set(`ls cat bat head tail grep rg ag find fd wc pwd echo printf which type tree stat file du df env date sort uniq cut awk jq yq diff cmp less
		pgrep launchctl for done do fi if then else while sysctl more whoami ps printenv nl basename dirname realpath true false sleep test [ cd column tr xxd od strings lsof uname hostname id export set read sed`)
	lookingAt = text.Set(`status diff log show rev-parse ls-files ls-tree blame grep describe reflog shortlog cat-file config remote list view get describe logs inspect
		images ps info search version help checks top env doc why outdated whatis fsck count-objects ls-remote rev-list merge-base api checks`)
	withSubcommands = text.Set(`git go npm gh kubectl docker cargo pip helm brew systemctl terraform aws gcloud`)
	// checking are programs and subcommands that build, test or lint, formatting those that change the form of files alone.
	checking = text.Set(`test tests build vet check lint clippy typecheck pytest tsc eslint jest vitest mypy ruff pylint flake8 golangci-lint tsgo biome oxlint rspec phpunit ctest make
		gradle gradlew mvn bazel tox nox unittest verify spec ci e2e shellcheck staticcheck`)
	formatting = text.Set(`fmt format gofmt goimports gofumpt prettier black rustfmt isort clang-format`)
	// failing begin lines that report a failure.
	failing = []string{
		"error", "fatal", "panic", "traceback", "exception", "fail", "exit code", "exit status", "exited with", "command failed", "permission denied", "command not found",
		"no such file", "cannot ", "can't ", "undefined", "not found", "denied", "assertion", "tool_use_error", "e   ", "npm err", "build failed", "conflict (", "unhandled", "your proposed edit has introduced", "file has not been read",
	}
	// failingIn are in lines with a place or a name before the failure.
	failingIn = []string{": error", "error:", "error[", "exception:", ": undefined", ": cannot ", "command not found", "no such file", "permission denied", "✗ ", "✖ ", "--- fail", " failed", "failed:", "assert", "panicked at", "expected ", "not ok "}
	// finished are states of tasks that are done.
	finished = text.Set(`completed complete done finished closed cancelled canceled deleted resolved`)
	// commentSigns begin comments in code.
	commentSigns = []string{"//", "#", "/*", "*", "--", "<!--", "\"\"\""}
	// programs begin messages that agents write in the name of the user.
	programs = []string{chat.SkillPrefix, "Operation stopped by hook", "Caveat: ", "# Fix any errors below"}
	// refusals begin the results of calls that were not made; wordsAfter stands before the words of the user to it.
	refusals   = []string{"The user doesn't want to proceed with this tool use", "The user doesn't want to take this action", "Request interrupted by user", "User rejected", "rejected by user", "Permission to use"}
	wordsAfter = "the user said:\n"
	// interruption begins the message that stands for the user who stopped the work, localOutput that of a command that agents
	// run themselves.
	interruption, localOutput = "[Request interrupted by user", "<local-command-stdout>"
	// noAnswer stands for an answer to a message of a program.
	noAnswer = "No response requested."
	// running are programs and words of a shell before the program that runs.
	running = text.Set(`sudo env time timeout npx uv run exec xargs do then else`)
	// folderKeys, contentKeys and searchKeys are keys of arguments: of a folder, of the content of a file, of a pattern.
	folderKeys  = text.Set(`notebook dir directory`)
	contentKeys = text.Set(`content contents file_text text new_source`)
	searchKeys  = text.Set(`pattern query glob regex search_term keyword keywords`)
	// slight are programs whose effect is seen in a listing of the folder.
	slight = text.Set(`mkdir touch chmod cd`)
	// binding are words of demands, in seven languages: they decide which lines of long requests are shown first.
	binding = text.Set(`must never always only don't dont not without avoid should shouldn't mustn't cannot instead exactly keep ensure prefer
		nunca siempre debe solo sin evita jamais toujours doit sans seulement éviter nie immer muss nur ohne nicht kein keine darf
		нельзя никогда всегда только должен должно без нужно обязательно`)
	bindingSigns = []string{"不要", "必须", "不能", "只", "禁止", "务必", "应该", "ないで", "必ず", "だけ", "禁止", "してはいけ", "べき", "마세요", "반드시"}
)
