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

// reportOf returns the report of one trajectory.
func reportOf(o Outcome) BatchReport {
	r := BatchReport{
		Trajectories:   1,
		OriginalTokens: int64(o.OriginalTokens), CompressedTokens: int64(o.CompressedTokens), TokensSaved: int64(o.TokensSaved),
		OriginalTurns: int64(o.OriginalTurns), CompressedTurns: int64(o.CompressedTurns), TurnsRemoved: int64(o.TurnsRemoved),
		SummaryCalls: o.SummaryCalls, SummaryErrors: o.SummaryErrors,
	}
	switch {
	case o.Err != nil:
		r.Failed = 1
	case o.Compressed:
		r.Compressed = 1
		r.ratios, r.saved, r.removed = o.Ratio, r.TokensSaved, r.TurnsRemoved
	case o.UnderTarget:
		r.UnderTarget = 1
	}
	if o.StillOver {
		r.StillOver = 1
	}
	return r
}

// Add adds another report and updates the averages.
func (r *BatchReport) Add(o BatchReport) {
	r.Trajectories += o.Trajectories
	r.Compressed += o.Compressed
	r.UnderTarget += o.UnderTarget
	r.StillOver += o.StillOver
	r.Failed += o.Failed
	r.OriginalTokens += o.OriginalTokens
	r.CompressedTokens += o.CompressedTokens
	r.TokensSaved += o.TokensSaved
	r.OriginalTurns += o.OriginalTurns
	r.CompressedTurns += o.CompressedTurns
	r.TurnsRemoved += o.TurnsRemoved
	r.SummaryCalls += o.SummaryCalls
	r.SummaryErrors += o.SummaryErrors
	r.ratios += o.ratios
	r.saved += o.saved
	r.removed += o.removed
	r.average()
}

func (r *BatchReport) average() {
	if r.Compressed == 0 {
		return
	}
	n := float64(r.Compressed)
	r.AverageRatio = math.Round(r.ratios/n*1e4) / 1e4
	r.AverageTokensSaved = math.Round(float64(r.saved)/n*10) / 10
	r.AverageTurnsRemoved = math.Round(float64(r.removed)/n*10) / 10
}
