package extract

import (
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Kinds of handles that rules refer to.
const (
	process     = "process"
	tunnel      = "tunnel"
	pullRequest = "PR"
	branch      = "branch"
	container   = "container"
)

const (
	// containerID is before the id of a container that has a name.
	containerID = "id "
	// minContainerID is the size of the shortest id of a container that is printed.
	minContainerID = 12
)

// opener is a kind of handle that a command or a result opens. The id is the first group of
// result, or of command if there is no result.
type opener struct {
	kind            string
	command, result func() *text.Regexp
}

const git = `^git (?:-C \S+ )?`

var (
	// commandOpeners are matched with each simple command of a call.
	commandOpeners = []opener{
		{branch, text.Pattern(git + `(?:checkout|switch|worktree add)(?: .*)? (?:-[bBcC]|--create|--orphan) (\S+)`), nil},
		{branch, text.Pattern(git + `branch (?:-f |--force )?([^-\s]\S*)`), nil},
		{"worktree", text.Pattern(git + `worktree add (?:-[bB] \S+ |-\S+ )*([^-\s]\S*)`), nil},
		{"tmux", text.Pattern(`^tmux (?:new|new-session)(?: .*)? -\w*s (\S+)`), nil},
		{"screen", text.Pattern(`^screen(?: .*)? -\w*S (\S+)`), nil},
		{container, text.Pattern(`^(?:docker|podman) run (?:.* )?(?:-d|-\w*d\w*|--detach) (?:.* )?--name[ =](\S+)`), nil},
		{container, text.Pattern(`^(?:docker|podman) run (?:.* )?(?:-d|-\w*d\w*|--detach) `), text.Pattern(`(?m)^([0-9a-f]{12,64})$`)},
		{"containers", text.Pattern(`^(?:docker|podman) (compose) (?:.* )?up (?:.* )?(?:-d|--detach)\b`), nil},
		{tunnel, text.Pattern(`^(?:auto)?ssh (?:.* )?-\w*f(?:\w* .*-)?\w*[LRD] ?((?:[\w.]+:)?\d+\S*)`), nil},
		{tunnel, text.Pattern(`^(?:auto)?ssh (?:.* )?-\w*[LRD] ?((?:[\w.]+:)?\d+\S*) (?:.* )?-\w*f`), nil},
		{pullRequest, text.Pattern(`^(?:gh pr|glab mr) create\b`), text.Pattern(`https?://\S+/(?:pull|merge_requests)/(\d+)`)},
		{"issue", text.Pattern(`^(?:gh|glab) issue create\b`), text.Pattern(`https?://\S+/issues/(\d+)`)},
	}
	// resultOpeners are matched with the results of calls that read no file.
	resultOpeners = []opener{
		{process, nil, text.Pattern(`(?im)^.{0,40}\b(?:running|started|moved) (?:in|to) (?:the )?background with (?:an? )?(?:\w+ )?id:? *([\w-]+)`)},
		{process, nil, text.Pattern(`(?im)^(?:process|command) (?:is )?running with (?:session|process) id:? *([\w-]+)`)},
		{"subagent", nil, text.Pattern(`(?is)^[^\n]{0,40}\bagent (?:was )?(?:launched|started|spawned)\b.{0,80}?\bagent_?id: *([\w-]+)`)},
	}
	// pid is the id of a process that a shell started in the background; one without a word
	// is that only if the command prints it.
	pid = text.Pattern(`(?im)^(?:(?:\[\d+\] |.{0,40}\bpid\b[^\w\n]{0,4}(?:is )?)(\d+)|(\d{2,7}))\s*$`)
	// address is where a server listens, as it reports.
	address = text.Pattern(`(?im)\b(?:listening|running|serving|started|ready|available|local|network|open)\b.{0,60}?\b((?:https?://)?(?:localhost|127\.0\.0\.1|0\.0\.0\.0):\d{2,5}|port:? \d{2,5})\b`)
	// published is a port that a container publishes.
	published = text.Pattern(`(?:-p|--publish)[ =](?:[\d.]+:)?(\d+):\d+`)
	// endsSoon matches commands in the background that end without being killed.
	endsSoon = text.Pattern(`^(?:timeout|sleep|wait)\b`)

	// commandClosers are simple commands that close the handles whose ids are among their words.
	commandClosers = text.Pattern(`^(?:(?:docker|podman) (?:container |compose (?:.* )?)?(?:stop|kill|rm|down)\b|` +
		`git (?:-C \S+ )?(?:merge|worktree remove|branch (?:.* )?(?:-[dD]|--delete)|push (?:.* )?(?:-d|--delete))\b|` +
		`tmux kill-|screen (?:.* )?-X |(?:gh|glab) (?:pr|mr|issue) (?:merge|close|delete)\b)`)
	// mergedBranch is a command that merges and deletes a branch, deletedBranch what says which.
	mergedBranch  = text.Pattern(`^(?:gh pr|glab mr) merge\b.* (?:-d|--delete-branch|--remove-source-branch)\b`)
	deletedBranch = text.Pattern(`(?i)\bdeleted (?:(?:local|remote|the) )*branch '?([^\s',]+)`)
	// killers are simple commands that end processes.
	killers = text.Pattern(`^(?:sudo )?(?:kill|pkill|killall|fuser)\b|^xargs (?:.* )?kill\b|^wait$`)
	// settled is what a report on something that ended says.
	settled = text.Pattern(`(?i)<status>(?:completed|failed|killed|stopped|done)\b|\bstatus"?: *"?(?:completed|failed|killed|stopped|exited|done)\b|\bexited with code\b`)

	// refused is what the result of a call says that the user did not allow.
	refused = text.Pattern(`(?i)\A.{0,20}\buser (?:doesn't want to|did not want to|declined|denied|rejected|refused)\b|\A.{0,20}\btool use was (?:rejected|denied)\b`)

	// aborted is the result of a call that was stopped.
	aborted = text.Pattern(`(?i)\A\W*(?:command|request|tool use|operation) (?:was )?aborted\W*\z`)

	openVerbs   = text.Set(`create open start launch spawn new`)
	closeVerbs  = text.Set(`close kill stop delete remove cancel terminate end destroy merge archive`)
	handleNouns = text.Set(`issue ticket task job process shell terminal session server container agent subagent worker browser tab instance sandbox
		branch worktree tunnel timer monitor`)
	// processWords are in the names of tools that tell of a process.
	processWords = text.Set(`task job process bash shell terminal session stdin output command exec`)
	// idKeys are the keys of ids in results without underscores, those for people first.
	idKeys = []string{"identifier", "number", "key", "id", "pid", "port", "name"}
	// finalStatus are the statuses that do not change any more, doneStatus those of what was done, and
	// currentStatus those of what is worked on now.
	finalStatus   = text.Set(`completed complete done cancelled canceled closed merged deleted stopped`)
	doneStatus    = text.Set(`completed complete done`)
	currentStatus = text.Set(`in_progress doing started active`)
	// numbered is an id in a result that is a text.
	numbered = text.Pattern(`(?i)#(\d+)\b|\bid[:=]? *"?([\w-]*\d[\w-]*)`)
)
