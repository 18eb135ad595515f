CREATE SCHEMA {{.Schema}};

-- The sessions of the table that are in the log, as session id of tenant: all of their rows, but those in notes.
CREATE TABLE {{.Schema}}.sessions (session {{.SessionType}} PRIMARY KEY, tenant text NOT NULL, id text NOT NULL);

-- The messages that each row has become.
CREATE TABLE {{.Schema}}.rows (
    session  {{.SessionType}} NOT NULL,
    key      text NOT NULL,
    seq      bigint,                        -- of the first message
    version  int NOT NULL,                  -- of the newest id
    ids      text[] NOT NULL,
    digests  text[] NOT NULL,               -- of the messages
    elements int[],                         -- by part of the row: the number in ids of the message that has it
    digest   uuid,                          -- of the columns
    fault    text,                          -- why the row is no message
    gone     boolean NOT NULL,              -- deleted from the table
    PRIMARY KEY (session, key)
);
CREATE INDEX ON {{.Schema}}.rows (session, seq);
CREATE INDEX ON {{.Schema}}.rows (session) WHERE ids = '{}' AND NOT gone;

-- Rows that were inserted, updated or deleted since they were last read.
CREATE TABLE {{.Schema}}.notes (id bigint GENERATED ALWAYS AS IDENTITY, session {{.SessionType}}, key text)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX ON {{.Schema}}.notes (session);

-- How far the rows that were there before have been read.
CREATE TABLE {{.Schema}}.backfill (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), last text, done boolean NOT NULL);
INSERT INTO {{.Schema}}.backfill VALUES (true, NULL, false);

CREATE FUNCTION {{.Schema}}.read(p_session {{.SessionType}}, p_keys text[])
RETURNS TABLE (key text, digest uuid, tenant text, role text, content text, tool_calls text, tool_call_id text, created_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
#variable_conflict use_column
BEGIN
    IF p_keys IS NULL THEN
        RETURN QUERY SELECT {{.Read}} FROM {{.Rows}} t WHERE t.{{.Session}} = p_session ORDER BY {{.Order}};
    ELSE
        RETURN QUERY SELECT {{.Read}} FROM {{.Rows}} t WHERE t.{{.Session}} = p_session AND t.{{.Key}} = ANY (p_keys::{{.KeyType}}[]) ORDER BY {{.Order}};
    END IF;
END $f$;

CREATE FUNCTION {{.Schema}}.read_sessions(p_sessions text[])
RETURNS TABLE (session {{.SessionType}}, key text, digest uuid, tenant text, role text, content text, tool_calls text, tool_call_id text, created_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
    SELECT t.{{.Session}}, {{.Read}} FROM {{.Rows}} t WHERE t.{{.Session}} = ANY (p_sessions::{{.SessionType}}[]) ORDER BY {{.Order}}
$f$;

-- The next sessions, with the numbers of their rows.
CREATE FUNCTION {{.Schema}}.sessions_behind(p_last text, p_limit int) RETURNS TABLE (session {{.SessionType}}, rows bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
    IF p_last IS NULL THEN
        RETURN QUERY SELECT t.{{.Session}}, count(*) FROM {{.Table}} t WHERE t.{{.Session}} IS NOT NULL GROUP BY 1 ORDER BY 1 LIMIT p_limit;
    ELSE
        RETURN QUERY SELECT t.{{.Session}}, count(*) FROM {{.Table}} t WHERE t.{{.Session}} > p_last::{{.SessionType}} GROUP BY 1 ORDER BY 1 LIMIT p_limit;
    END IF;
END $f$;

-- Rows that differ from what was read, with those whose messages are not in the log.
CREATE FUNCTION {{.Schema}}.differences() RETURNS TABLE (session {{.SessionType}}, key text, difference text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
    SELECT d.* FROM (
        SELECT coalesce(t.session, r.session) AS session, coalesce(t.key, r.key) AS key,
            CASE WHEN t.session IS NULL AND r.key IS NULL THEN 'has no session' WHEN t.key IS NULL AND r.key IS NULL THEN 'has no key' WHEN r.fault IS NOT NULL THEN r.fault
                WHEN t.key IS NULL THEN 'is deleted, its messages are not' WHEN r.key IS NULL THEN 'is not in the log' WHEN t.digest <> r.digest THEN 'was changed'
                WHEN cardinality(r.ids) <> (SELECT count(*) FROM {{.Compactor}}.message_log m WHERE m.sid = s.sid AND m.id = ANY (r.ids)) THEN 'has a message that the log has not'
                WHEN r.seq < max(r.seq) OVER (PARTITION BY t.session ORDER BY t.n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) THEN 'is before an earlier row in the log' END AS difference
        FROM (SELECT t.{{.Session}} AS session, t.{{.Key}}::text AS key, {{.Digest}} AS digest, row_number() OVER (PARTITION BY t.{{.Session}} ORDER BY {{.Order}}) AS n
            FROM (SELECT * FROM {{.Table}} WHERE ({{.Where}})) t) t
        FULL JOIN (SELECT * FROM {{.Schema}}.rows WHERE NOT gone) r ON r.session = t.session AND r.key = t.key
        LEFT JOIN {{.Schema}}.sessions a ON a.session = r.session
        LEFT JOIN {{.Compactor}}.sessions s ON s.tenant = a.tenant AND s.id = a.id) d
    WHERE d.difference IS NOT NULL AND NOT EXISTS (SELECT FROM {{.Schema}}.notes n WHERE n.session = d.session AND n.key = d.key)
$f$;

{{range .Triggers}}CREATE FUNCTION {{$.Schema}}.note_{{.Event}}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
    INSERT INTO {{$.Schema}}.notes (session, key) {{.Select}};
    RETURN NULL;
EXCEPTION WHEN undefined_column OR undefined_table OR undefined_function THEN   -- the application has changed its table, and goes on writing: see Drain
    INSERT INTO {{$.Schema}}.notes (session, key) VALUES (NULL, NULL);
    RETURN NULL;
END $f$;
{{end}}{{if .View}}
-- A row as it is in the view: with another content, or with that of a summary.
CREATE FUNCTION {{.Schema}}.encode(t {{.Table}}, c jsonb) RETURNS {{.Table}} LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    o     jsonb;
    m     jsonb := c->'messages'->0->'message';
    body  text := {{.Compactor}}.message_text(m);
    fresh boolean := c ? 'fresh';
    sent  text := {{.NativeRole}};   -- the role in the words of the table
BEGIN
{{if .JSON}}    BEGIN
        o := t.{{.Content}}::jsonb;
    EXCEPTION WHEN data_exception THEN   -- such as an escaped NUL
        o := {{.Compactor}}.repair_json(t.{{.Content}}::text)::jsonb;
    END;
{{end}}    RETURN jsonb_populate_record(t, {{.Encode}} || CASE WHEN c ? 'key' THEN jsonb_build_object({{.KeyLiteral}}, c->'key') ELSE '{}' END);
END $f$;

-- The rows of the view of a session: change is null for one that is as in the table.
CREATE FUNCTION {{.Schema}}.history(p_session {{.SessionType}}) RETURNS TABLE (key {{.KeyType}}, change jsonb)
LANGUAGE plpgsql STABLE ROWS 100 SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = 'force_generic_plan' AS $f$
#variable_conflict use_column
BEGIN
    RETURN QUERY WITH v AS MATERIALIZED (
        SELECT v.* FROM {{.Schema}}.sessions a CROSS JOIN LATERAL {{.Compactor}}.attached_view(a.tenant, a.id, false) v WHERE a.session = p_session)
    SELECT r.key::{{.KeyType}}, CASE WHEN count(*) FILTER (WHERE v.kind = 'source') < cardinality(r.ids) THEN jsonb_build_object('ids', r.ids, 'elements', r.elements,
        'messages', jsonb_agg(jsonb_build_object('id', v.origin, 'kind', v.kind, 'message', v.message) ORDER BY v.n)) END
    FROM v JOIN {{.Schema}}.rows r ON r.session = p_session AND r.key = v.row WHERE r.fault IS NULL AND NOT r.gone GROUP BY r.session, r.key
    UNION ALL   -- a summary has the key, the time and the other columns of the first row that it stands for; if that is deleted, its key, and the others of the next row
    SELECT b.key, jsonb_build_object('fresh', true, 'messages', jsonb_build_array(jsonb_build_object('message', v.message)))
        || CASE WHEN b.covered THEN '{}' ELSE coalesce((SELECT jsonb_build_object('key', r.key) FROM {{.Schema}}.rows r WHERE r.session = p_session AND r.seq >= v.at AND r.seq < upper(v.covers) ORDER BY r.seq LIMIT 1), '{}') END
    FROM v CROSS JOIN LATERAL (SELECT b.{{.Key}} AS key, x.covered FROM {{.Schema}}.rows r
        CROSS JOIN LATERAL (SELECT r.seq >= v.at AND r.seq < upper(v.covers) AND NOT EXISTS (SELECT FROM v o WHERE o.row = r.key) AS covered) x
        JOIN {{.Table}} b ON b.{{.Key}} = r.key::{{.KeyType}} AND b.{{.Session}} = r.session {{if .Base}}AND ({{.Base}}) {{end}}
        WHERE r.session = p_session AND r.seq IS NOT NULL ORDER BY x.covered DESC, r.seq >= v.at DESC, r.seq LIMIT 1) b
    WHERE v.kind NOT IN ('source', 'bare') AND v.row IS NULL;
END $f$;

CREATE VIEW {{.Schema}}.{{.ViewName}} AS
SELECT {{range $i, $c := .Columns}}{{if $i}}, {{end}}{{if eq $c $.Session}}a.session AS {{$c}}{{else}}(x.r).{{$c}}{{end}}{{end}}
FROM {{.Schema}}.sessions a CROSS JOIN LATERAL {{.Schema}}.history(a.session) h
JOIN {{.Table}} t ON t.{{.Key}} = h.key AND t.{{.Session}} = a.session
CROSS JOIN LATERAL (SELECT CASE WHEN h.change IS NULL THEN t ELSE {{.Schema}}.encode(t, h.change) END AS r OFFSET 0) x
UNION ALL   -- what is not in the log yet, or cannot be there
SELECT {{range $i, $c := .Columns}}{{if $i}}, {{end}}t.{{$c}}{{end}}
FROM (SELECT n.session, n.key FROM {{.Schema}}.notes n UNION SELECT r.session, r.key FROM {{.Schema}}.rows r WHERE r.ids = '{}' AND NOT r.gone) n
JOIN {{.Rows}} t ON t.{{.Key}} = n.key::{{.KeyType}} AND t.{{.Session}} = n.session
WHERE NOT EXISTS (SELECT FROM {{.Schema}}.rows r WHERE r.session = n.session AND r.key = n.key AND NOT r.gone AND r.ids <> '{}')
UNION ALL   -- sessions that the backfill has not reached
SELECT {{range $i, $c := .Columns}}{{if $i}}, {{end}}t.{{$c}}{{end}}
FROM {{.Rows}} t WHERE NOT (SELECT done FROM {{.Schema}}.backfill)
    AND NOT EXISTS (SELECT FROM {{.Schema}}.sessions a WHERE a.session = t.{{.Session}})
    AND NOT EXISTS (SELECT FROM {{.Schema}}.notes n WHERE n.session = t.{{.Session}} AND n.key = t.{{.Key}}::text);
{{range .Defaults}}ALTER VIEW {{$.Schema}}.{{$.ViewName}} ALTER COLUMN {{.Column}} SET DEFAULT {{.Expression}};
{{end}}
-- Rows that are out of the view between a row of it and the next one, which the row stands for.
CREATE FUNCTION {{.Schema}}.behind(p_session {{.SessionType}}, p_key text) RETURNS SETOF text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
    WITH v AS (SELECT r.key, r.seq FROM {{.Schema}}.history(p_session) h JOIN {{.Schema}}.rows r ON r.session = p_session AND r.key = h.key::text)
    SELECT r.key FROM {{.Schema}}.rows r CROSS JOIN v
    WHERE r.session = p_session AND v.key = p_key AND NOT r.gone AND r.key NOT IN (SELECT o.key FROM v o)
        AND (r.seq > v.seq OR v.seq = (SELECT min(o.seq) FROM v o)) AND r.seq < coalesce((SELECT min(o.seq) FROM v o WHERE o.seq > v.seq), 9223372036854775807)
$f$;

-- Writes through the view are those of the table, with the rights of the writer. A row that is deleted takes those with it that it stands for.
CREATE FUNCTION {{.Schema}}.write() RETURNS trigger LANGUAGE plpgsql AS $f$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM {{.Table}} t WHERE t.{{.Session}} = OLD.{{.Session}}
            AND (t.{{.Key}} = OLD.{{.Key}} OR t.{{.Key}} IN (SELECT b::{{.KeyType}} FROM {{.Schema}}.behind(OLD.{{.Session}}, OLD.{{.Key}}::text) b));
        RETURN OLD;
    END IF;
    INSERT INTO {{.Table}} ({{range $i, $c := .Written}}{{if $i}}, {{end}}{{$c}}{{end}}) OVERRIDING SYSTEM VALUE
    VALUES ({{range $i, $c := .Written}}{{if $i}}, {{end}}NEW.{{$c}}{{end}})
    RETURNING {{range $i, $c := .Columns}}{{if $i}}, {{end}}{{$c}}{{end}} INTO {{range $i, $c := .Columns}}{{if $i}}, {{end}}NEW.{{$c}}{{end}};
    RETURN NEW;
END $f$;
CREATE TRIGGER write INSTEAD OF INSERT OR DELETE ON {{.Schema}}.{{.ViewName}} FOR EACH ROW EXECUTE FUNCTION {{.Schema}}.write();
{{end}}
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {{.Schema}} FROM PUBLIC;
DO $f$
DECLARE
    r text;
BEGIN
    FOR r IN SELECT quote_ident(rolname) FROM pg_roles WHERE rolname = '{{.Worker}}' LOOP
        EXECUTE format('GRANT USAGE ON SCHEMA {{.Schema}} TO %1$s; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {{.Schema}} TO %1$s;
            GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {{.Schema}} TO %1$s', r);
    END LOOP;
END $f$;
{{if .View}}
-- Who may read the table may read the view, and who may write it may write the view. CREATE is for programs that say
-- CREATE TABLE IF NOT EXISTS of it each time.
CREATE FUNCTION {{.Schema}}.lacking() RETURNS TABLE (role text, rights text) LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $f$
    SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE (SELECT quote_ident(g.rolname) FROM pg_roles g WHERE g.oid = a.grantee) END,
        string_agg(DISTINCT a.privilege_type, ', ') FILTER (WHERE a.privilege_type IN ('SELECT', 'INSERT', 'DELETE'))
    FROM pg_class c CROSS JOIN LATERAL aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
    WHERE c.oid = {{.TableLiteral}}::regclass AND a.privilege_type IN ('SELECT', 'INSERT', 'DELETE')
    GROUP BY a.grantee HAVING bool_or(a.privilege_type = 'SELECT') AND count(DISTINCT a.privilege_type) > (SELECT count(DISTINCT o.privilege_type)
        FROM pg_class w CROSS JOIN LATERAL aclexplode(coalesce(w.relacl, acldefault('r', w.relowner))) o
        WHERE w.oid = {{.ViewLiteral}}::regclass AND o.grantee = a.grantee AND o.privilege_type IN ('SELECT', 'INSERT', 'DELETE'))
$f$;
CREATE FUNCTION {{.Schema}}.grant_rights() RETURNS void LANGUAGE plpgsql AS $f$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT * FROM {{.Schema}}.lacking() LOOP
        EXECUTE format('GRANT USAGE, CREATE ON SCHEMA {{.Schema}} TO %1$s; GRANT %2$s ON {{.Schema}}.{{.ViewName}} TO %1$s;
            GRANT EXECUTE ON FUNCTION {{.Schema}}.history, {{.Schema}}.encode, {{.Schema}}.behind TO %1$s', r.role, r.rights);
    END LOOP;
END $f$;
REVOKE ALL ON FUNCTION {{.Schema}}.grant_rights FROM PUBLIC;
SELECT {{.Schema}}.grant_rights();
{{end}}
INSERT INTO {{.Compactor}}.attachments (name, in_schema, spec) VALUES ({{.NameLiteral}}, {{.SchemaLiteral}}, {{.SpecLiteral}});

-- Last, as these wait for transactions that write to the table, and others wait behind them.
{{range .Triggers}}CREATE TRIGGER {{$.TriggerName}}_{{.Event}} AFTER {{.When}} EXECUTE FUNCTION {{$.Schema}}.note_{{.Event}}();
{{end}}
