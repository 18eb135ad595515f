package eval

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/strategies/chat"
)

// measureVersion is part of the key of every row. Change it with the measure.
const measureVersion = "retention/3"

// Setting holds what is measured for each policy.
type Setting struct {
	Cut float64 `json:"cut"`
	// Budget is a share of the tokens before the cut, 0 if BudgetTokens is the number. Without
	// either, a policy has its own limits.
	Budget       float64 `json:"budget,omitempty"`
	BudgetTokens float64 `json:"budget_tokens,omitempty"`
	// Rounds is the number of compactions of a session up to the cut, at least 1.
	Rounds int `json:"rounds"`
}

// own reports that policies have their own limits.
func (s Setting) own() bool { return s.Budget == 0 && s.BudgetTokens == 0 }

// Limit returns the budget and the rounds as text: "5 %", "300 t" or "5 % ×8"; "of the policy" for
// none.
func (s Setting) Limit() string {
	if s.own() {
		return "of the policy"
	}
	text := share100(s.Budget)
	if s.BudgetTokens > 0 {
		text = strconv.FormatFloat(s.BudgetTokens, 'f', -1, 64) + " t"
	}
	return text + s.times()
}

// times returns "" for one round, else a text like " ×8".
func (s Setting) times() string {
	if s.Rounds == 1 {
		return ""
	}
	return fmt.Sprintf(" ×%d", s.Rounds)
}

// tokens returns the budget of that many tokens before the cut.
func (s Setting) tokens(before float64) float64 { return cmp.Or(s.BudgetTokens, s.Budget*before) }

// Row holds the measurement of one session under one policy, cut and budget.
type Row struct {
	// Key is a hash of everything that the row depends on.
	Key     string `json:"key"`
	Session string `json:"session"`
	Setting
	Policy string `json:"policy"`
	// Before and Kept are tokens without system messages.
	Before float64 `json:"before"`
	Kept   float64 `json:"kept"`
	// Needs and StrictNeeds count the identifiers to retain.
	Needs       int `json:"needs"`
	StrictNeeds int `json:"strict_needs"`
	Loose       int `json:"loose"`
	Keyed       int `json:"keyed"`
	Strict      int `json:"strict"`
	// Held, HeldWords and Counts are those of a retention.Detail.
	Held      []byte                              `json:"held"`
	HeldWords []byte                              `json:"held_words"`
	Counts    [retention.Measures]retention.Count `json:"counts"`
	// Rare and Words depend on the other sessions, and are set when all of them were read.
	Rare  retention.Count `json:"-"`
	Words retention.Count `json:"-"`
	Usage
	// Text is the kept text if the session is a sample.
	Text *string `json:"text,omitempty"`
}

// newRow returns the row of a measurement of so many tokens.
func newRow(c *retention.Case, d retention.Detail, before, kept float64) Row {
	return Row{
		Before: before, Kept: kept, Needs: len(c.Needs), StrictNeeds: c.Strict, Loose: d.Loose, Keyed: d.Keyed, Strict: d.Strict,
		Held: d.Held, HeldWords: d.HeldWords, Counts: d.Counts,
	}
}

// Session holds a conversation to replay.
type Session struct {
	Name string
	// Corpus names the sessions that this one is measured with: a file.
	Corpus   string
	Model    string
	Messages []chat.Message
	// Facts holds the annotated answers of the session, if it has any.
	Facts []retention.Fact
	// Weight is the value to pass to Options.Progress.
	Weight int64
}

// hash returns a hash of the parts of a session that its rows depend on, and of its counter.
func (s *Session) hash(size retention.Sizer) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%q\n%q\n%#v\n", measureVersion, size.Whole().Name(), s.Name, s.Model, s.Facts)
	var buf []byte
	for i := range s.Messages {
		buf = append(s.Messages[i].AppendJSON(buf[:0]), '\n')
		h.Write(buf)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// key returns the key of a row.
func key(session string, s Setting, p *Policy) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%v\n%s", session, s, p.Definition))
	return hex.EncodeToString(sum[:16])
}

// maxSample limits the characters of a sample.
const maxSample = 200_000

// sample returns the kept messages as text, each after its role if there are several.
func sample(kept []chat.Message) *string {
	var said []*chat.Message
	for i := range kept {
		if kept[i].Role != chat.RoleSystem && kept[i].Role != chat.RoleDeveloper {
			said = append(said, &kept[i])
		}
	}
	var b strings.Builder
	for i, m := range said {
		if b.Len() > 4*maxSample {
			fmt.Fprintf(&b, "… and %d more messages", len(said)-i)
			break
		}
		if len(said) > 1 {
			fmt.Fprintf(&b, "[%s]\n", m.Role)
		}
		b.WriteString(strings.TrimSpace(retention.Text(m)))
		b.WriteString("\n\n")
	}
	text := cmp.Or(strings.TrimSpace(b.String()), "(nothing)")
	n := 0
	for at := range text {
		if n == maxSample {
			text = fmt.Sprintf("%s\n… cut after %d characters", text[:at], maxSample)
			break
		}
		n++
	}
	return &text
}
