package llm

// Class is the class of a failed call. Its text is the code that is stored and logged.
type Class string

// The classes; rules defines how each is handled.
const (
	RateLimited     Class = "rate_limited"     // a rate limit was exceeded; transient
	QuotaExhausted  Class = "quota_exhausted"  // the account has no quota or money left
	Overloaded      Class = "overloaded"       // the server fails or is overloaded
	Timeout         Class = "timeout"          // no answer within the deadline
	ContextTooLong  Class = "context_too_long" // the input exceeds the window of the model
	ContentFilter   Class = "content_filter"   // the provider's filter blocked it
	Auth            Class = "auth"             // the key is missing, wrong or not allowed
	ModelNotFound   Class = "model_not_found"  // the server has no model of that name
	BadRequest      Class = "bad_request"      // the server rejects the request
	MalformedAnswer Class = "malformed_answer" // the response holds no answer
	Unavailable     Class = "unavailable"      // no server was reached, or no model is available
	OverBudget      Class = "over_budget"      // the call would exceed its budget
	Canceled        Class = "canceled"         // the caller canceled the call
)

// action is the step after a failure that is not retried on the same model.
type action int

const (
	endCall     action = iota // end the call
	nextModel                 // try the next model of the chain
	largerModel               // try the next model with a larger window
)

// cooldownKind is the cooldown that a failure starts.
type cooldownKind int

const (
	noCooldown cooldownKind = iota
	transient               // Cooldown.Transient
	noProvider              // Cooldown.NoProvider
)

// rule describes how a class of failures is handled.
type rule struct {
	// tries is the maximum number of attempts with one model.
	tries int
	then  action
	// cooldown is the cooldown of the model.
	cooldown cooldownKind
	// trips marks failures of the server, not of the call: they count for its breaker.
	trips bool
	// rank orders the failures of several models: the call returns the highest, which
	// is the most useful to the caller.
	rank int
}

// rules defines the handling of every class of failures. Nothing else decides it.
//
// A timeout is not retried on the same model: it took the whole deadline and was probably
// billed. A request that one model rejects (BadRequest: an unsupported parameter) may succeed
// with the profile of the next. A malformed answer says nothing about other
// calls, so it starts no cooldown.
var rules = map[Class]rule{
	ContextTooLong:  {tries: 1, then: largerModel, cooldown: noCooldown, trips: false, rank: 9},
	RateLimited:     {tries: 4, then: nextModel, cooldown: transient, trips: false, rank: 8},
	Overloaded:      {tries: 3, then: nextModel, cooldown: transient, trips: true, rank: 8},
	Unavailable:     {tries: 3, then: nextModel, cooldown: transient, trips: true, rank: 8},
	Timeout:         {tries: 1, then: nextModel, cooldown: transient, trips: true, rank: 7},
	MalformedAnswer: {tries: 2, then: nextModel, cooldown: noCooldown, trips: true, rank: 6},
	ContentFilter:   {tries: 1, then: nextModel, cooldown: noCooldown, trips: false, rank: 5},
	BadRequest:      {tries: 1, then: nextModel, cooldown: noCooldown, trips: false, rank: 4},
	ModelNotFound:   {tries: 1, then: nextModel, cooldown: noProvider, trips: false, rank: 3},
	QuotaExhausted:  {tries: 1, then: nextModel, cooldown: noProvider, trips: false, rank: 3},
	Auth:            {tries: 1, then: nextModel, cooldown: noProvider, trips: false, rank: 3},
	OverBudget:      {tries: 0, then: nextModel, cooldown: noCooldown, trips: false, rank: 1},
	Canceled:        {tries: 1, then: endCall, cooldown: noCooldown, trips: false, rank: 10},
}
