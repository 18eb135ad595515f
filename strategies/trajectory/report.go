package trajectory

import "math"

// BatchReport sums up the outcomes of many trajectories.
type BatchReport struct {
	Trajectories int `json:"trajectories"`
	Compressed   int `json:"compressed"`
	UnderTarget  int `json:"skipped_under_target"`
	// StillOver counts the trajectories that exceed the target afterwards.
	StillOver int `json:"still_over_limit"`
	Failed    int `json:"failed"`

	// Tokens and turns of all trajectories that could be parsed.
	OriginalTokens   int64 `json:"original_tokens"`
	CompressedTokens int64 `json:"compressed_tokens"`
	TokensSaved      int64 `json:"tokens_saved"`
	OriginalTurns    int64 `json:"original_turns"`
	CompressedTurns  int64 `json:"compressed_turns"`
	TurnsRemoved     int64 `json:"turns_removed"`

	SummaryCalls  int `json:"summarization_api_calls"`
	SummaryErrors int `json:"summarization_errors"`

	// Averages over the compressed trajectories, 0 if there are none.
	AverageRatio        float64 `json:"average_compression_ratio"`
	AverageTokensSaved  float64 `json:"average_tokens_saved"`
	AverageTurnsRemoved float64 `json:"average_turns_removed"`

	// Sums over the compressed trajectories, for the averages.
	ratios         float64
	saved, removed int64
}

// Add adds the outcome of a trajectory and updates the averages.
func (r *BatchReport) Add(o Outcome) {
	r.Trajectories++
	r.OriginalTokens += int64(o.OriginalTokens)
	r.CompressedTokens += int64(o.CompressedTokens)
	r.TokensSaved += int64(o.TokensSaved)
	r.OriginalTurns += int64(o.OriginalTurns)
	r.CompressedTurns += int64(o.CompressedTurns)
	r.TurnsRemoved += int64(o.TurnsRemoved)
	r.SummaryCalls += o.SummaryCalls
	r.SummaryErrors += o.SummaryErrors
	switch {
	case o.Err != nil:
		r.Failed++
	case o.Compressed:
		r.Compressed++
		r.ratios += o.Ratio
		r.saved += int64(o.TokensSaved)
		r.removed += int64(o.TurnsRemoved)
		n := float64(r.Compressed)
		r.AverageRatio = math.Round(r.ratios/n*1e4) / 1e4
		r.AverageTokensSaved = math.Round(float64(r.saved)/n*10) / 10
		r.AverageTurnsRemoved = math.Round(float64(r.removed)/n*10) / 10
	case o.UnderTarget:
		r.UnderTarget++
	}
	if o.StillOver {
		r.StillOver++
	}
}
