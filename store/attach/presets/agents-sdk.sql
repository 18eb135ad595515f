jsonb_build_object({{.ContentLiteral}}, (CASE WHEN NOT fresh AND o->>'type' = 'function_call_output' AND m->>'role' = 'tool' THEN o || jsonb_build_object('output', body)
    WHEN NOT fresh AND o->>'type' = 'function_call' AND m ? 'tool_calls' THEN o || jsonb_build_object('arguments', m->'tool_calls'->0->'function'->>'arguments')
    ELSE jsonb_build_object('role', CASE m->>'role' WHEN 'tool' THEN 'assistant' ELSE m->>'role' END, 'content', body) END)::text)
