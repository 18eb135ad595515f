jsonb_build_object('role', sent, 'content', body) || CASE WHEN NOT fresh THEN '{}'
    ELSE (SELECT coalesce(jsonb_object_agg(k, NULL), '{}') FROM jsonb_object_keys(to_jsonb(t)) k WHERE k = ANY ('{tool_call_id,content_raw,thinking_text,thinking_signature}')) END
