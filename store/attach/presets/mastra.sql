(SELECT jsonb_build_object({{.ContentLiteral}}, jsonb_build_object('format', 2, 'parts', p.list, 'content', coalesce((SELECT string_agg(e->>'text', E'\n') FROM jsonb_array_elements(p.list) e WHERE e->>'type' = 'text'), ''))::text)
    || CASE WHEN fresh THEN jsonb_build_object({{.RoleLiteral}}, m->>'role') ELSE '{}' END
    FROM (SELECT {{.Compactor}}.encode_parts(o->'parts', c, 'toolInvocation', 'result', 'args') AS list) p)
