package plan

// Truncator is implemented by strategies that, in a view without pins, only drop the oldest groups.
type Truncator interface {
	Strategy
	Truncation() Truncation
}

// Truncation says which groups go: of a view of more than Most messages, or tokens, the oldest until
// at most Leave are left, except for the newest and, with PreserveSystem, system messages.
type Truncation struct {
	Most, Leave    int64
	Tokens         bool
	PreserveSystem bool
}
