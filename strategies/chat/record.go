package chat

// Record is a message of a session's log with what is known of it there.
type Record struct {
	Meta
	Message Message
	// Included: the message is in the view. Pinned: it stays there, verbatim.
	Included, Pinned bool
}

// Log is what a history has of a session at one moment.
type Log struct {
	// Records are in view order.
	Records []Record
	// Last is the seq of the last message that was ever written, in Records or not.
	Last Seq
	// Revision counts the views: a plan made on another one is stale.
	Revision int64
}

// Write is what a history is given at once: messages, and what a compaction made of
// the session with them.
type Write struct {
	// Messages have the seqs After+1, After+2, and so on.
	Messages []Message
	// Plan is for the view of Revision with the messages behind it. It holds only if
	// After is still the session's last seq; the messages are written all the same.
	Plan     Plan
	After    Seq
	Revision int64
	// Pinned are the pins that the plan was made with: it does not hold if it takes
	// out what was pinned since.
	Pinned Ranges
	// Steps are what the strategies did, for the ledger; any value that JSON can hold.
	Steps any
}
