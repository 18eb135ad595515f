package store

import (
	"cmp"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// roleCodes are the values of message_log.role_code; all other roles have the code 'o'.
var roleCodes = map[chat.Role]byte{
	chat.RoleSystem: 's', chat.RoleUser: 'u', chat.RoleAssistant: 'a', chat.RoleTool: 't', chat.RoleDeveloper: 'd',
}

func roleCode(r chat.Role) byte { return cmp.Or(roleCodes[r], 'o') }

// roleOf returns the role of a code. Roles without a code share one name: planning
// groups them alike.
func roleOf(code byte) chat.Role {
	switch code {
	case 's':
		return chat.RoleSystem
	case 'u':
		return chat.RoleUser
	case 'a':
		return chat.RoleAssistant
	case 't':
		return chat.RoleTool
	case 'd':
		return chat.RoleDeveloper
	}
	return "other"
}

// kindCode returns the value of message_log.kind.
func kindCode(k chat.Kind) byte {
	switch k {
	case chat.KindSummary:
		return 's'
	case chat.KindReplacement:
		return 'i'
	case chat.KindSource:
	}
	return 'm'
}

func kindOf(code byte) chat.Kind {
	switch code {
	case 's':
		return chat.KindSummary
	case 'i':
		return chat.KindReplacement
	}
	return chat.KindSource
}

// collectMetas reads rows of (seq, position, token_count, calls, flags,
// role_code, kind) and returns them in view order, without rows beyond last.
func collectMetas(rows pgx.Rows, capacity int, last chat.Seq) ([]chat.Meta, error) {
	metas := make([]chat.Meta, 0, capacity)
	var seq, position int64
	var tokens int32
	var calls, flags int16
	var role, kind byte
	sorted := true
	_, err := pgx.ForEachRow(rows, []any{&seq, &position, &tokens, &calls, &flags, &role, &kind}, func() error {
		if chat.Seq(seq) > last {
			return nil
		}
		m := chat.Meta{
			Seq: chat.Seq(seq), Position: chat.Seq(position), Kind: kindOf(kind), Role: roleOf(role),
			Flags: chat.Flags(flags), Calls: int(calls), Tokens: chat.Tokens(tokens),
		}
		if kind == 'm' && position != seq {
			// Replace moved it after the message whose position it has. To planning, a moved
			// message is a summary, which sorts before the message at its position.
			m.Kind, m.Position = chat.KindSummary, m.Position+1
			m.Flags |= chat.Moved
		}
		sorted = sorted && (len(metas) == 0 || chat.Less(metas[len(metas)-1], m))
		metas = append(metas, m)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !sorted {
		slices.SortFunc(metas, chat.Compare)
	}
	return metas, nil
}
