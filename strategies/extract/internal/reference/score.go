package reference

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/identifier"
)

// Candidate is an identifier and its score.
type Candidate struct {
	*Identifier
	Score float64
}

// Weights of a logistic regression that predicts from the first half of a conversation
// whether the second half uses an identifier. They were fitted once on every other one of
// 47 recorded coding sessions, and rank as well on the others and on conversations of
// other kinds. Those of handles, codes and phrases were added later: records of customers hold
// more addresses and names than any conversation comes back to, and sources more messages. Sizes are logarithms to
// base 2.
const (
	weightBias      = -0.34
	weightAge       = -0.18 // per doubling of the bytes since the newest occurrence
	weightUnused    = -0.40 // only tools wrote it
	weightPhrase    = -0.75 // and it is a quotation of several words
	weightTexts     = 0.23  // per doubling of the texts with it
	weightUses      = 0.61  // per doubling of the uses
	weightNumber    = -1.43 // a bare number
	weightHash      = -0.69 // a content hash, a UUID
	weightHandle    = 0.70  // a name with a number, such as credit_card_1234
	weightCode      = 0.40  // capitals and digits
	weightLength    = -0.17 // per doubling of its length
	weightNeighbors = -0.23 // per doubling of its neighbors

	ageUnit    = 1024 // bytes, about 256 tokens
	lengthUnit = 16   // characters
)

// score returns the estimated probability that the rest of the conversation uses an
// identifier.
func (t *Table) score(id *Identifier) float64 { return 1 / (1 + math.Exp(-t.logOdds(id))) }

// logOdds returns the logarithm of the odds of that probability.
func (t *Table) logOdds(id *Identifier) float64 {
	z := weightBias +
		weightAge*math.Log2(1+float64(t.bytesRead-id.last)/ageUnit) +
		weightTexts*math.Log2(float64(max(1, id.Texts))) +
		weightUses*math.Log2(1+float64(id.uses)) +
		weightLength*math.Log2(float64(utf8.RuneCountInString(id.value))/lengthUnit) +
		weightNeighbors*math.Log2(1+float64(id.neighbors))
	if id.uses == 0 {
		z += weightUnused
		if id.kind == identifier.Quoted && strings.Contains(id.value, " ") {
			z += weightPhrase
		}
	}
	switch id.kind {
	case identifier.Number:
		z += weightNumber
	case identifier.SHA, identifier.UUID:
		z += weightHash
	case identifier.Handle:
		z += weightHandle
	case identifier.Code:
		z += weightCode
	default:
	}
	return z
}
