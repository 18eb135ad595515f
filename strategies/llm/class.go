package llm

// Class says what kind of failure a call ended with. Its text is the code that is
// stored and logged.
type Class string

// The classes. rules says what each leads to.
const (
	RateLimited     Class = "rate_limited"     // too much within a time; passes by itself
	QuotaExhausted  Class = "quota_exhausted"  // no money left; somebody has to pay
	Overloaded      Class = "overloaded"       // the server fails or has too much to do
	Timeout         Class = "timeout"          // no answer within the deadline
	ContextTooLong  Class = "context_too_long" // more than the model reads; less may pass
	ContentFilter   Class = "content_filter"   // the provider's filter stopped it
	Auth            Class = "auth"             // the key is missing, wrong or not allowed
	BadRequest      Class = "bad_request"      // the server does not take such a request
	MalformedAnswer Class = "malformed_answer" // an answer that is none
	Unavailable     Class = "unavailable"      // no server was reached, or none may be asked now
	OverBudget      Class = "over_budget"      // the call would cost more than it may
	Canceled        Class = "canceled"         // the caller gave up
)

// after is what follows a failure when the model is not asked again.
type action int

const (
	endCall     action = iota // the call is over
	nextModel                 // the next model of the chain is asked
	largerModel               // the next model with a larger window is asked
)

// cooldownKind is which cooldown a failure starts.
type cooldownKind int

const (
	noCooldown cooldownKind = iota
	transient               // Cooldown.Transient
	noProvider              // Cooldown.NoProvider
)

// rule is what a class of failure leads to.
type rule struct {
	// tries is how often one model is asked in all while it fails this way.
	tries int
	then  action
	// cooldown is the one that the model gets.
	cooldown cooldownKind
	// trips says that the failure speaks against the server, not against the call,
	// and counts for its breaker.
	trips bool
	// rank orders the failures of several models: the call ends with the highest,
	// which is the one that the caller can do most about.
	rank int
}

// rules returns the one place that decides what a failure leads to.
//
// A timeout is not tried again on the same model: it took the whole deadline and
// was probably billed. A request that one model refuses (BadRequest: unknown model,
// parameter not taken) may suit the next one, whose profile is another. A malformed
// answer says little about other calls, so it starts no cooldown.
func rules() map[Class]rule {
	return map[Class]rule{
		ContextTooLong:  {tries: 1, then: largerModel, cooldown: noCooldown, trips: false, rank: 9},
		RateLimited:     {tries: 4, then: nextModel, cooldown: transient, trips: false, rank: 8},
		Overloaded:      {tries: 3, then: nextModel, cooldown: transient, trips: true, rank: 8},
		Unavailable:     {tries: 3, then: nextModel, cooldown: transient, trips: true, rank: 8},
		Timeout:         {tries: 1, then: nextModel, cooldown: transient, trips: true, rank: 7},
		MalformedAnswer: {tries: 2, then: nextModel, cooldown: noCooldown, trips: true, rank: 6},
		ContentFilter:   {tries: 1, then: nextModel, cooldown: noCooldown, trips: false, rank: 5},
		BadRequest:      {tries: 1, then: nextModel, cooldown: noCooldown, trips: false, rank: 4},
		QuotaExhausted:  {tries: 1, then: nextModel, cooldown: noProvider, trips: false, rank: 3},
		Auth:            {tries: 1, then: nextModel, cooldown: noProvider, trips: false, rank: 3},
		OverBudget:      {tries: 0, then: nextModel, cooldown: noCooldown, trips: false, rank: 1},
		Canceled:        {tries: 1, then: endCall, cooldown: noCooldown, trips: false, rank: 10},
	}
}
