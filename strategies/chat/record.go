package chat

// Record is a message of a session's log with what is known of it there.
type Record struct {
	Meta
	Message Message
	// Included: the message is in the view. Pinned: it stays there, verbatim.
	Included, Pinned bool
}
