package summary

import (
	"github.com/sessionstore/compactor/strategies/policy"
)

// Settings are how a policy wants summaries made.
type Settings = policy.Summary

// What Settings.OnFailure can be.
const (
	OnFailureKeep       = policy.OnFailureKeep
	OnFailureExtractive = policy.OnFailureExtractive
	OnFailureTruncate   = policy.OnFailureTruncate
	OnFailureMarker     = policy.OnFailureMarker
)
