jsonb_build_object({{.ContentLiteral}}, (SELECT CASE WHEN o ? 'data' THEN jsonb_build_object('type', x.kind, 'data', x.base || x.said) ELSE x.base || x.said END
    FROM (SELECT k.kind, CASE WHEN fresh OR o->>'type' <> k.kind THEN '{"additional_kwargs": {}, "response_metadata": {}}' WHEN o ? 'data' THEN o->'data' ELSE o END AS base,
            jsonb_build_object('type', k.kind, 'content', coalesce(nullif(m->'content', 'null'), '""')) || CASE WHEN m ? 'tool_calls' THEN jsonb_build_object('tool_calls',
                (SELECT jsonb_agg(jsonb_build_object('type', 'tool_call', 'id', y->'id', 'name', y->'function'->'name', 'args', (y->'function'->>'arguments')::jsonb)) FROM jsonb_array_elements(m->'tool_calls') y)) ELSE '{}' END AS said
        FROM (SELECT CASE m->>'role' WHEN 'user' THEN 'human' WHEN 'assistant' THEN 'ai' ELSE m->>'role' END AS kind) k) x))
