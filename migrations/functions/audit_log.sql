-- What operators did, the newest first: who, when, to what. p_before is the place of the last row of the page before. A
-- connection that is bound to a tenant, or a call with one, sees what concerns that tenant alone.
--
-- Most of it is read from where it is kept anyway; operator_actions has the rest.
CREATE OR REPLACE FUNCTION @schema@.audit_log(p_tenant text DEFAULT '', p_before text DEFAULT NULL, p_limit int DEFAULT 100)
RETURNS TABLE (place text, done_at timestamptz, done_by text, action text, tenant text, session text, object text, note text)
LANGUAGE plpgsql STABLE SET plan_cache_mode = 'force_custom_plan' SET jit = off AS $$
DECLARE
    v_tenant text := @schema@.scope_of(p_tenant);
    v_at     timestamptz := coalesce(to_timestamp(0) + split_part(p_before, '.', 1)::bigint * interval '1 microsecond', 'infinity');
    v_id     bigint := coalesce(split_part(p_before, '.', 2)::bigint, 0);
    v_action text := coalesce(split_part(p_before, '.', 3) || '.' || split_part(p_before, '.', 4), '');
BEGIN
    RETURN QUERY
    WITH entries(id, at, who, what, ten, sess, obj, why) AS (
        (SELECT r.id, r.queued_at, r.requested_by, 'run.' || r.kind, s.tenant, s.id, r.id::text,
            concat_ws(', ', CASE WHEN r.options->'dry_run' = 'true' THEN 'dry run' END, 'undoes ' || r.undoes)
        FROM @schema@.runs r JOIN @schema@.sessions s ON s.sid = r.sid
        WHERE r.trigger = 'operator' AND r.requested_by <> '' AND r.origin IS NULL AND v_tenant IN ('', s.tenant) AND r.queued_at <= v_at
            AND (r.queued_at < v_at OR (r.id, ('run.' || r.kind) COLLATE "C") < (v_id, v_action))
        ORDER BY r.queued_at DESC, r.id DESC LIMIT p_limit)
        UNION ALL SELECT coalesce(t.sweep, 0), t.fired_at, t.fired_by, CASE t.source WHEN 'operator' THEN 'schedule.run' ELSE 'schedule.backfill' END, NULL, NULL, t.entry,
            'sweep ' || t.sweep FROM @schema@.cron_ticks t WHERE t.source <> 'schedule'
        UNION ALL SELECT w.id, w.started_at, w.requested_by, 'sweep.start', w.tenant, NULL, w.id::text, w.note FROM @schema@.sweeps w
        UNION ALL SELECT b.id, b.requested_at, b.requested_by, 'bulk.' || b.kind, b.tenant, NULL, b.id::text, b.note FROM @schema@.bulk_operations b
        UNION ALL SELECT c.id, c.changed_at, c.changed_by, CASE WHEN c.version IS NULL THEN 'policy.disable' ELSE 'policy.apply' END, c.tenant, NULL,
            concat_ws('@', c.name, c.version::text), coalesce(v.note, '')
            FROM @schema@.policy_changes c LEFT JOIN @schema@.policy_versions v ON (v.name, v.version) = (c.name, c.version)
        UNION ALL SELECT e.id, e.requested_at, e.requested_by, 'erasure.request', e.tenant, e.session, e.id::text, e.note FROM @schema@.erasures e
        UNION ALL SELECT e.id, e.confirmed_at, e.confirmed_by, 'erasure.confirm', e.tenant, NULL, e.id::text, '' FROM @schema@.erasures e
        UNION ALL SELECT k.id, k.created_at, k.created_by, 'key.create', k.tenant, NULL, k.name, concat_ws(', ', k.scope, nullif(k.note, '')) FROM @schema@.api_keys k
        UNION ALL SELECT k.id, k.revoked_at, k.revoked_by, 'key.revoke', k.tenant, NULL, k.name, '' FROM @schema@.api_keys k
        UNION ALL (SELECT o.id, o.done_at, o.done_by, o.action, o.tenant, o.session, o.object, o.note FROM @schema@.operator_actions o
        WHERE (v_tenant = '' OR o.tenant = v_tenant) AND o.done_by <> '' AND o.done_at <= v_at
            AND (o.done_at < v_at OR (o.id, o.action COLLATE "C") < (v_id, v_action))
        ORDER BY o.done_at DESC, o.id DESC LIMIT p_limit))
    SELECT format('%s.%s.%s', (extract(epoch FROM e.at) * 1000000)::bigint, e.id, e.what), e.at, e.who, e.what, coalesce(e.ten, ''), e.sess, e.obj, e.why
    FROM entries e
    WHERE e.who <> '' AND v_tenant IN ('', e.ten) AND (e.at < v_at OR e.at = v_at AND (e.id, e.what COLLATE "C") < (v_id, v_action))
    ORDER BY e.at DESC, e.id DESC, e.what COLLATE "C" DESC LIMIT p_limit;
END $$;

-- Keeps that a session was changed, in the transaction of the change, by the name in the setting compactor.by.
-- The API sets it to its key and the command line to its user. Without it, the connection is an application's, and nothing is kept.
CREATE OR REPLACE FUNCTION @schema@.note_change(p_action text, s @schema@.sessions, p_object text DEFAULT '') RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_by text := coalesce(current_setting('compactor.by', true), '');
BEGIN
    IF v_by <> '' THEN
        INSERT INTO @schema@.operator_actions (done_by, action, tenant, session, object) VALUES (v_by, p_action, s.tenant, s.id, coalesce(p_object, ''));
    END IF;
END $$;

-- Keeps what else an operator did, where no table says so, in the same way. A bound connection keeps it of its tenant.
CREATE OR REPLACE FUNCTION @schema@.note_action(p_by text, p_action text, p_tenant text, p_object text, p_note text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO @schema@.operator_actions (done_by, action, tenant, object, note)
    VALUES (coalesce(p_by, ''), p_action, @schema@.scope_of(p_tenant), p_object, coalesce(p_note, ''));
END $$;
