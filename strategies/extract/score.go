package extract

import (
	"math"
	"unicode/utf8"
)

// candidate is an identifier and the chance that it will be needed.
type candidate struct {
	*identifier
	score float64
}

// The weights of a logistic regression: whether the second half of a conversation used
// an identifier of the first, by what the first half knew of it. They were fitted once
// on every other one of 47 recorded coding sessions and rank as well on the others and
// on conversations of other kinds. Sizes are taken as logarithms to base 2.
const (
	weightBias      = -0.34
	weightAge       = -0.18 // each doubling of the tokens since it was seen
	weightUnused    = -0.40 // only tools wrote it
	weightTexts     = 0.23  // each doubling of the texts that hold it
	weightUses      = 0.61  // the same of texts by the user or the assistant
	weightNumber    = -1.43 // a bare number
	weightHash      = -0.69 // a content hash, a UUID
	weightLength    = -0.17 // each doubling of its length
	weightNeighbors = -0.23 // each doubling of the identifiers it shared its least crowded text with

	ageUnit    = 1024 // bytes, about 256 tokens
	lengthUnit = 16   // characters
)

// score estimates the chance that the rest of the conversation uses an identifier.
func (t *table) score(id *identifier) float64 { return 1 / (1 + math.Exp(-t.logOdds(id))) }

// logOdds returns the logarithm of the odds of need.
func (t *table) logOdds(id *identifier) float64 {
	z := weightBias +
		weightAge*math.Log2(1+float64(t.bytesRead-id.last)/ageUnit) +
		weightTexts*math.Log2(float64(max(1, id.texts))) +
		weightUses*math.Log2(1+float64(id.uses)) +
		weightLength*math.Log2(float64(utf8.RuneCountInString(id.value))/lengthUnit) +
		weightNeighbors*math.Log2(1+float64(id.neighbors))
	if id.uses == 0 {
		z += weightUnused
	}
	switch id.kind {
	case Number:
		z += weightNumber
	case SHA, UUID:
		z += weightHash
	default:
	}
	return z
}
