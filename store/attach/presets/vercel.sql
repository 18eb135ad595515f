jsonb_build_object({{.ContentLiteral}}, {{.Compactor}}.encode_parts(o, c, NULL, 'output', 'input'))
    || CASE WHEN fresh THEN jsonb_build_object({{.RoleLiteral}}, m->>'role') || CASE WHEN to_jsonb(t) ? 'attachments' THEN '{"attachments": []}'::jsonb ELSE '{}' END ELSE '{}' END
