package extract

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/reference"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// section is a section of the summary. Sections are numbered in the order of the text.
type section int

const (
	sectionTask section = iota
	sectionGoal
	sectionConstraints
	sectionRequests
	sectionCompleted
	sectionExchanges // requests and actions in one, where calls tell what came of the requests
	sectionState
	sectionInProgress
	sectionBlocked
	sectionDecisions
	sectionFindings
	sectionPending
	sectionFiles
	sectionRemaining
	numSections
)

// sectionTable holds the heading of each section and its maximum share of the prose.
var sectionTable = [numSections]struct {
	heading string
	share   float64
}{
	sectionTask: {"## Active Task", 0.35}, sectionGoal: {"## Goal", 0.12}, sectionConstraints: {"## Constraints & Preferences", 0.30},
	sectionRequests: {"## Earlier Requests", 0.47}, sectionCompleted: {"## Completed Actions", 0.75},
	sectionExchanges: {heading: "## Requests and Actions"}, sectionState: {"## Active State", 0.35}, sectionInProgress: {"## In Progress", 0.20},
	sectionBlocked: {"## Blocked", 0.15}, sectionDecisions: {"## Key Decisions", 0.12}, sectionFindings: {"## Findings", 0.45},
	sectionPending: {"## Pending User Asks", 0.10}, sectionFiles: {"## Relevant Files", 0.35}, sectionRemaining: {"## Remaining Work", 0.20},
}

// talkFindingsShare is the share of the findings in a talk: what was said there is all that there is.
const talkFindingsShare = 0.75

// recordsRequestsShare is the share of the earlier requests beside calls with their values.
const recordsRequestsShare = 0.2

// Every line of a section begins with one of these, so that no text is mistaken for a
// heading or a delimiter.
const (
	bulletMark  = "- "
	indentMark  = "  "
	quoteMark   = reference.UserMark
	requestMark = "- > "
	askedMark   = "- Asked: "
	// pendingMark begins a question of the assistant that the user has not answered.
	pendingMark = "- The assistant asked: "
	// finishedMark begins a task of a list that was done.
	finishedMark = "- Done: "
	// finishedOthers begins some of those.
	finishedOthers = "- Done, among others: "
	openMark       = "- Open: "
	fileMark       = "- file "
	// createdFileMark begins a file that was not there before.
	createdFileMark = "- created file "
	// requestSeparator is between requests on one line.
	requestSeparator = " · "
	// planMark begins the title of the plan that the user approved.
	planMark = "- Plan approved by the user: "
	// beforeMark begins an earlier request that the active task refers to.
	beforeMark = "- Before: > "
	// onMark begins the date of the active task.
	onMark = "- Asked on "
	// answeredLine tells that the assistant ended its work on the active task.
	answeredLine = "- Answered; any reply of the user follows.\n"
	// closedLine tells that the newest message asks for nothing.
	closedLine = "- Nothing is asked for: the user closes.\n"
	// askedBackLine tells that the last message asks about the active task.
	askedBackLine = "- The assistant asked back; any reply of the user follows.\n"
	// commitMark begins a commit that was made for the request above it.
	commitMark = "- Committed: "
	// editedHereMark begins the files that were edited for the request above it.
	editedHereMark = "- Edited: "
	// documentMark stands below a document of the user after which files were edited: what it says may be over.
	documentMark = "- Files were edited since it was written.\n"
	// activeHere stands where the active task belongs among the actions.
	activeHere = "- The active task, for which:"
	// omittedLine counts the actions without room, and those of the kinds of which there are most.
	omittedLine = "- Actions for which there is no room: %d%s\n"
	// tasksLine counts the open tasks without room.
	tasksLine = "- Open tasks for which there is no room: %d\n"
	// These begin lines of the state, which is another one later.
	saidLastMark       = "- Said last: "
	lastCallMark       = "- Last: "
	lastOfMark         = "of %d calls, all with results: "
	editedForMark      = "- Edited for this task: "
	editedAndCommitted = "- Edited for this task and committed: "
	nothingEdited      = "- Nothing edited for this task yet."
	uncommittedMark    = "- Edited since the last commit: "
	uncommittedAllMark = "- Edited, no commit seen: "
	checkedMark        = "- Passed since the last edit: "
	notChecked         = "- Nothing was checked since the last edit."
	discardedMark      = "- Edits that were discarded, of: "
	committedMark      = "- Committed, nothing edited since: "
	mergedMark         = "- Committed, merged with other work since: "
	// earlierMark comes before the files that were not edited for the active task.
	earlierMark = "(before this task) "
	// formerEarlierMark is that of summaries up to extractive/18.
	formerEarlierMark = " before this task "
	// foundBefore stands above findings that later edits may have settled.
	foundBefore = "- Found before files were edited, perhaps settled:\n"
	// proposedBefore stands above findings that say what would be, or could be done, or what may be so.
	proposedBefore = "- Proposed or supposed:\n"
	// failedBeforeMark begins a check that failed before files were edited.
	failedBeforeMark = "- Failed before the last edits: "
	// chosenMark begins what the user picked from a list.
	chosenMark = "The user chose: "
	// agreedMark begins a proposal that the user agreed to.
	agreedMark = "The user agreed: "
	// repliesMark begins a line of the assistant that the active task replies to.
	repliesMark = "- Replies to: "
)

// userLabel matches a label of the user, as in transcripts.
var userLabel = text.Pattern(`(?i)^[\s*_(\[]*(?:user|human)[\s*_)\]]*:`)

// stateMarks begin the lines of the state that another one replaces later, ownMarks these and all other lines that texts of
// others cannot begin with.
var (
	stateMarks = []string{saidLastMark, lastCallMark, editedForMark, editedAndCommitted, nothingEdited, uncommittedMark, uncommittedAllMark, checkedMark, notChecked, discardedMark, committedMark, mergedMark, failedBeforeMark}
	ownMarks   = append(slices.Clip(stateMarks), askedMark, pendingMark, finishedMark, finishedOthers, openMark, planMark, beforeMark, repliesMark, commitMark, editedHereMark, omittedMark, tasksMark, foundBefore[:len(foundBefore)-1], documentMark[:len(documentMark)-1], proposedBefore[:len(proposedBefore)-1])
)

// formatEntry returns the line of a text of the assistant.
func formatEntry(s string) string { return formatLine(s, "assistant: ") }

// formatLine returns the line of a text that is not the user's. Its beginning cannot be
// mistaken for that of a quotation, or for a label of the user: who says it precedes it then.
func formatLine(s, speaker string) string {
	for {
		s = strings.TrimLeft(s, ">＞﹥ ")
		rest := strings.TrimLeft(s, "-*+ ")
		if first, _ := utf8.DecodeRuneInString(rest); !strings.ContainsRune(">＞﹥", first) {
			break
		}
		s = rest
	}
	line := bulletMark + s
	mistaken := slices.ContainsFunc(ownMarks, func(mark string) bool { return strings.HasPrefix(line, mark) })
	if folded, _ := text.Fold(text.Head(s, maxUserLabel)); mistaken || userLabel().MatchString(folded) {
		s = speaker + s
	}
	return bulletMark + s + "\n"
}

// maxUserLabel is the number of characters in which a label such as "user:" stands.
const maxUserLabel = 24

// isQuoted reports whether a line quotes the user.
func isQuoted(line string) bool {
	return strings.HasPrefix(line, beforeMark) || strings.HasPrefix(strings.TrimLeft(line, "- "), quoteMark)
}

// sectionOf returns the section with the given heading.
func sectionOf(line string) (section, bool) {
	for s := range sectionTable {
		if line == sectionTable[s].heading {
			return section(s), true
		}
	}
	return 0, false
}

// entry is an entry of a section, with the lines indented below it, and the date above it, "" for
// none. After is the number of requests before it.
type entry struct {
	day, text string
	after     int
}

// splitEntries returns the entries of a section's lines.
func splitEntries(lines []string) []entry {
	var out []entry
	day := ""
	for _, l := range lines {
		if date, ok := parseDay(l); ok {
			day = date
			continue
		}
		if day != "" {
			rest, indented := strings.CutPrefix(l, indentMark)
			if l = rest; !indented {
				day = ""
			}
		}
		if strings.HasPrefix(l, indentMark) && len(out) > 0 {
			out[len(out)-1].text += "\n" + l
			continue
		}
		out = append(out, entry{day: day, text: l})
	}
	return out
}
