jsonb_build_object({{.RoleLiteral}}, sent, {{.ContentLiteral}}, {{if .JSON}}m->'content'{{else}}body{{end}})
    || {{if .ToolCalls}}jsonb_build_object({{.ToolCallsLiteral}}, m->'tool_calls'){{else}}'{}'::jsonb{{end}} || {{if .ToolCallID}}jsonb_build_object({{.ToolCallIDLiteral}}, m->'tool_call_id'){{else}}'{}'::jsonb{{end}}
