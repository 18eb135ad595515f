package builtin

import "github.com/sessionstore/compactor/strategies/plan"

// For the tests of hosts, which import this package.
var (
	DrawMessages = drawMessages
	DrawPipeline = drawPipeline
	DrawStrategy = drawStrategy
)

// Hostile returns a strategy that reads everything and plans anything.
func Hostile(seed uint64) plan.Strategy { return hostile{seed: seed} }
