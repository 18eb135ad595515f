package chat

// Record is a message of a session's log with its state.
type Record struct {
	Meta
	Message Message
	// Included reports whether the message is in the view, Pinned whether it must stay
	// there verbatim.
	Included, Pinned bool
}

// Log is the state of a session's history.
type Log struct {
	// Records are in view order.
	Records []Record
	// Last is the seq of the last message ever written, in Records or not.
	Last Seq
	// Revision is the version of the view. A plan made on another revision is stale.
	Revision int64
}

// Write holds the messages to append to a history and the result of compacting the session
// with them.
type Write struct {
	// Messages have the seqs After+1, After+2, and so on.
	Messages []Message
	// Plan applies to the view of Revision followed by Messages. It is valid only if After
	// is still the session's last seq; the messages are written in any case.
	Plan     Plan
	After    Seq
	Revision int64
	// Pinned are the pins when the plan was made. The plan is invalid if it removes a
	// message that was pinned since.
	Pinned Ranges
	// FreeReasoning reports that the plan was made for a model that accepts signed reasoning
	// whatever precedes it.
	FreeReasoning bool
	// Steps are the reports of the strategies for the ledger; any JSON-encodable value.
	Steps any
}
