package bench

import "testing"

// TestTokensMeasuresEveryInput checks that each rate is there, and that the counter agrees with
// tiktoken-go, which Tokens itself compares.
func TestTokensMeasuresEveryInput(t *testing.T) {
	t.Parallel()
	shown := 0
	r, err := Tokens(t.Context(), TokensOptions{Bytes: 5000, Rounds: 1, Seed: 1}, func(_ string, done, total int) {
		if shown++; done != shown || done > total {
			t.Errorf("progress %d of %d in call %d", done, total, shown)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range r.Inputs {
		if !(in.O200K >= r.Worst) || !(in.CL100K >= r.Worst) {
			t.Errorf("%s: %v and %v MB/s, with %v at worst", in.Input, in.O200K, in.CL100K, r.Worst)
		}
	}
	if len(r.Inputs) != shown || r.WorstInput == "" || r.O200K <= 0 || r.CL100K <= 0 || r.TiktokenGo <= 0 || r.Ratio <= 0 || r.CJK <= 0 || r.Worst <= 0 || r.LoadMillis < 0 {
		t.Errorf("got %+v", r)
	}
}
