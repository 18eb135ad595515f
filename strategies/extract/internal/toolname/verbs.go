package toolname

import (
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// IsActVerb reports whether a word in lower case is a verb of what changes something.
func IsActVerb(w string) bool { return actVerbs[w] }

// IsLookVerb reports whether a word in lower case is a verb of what only looks.
func IsLookVerb(w string) bool { return lookVerbs[w] }

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
)
