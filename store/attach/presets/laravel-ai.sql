jsonb_build_object('content', CASE WHEN fresh OR m->>'role' = 'user' THEN body ELSE t.content END,
    'steps', {{.Compactor}}.encode_steps(t.steps::jsonb, c)::text) || CASE WHEN fresh THEN jsonb_build_object('role', 'user') ELSE '{}' END
    || CASE WHEN fresh AND to_jsonb(t) ? 'attachments' THEN '{"attachments": "[]"}'::jsonb ELSE '{}' END
