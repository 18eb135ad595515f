-- What a body is, in 16 bytes.
CREATE OR REPLACE FUNCTION @schema@.body_digest(p_body text) RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT substr(sha256(convert_to(p_body, 'UTF8')), 1, 16)
$$;

-- What a body says, however it is written (see same_message): 16 bytes, and those of the same without its reasoning, if it has any.
CREATE OR REPLACE FUNCTION @schema@.said_digest(p_body text) RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT string_agg(@schema@.body_digest((jsonb '{"tool_calls": []}' || jsonb_strip_nulls(b::jsonb))::text), '' ORDER BY n)
    FROM (SELECT p_body AS b, 1 AS n UNION ALL SELECT w, 2 FROM @schema@.without_reasoning(p_body) w WHERE w::jsonb <> p_body::jsonb) x
$$;

-- Everything about a message that must never change, in 16 bytes: the columns that append does not derive from others.
-- Whether a result is paired (8, see chat.Flags) is derived for sources. Without a query, so that it is expanded where it is
-- called.
CREATE OR REPLACE FUNCTION @schema@.message_digest(m @schema@.message_log) RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT substr(sha256(convert_to(ROW(m.sid, m.seq, m.position, m.kind, m.id, m.role, m.name, m.call_ids, m.tool_call_id, m.source_id,
        m.token_count, m.counter, CASE m.kind WHEN 'm' THEN m.flags & ~8 ELSE m.flags END, m.summary_of, m.run,
        (date_part('epoch', m.created_at) * 1000000)::bigint)::text
        || m.body_digest::text, 'UTF8')), 1, 16)
$$;

-- Gives a new message its digest, whatever writes it. An update, which refuse_change lets fix_session try, may change
-- what the digest leaves out, and bring the rest back to what the digest says.
CREATE OR REPLACE FUNCTION @schema@.keep_digest() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' OR @schema@.is_erased(OLD.sid, OLD.seq) AND ROW(NEW.sid, NEW.seq, NEW.position, NEW.kind, NEW.id, NEW.role, NEW.call_ids,
            NEW.tool_call_id, NEW.summary_of, NEW.run, NEW.created_at) IS NOT DISTINCT FROM ROW(OLD.sid, OLD.seq, OLD.position, OLD.kind, OLD.id,
            OLD.role, OLD.call_ids, OLD.tool_call_id, OLD.summary_of, OLD.run, OLD.created_at) THEN
        NEW.digest := @schema@.message_digest(NEW);
        RETURN NEW;
    END IF;
    IF NEW.digest IS DISTINCT FROM OLD.digest
        OR coalesce(@schema@.message_digest(NEW) NOT IN (@schema@.message_digest(OLD), OLD.digest), true) THEN
        RAISE EXCEPTION 'message % of session % is not to be changed', OLD.seq, OLD.sid USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;

-- An update of a body, which refuse_change lets erase_seqs try, is that of an erased message.
CREATE OR REPLACE FUNCTION @schema@.keep_body() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT @schema@.is_erased(OLD.sid, OLD.seq) OR (NEW.sid, NEW.seq) <> (OLD.sid, OLD.seq) THEN
        RAISE EXCEPTION 'the words of message % of session % are not to be changed', OLD.seq, OLD.sid USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;

-- The database itself refuses to change what was said.
CREATE OR REPLACE FUNCTION @schema@.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME IN ('message_log', 'message_body') AND TG_OP = 'UPDATE' AND current_setting('compactor.fix', true) = 'on' THEN
        RETURN NULL;   -- keep_digest and keep_body look at each row
    END IF;
    RAISE EXCEPTION '%.% is append-only: % refused', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation',
              HINT = CASE TG_TABLE_NAME WHEN 'runs' THEN 'A run that has changed a view explains it.'
                  WHEN 'forked_from' THEN 'An erasure follows the words by it.' ELSE 'Compaction writes ranges of the session, never message rows.' END;
END $$;
