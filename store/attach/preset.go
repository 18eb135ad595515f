package attach

import (
	"embed"
	"path"
)

// encodings has for each preset an SQL expression: the columns of a row with another message (see encode in
// attach.sql).
//
//go:embed presets/*.sql
var encodings embed.FS

// encode returns the expression of a preset.
func (p Preset) encode() string {
	raw, _ := encodings.ReadFile(path.Join("presets", p.Name+".sql")) // each preset has one
	return string(raw)
}

// Preset describes the tables that a program makes: which columns its rows have, and how they are written again.
type Preset struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
	// Spec has the columns, before which those of the caller count.
	Spec Spec `json:"columns"`
	// Format is that of package formats in which the content column holds a message; empty: its text, with the role
	// beside.
	Format string `json:"format,omitempty"`
	// Window is the setting of the program that limits how many rows it reads: it must be raised, as a summary is the
	// first of them.
	Window string `json:"window,omitempty"`
	Rows   int    `json:"rows,omitempty"` // its default, 0 for no limit
	// Screen says that the program shows people the rows of the same query that makes the prompt.
	Screen bool `json:"screen,omitempty"`

	sample string // an SQL condition on the text of a row's content: it is one of these
	needs  string // a table that is there beside
	// reads has SQL expressions for parts of a message that are not in one column of the row t; §. is the schema of
	// the table.
	reads struct{ content, toolCalls, toolCallID string }
	// watch has the columns of these, besides those of Spec.
	watch []string
	// beside is a second table, and an SQL query of its changed rows: the sessions and keys of rows to read again.
	beside struct{ table, rows string }
	// base is an SQL condition on a row b that a summary may take the place of.
	base string
}

// Presets returns the presets, the first to match a table before later ones.
func Presets() []Preset {
	return []Preset{
		{
			Name: "langchain", Doc: "LangChain's Postgres histories in JavaScript and Python, and n8n's Postgres memory",
			Spec:   Spec{Session: "session_id", Key: "id", Order: []string{"id"}, Content: "message"},
			Format: "langchain", sample: `c::jsonb ? 'type' AND (c::jsonb ? 'content' OR c::jsonb ? 'data')`,
			Window: "n8n: Context Window Length of the memory node, half of the rows; LangChain: a trimmer or k of its memory", Rows: 10,
		},
		{
			Name: "agents-sdk", Doc: "SQLAlchemySession of the OpenAI Agents SDK for Python",
			Spec:   Spec{Session: "session_id", Key: "id", Order: []string{"created_at", "id"}, Content: "message_data"},
			Format: "responses", sample: `c::jsonb ?| '{role,type}'`,
			Window: "session_settings.limit",
		},
		{
			Name: "vercel", Doc: "the chatbot template of Vercel, and other tables with the parts of the AI SDK",
			Spec: Spec{
				Session: "chatId", Key: "id", Order: []string{"createdAt", "id"}, Role: "role", Content: "parts",
				Time: "createdAt", Timezone: "UTC",
			},
			Format: "vercel", sample: `jsonb_typeof(c::jsonb) = 'array' AND c::jsonb->0 ? 'type'`, Screen: true,
		},
		{
			Name: "mastra", Doc: "mastra_messages of @mastra/pg",
			Spec: Spec{
				Session: "thread_id", Key: "id", Order: []string{"createdAt", "id"}, Role: "role", Content: "content", Time: "createdAtZ",
			},
			Format: "mastra", sample: `(c::jsonb->>'format') = '2' AND c::jsonb ? 'parts'`,
			Window: "lastMessages of the memory", Rows: 10,
		},
		{
			Name: "laravel-ai", Doc: "agent_conversation_messages of Laravel's AI SDK",
			Spec: Spec{
				Session: "conversation_id", Key: "id", Order: []string{"id"}, Role: "role", Content: "content",
				Time: "created_at", Timezone: "UTC",
			},
			Format: "laravel", sample: `true`, watch: []string{"steps"},
			reads: struct{ content, toolCalls, toolCallID string }{
				content: `json_build_object('role', t.role, 'content', t.content, 'steps', t.steps)`,
			},
			Window: "maxConversationMessages of the agent", Rows: 100,
		},
		{
			Name: "ruby-llm", Doc: "messages and tool_calls of RubyLLM in Rails",
			Spec: Spec{
				Session: "chat_id", Key: "id", Order: []string{"id"}, Role: "role", Content: "content", Time: "created_at", Timezone: "UTC",
			},
			sample: `true`, needs: "tool_calls", watch: []string{"tool_call_id"}, Screen: true,
			reads: struct{ content, toolCalls, toolCallID string }{
				toolCalls: `(SELECT json_agg(json_build_object('id', c.tool_call_id, 'type', 'function',
					'function', json_build_object('name', c.name, 'arguments', c.arguments::text)) ORDER BY c.id)
					FROM §.tool_calls c WHERE c.message_id = t.id)`,
				toolCallID: `(SELECT c.tool_call_id FROM §.tool_calls c WHERE c.id = t.tool_call_id)`,
			},
			beside: struct{ table, rows string }{
				"tool_calls", `SELECT t.chat_id, t.id::text FROM changed c JOIN §.messages t ON t.id = c.message_id`,
			},
			base: `b.tool_call_id IS NULL AND NOT EXISTS (SELECT FROM §.tool_calls c WHERE c.message_id = b.id)`,
		},
		{
			Name: "generic", Doc: "any table with a row for a message: a session, a role and a text; columns with other names by flags",
		},
	}
}
