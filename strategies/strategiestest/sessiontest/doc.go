// Package sessiontest models a stored session for tests of strategies: it
// appends messages, runs pipelines over them, applies their plans and checks the
// invariants of the view. Only tests import it.
package sessiontest
