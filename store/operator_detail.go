package store

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// SessionDetail is what a list shows of a session beside its SessionRow.
type SessionDetail struct {
	SID int64 `json:"-"`
	// State is quarantined, running, queued, held, due or none, the first of these that it is.
	State string `json:"state"`
	// FirstRequest is the beginning of the first message of the user, if it was asked for and is stored.
	FirstRequest string `json:"first_request,omitempty"`
	// TokensSinceRun were said since the last run, or in all.
	TokensSinceRun chat.Tokens `json:"tokens_since_run"`
	NextCheckAt    *time.Time  `json:"next_check_at,omitempty"` // the next time that a trigger waits for
	ActiveRun      RunID       `json:"active_run,omitempty"`    // that is queued or running
	LastRun        RunID       `json:"last_run,omitempty"`      // that has ended
	Outcome        string      `json:"outcome,omitempty"`       // of the last run
	ErrorCode      string      `json:"error_code,omitempty"`
	EndedAt        *time.Time  `json:"ended_at,omitempty"`
	// Held is the first of HeldReasons that holds it back.
	Held      string     `json:"held,omitempty"`
	HeldUntil *time.Time `json:"held_until,omitempty"`
	EndsBy    string     `json:"ends_by,omitempty"`
	// Window and Target are of its policy.
	Window chat.Tokens `json:"window_tokens"`
	Target chat.Tokens `json:"target_tokens"`
}

// firstMessages is the number of messages among which the first request is looked for, and firstBytes
// the size of its stored form that is read, firstRunes what is shown of it.
const firstMessages, firstBytes, firstRunes = 8, 200_000, 160

// SessionDetails returns the details of sessions by their cursors, without windows and targets; with
// texts also their first requests. What holds back each is computed unless it is given for all.
func (s Reader) SessionDetails(ctx context.Context, sids []int64, texts bool, held string) (map[int64]SessionDetail, error) {
	const query = `
		SELECT s.sid, CASE WHEN s.state = 'quarantined' THEN s.state ELSE coalesce(a.status, CASE WHEN h.reason IS NOT NULL THEN 'held' WHEN s.due THEN 'due' ELSE 'none' END) END,
			coalesce(f.body, ''), s.tokens_since_run, s.next_check_at, coalesce(a.id, 0), coalesce(l.id, 0), coalesce(l.outcome, ''), coalesce(l.error_code, ''), l.ended_at,
			coalesce(h.reason, ''), h.until, coalesce(h.ends_by, ''), 0::bigint, 0::bigint
		FROM compactor.sessions s
		LEFT JOIN LATERAL (SELECT r.id, r.status FROM compactor.runs r WHERE r.sid = s.sid AND r.status IN ('queued', 'running') ORDER BY r.status DESC LIMIT 1) a ON true
		LEFT JOIN LATERAL (SELECT r.id, r.outcome, r.error_code, r.ended_at FROM compactor.runs r
			WHERE r.sid = s.sid AND r.status NOT IN ('queued', 'running') ORDER BY r.id DESC LIMIT 1) l ON true
		LEFT JOIN LATERAL (SELECT b.body FROM compactor.message_log m JOIN compactor.message_body b USING (sid, seq)
			WHERE $2 AND m.sid = s.sid AND m.seq <= $3 AND m.role_code = 'u' AND m.kind = 'm' AND octet_length(b.body) <= $4 ORDER BY m.seq LIMIT 1) f ON true
		LEFT JOIN LATERAL (SELECT x.* FROM compactor.held_back(s.tenant, s.id) x
			WHERE $6 AND a.id IS NULL AND (s.due OR s.state <> 'active' OR s.hold_seq > 0 OR s.loop_seq IS NOT NULL) ORDER BY array_position($5, x.reason) LIMIT 1) h ON true
		WHERE s.sid = ANY($1)`
	reasons := make([]string, len(HeldReasons))
	for i, r := range HeldReasons {
		reasons[i] = r.Reason
	}
	rows, err := queryRows(ctx, s.Store, "details of sessions", pgx.RowToStructByPos[SessionDetail], query, sids, texts, firstMessages, firstBytes, reasons, held == "")
	out := map[int64]SessionDetail{}
	for _, d := range rows {
		var m chat.Message
		if d.FirstRequest != "" && json.Unmarshal([]byte(d.FirstRequest), &m) == nil {
			d.FirstRequest = firstWords(m.Content.String())
		}
		if held != "" {
			if d.Held = held; d.State == "due" || d.State == "none" {
				d.State = "held"
			}
		}
		out[d.SID] = d
	}
	return out, err
}

// firstWords returns the beginning of a text on one line.
func firstWords(text string) string {
	text = strings.Join(strings.Fields(text[:min(len(text), 8*firstRunes)]), " ")
	if r := []rune(strings.ToValidUTF8(text, "")); len(r) > firstRunes {
		return string(r[:firstRunes]) + "…"
	}
	return strings.ToValidUTF8(text, "")
}
