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
			Name: "generic", Doc: "any table with a row for a message: a session, a role and a text; columns with other names by flags",
		},
	}
}
