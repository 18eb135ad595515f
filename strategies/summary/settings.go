package summary

import (
	"github.com/sessionstore/compactor/strategies/policy"
)

// Settings are the summary settings of a policy.
type Settings = policy.Summary

// Values of Settings.OnFailure.
const (
	OnFailureKeep       = policy.OnFailureKeep
	OnFailureExtractive = policy.OnFailureExtractive
	OnFailureTruncate   = policy.OnFailureTruncate
	OnFailureMarker     = policy.OnFailureMarker
)
