-- The compactions in force that a filter matches, from one run down to another, the newest first: an object with any of
-- since and until (when they ended), trigger, strategy (one of the steps), model (of the session, a prefix), writer (the
-- model that wrote a summary, a prefix), policy and version.
CREATE OR REPLACE FUNCTION @schema@.matching_runs(p_tenant text, p_filter jsonb, p_to bigint, p_from bigint) RETURNS SETOF bigint
LANGUAGE sql STABLE AS $$
    SELECT r.id FROM @schema@.runs r JOIN @schema@.sessions s ON s.sid = r.sid
    WHERE r.id BETWEEN p_from AND p_to AND r.status = 'applied' AND r.kind = 'compact' AND r.in_force
        AND (p_tenant = '' OR s.tenant = p_tenant)
        AND (p_filter->>'since' IS NULL OR r.ended_at >= (p_filter->>'since')::timestamptz)
        AND (p_filter->>'until' IS NULL OR r.ended_at < (p_filter->>'until')::timestamptz)
        AND (p_filter->>'trigger' IS NULL OR r.trigger = p_filter->>'trigger')
        AND (p_filter->>'policy' IS NULL OR coalesce(r.policy, 'default') = p_filter->>'policy')
        AND (p_filter->>'version' IS NULL OR r.policy_version = (p_filter->>'version')::int)
        AND (p_filter->>'strategy' IS NULL OR EXISTS (SELECT FROM jsonb_array_elements(r.steps) x WHERE x->>'strategy' = p_filter->>'strategy'))
        AND (p_filter->>'model' IS NULL OR @schema@.model_has_prefix(s.model, lower(p_filter->>'model')))
        AND (p_filter->>'writer' IS NULL OR EXISTS (SELECT FROM @schema@.summary_calls c
            WHERE c.run = r.id AND c.state IN ('answered', 'forgotten') AND @schema@.model_has_prefix(c.model, lower(p_filter->>'writer'))))
    ORDER BY r.id DESC
$$;

-- The tenant of a bulk undo, empty for all, if the connection may do one.
CREATE OR REPLACE FUNCTION @schema@.bulk_tenant(p_tenant text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM @schema@.refuse_bound();
    RETURN p_tenant;
END $$;

-- What a bulk undo with this filter would be about: the runs and sessions that match, the tokens that come back into
-- views, and the runs on top of those that match, which are in their way unless they are undone with them.
CREATE OR REPLACE FUNCTION @schema@.preview_bulk_undo(p_tenant text, p_filter jsonb, OUT runs bigint, OUT sessions bigint, OUT tokens bigint,
    OUT later bigint, OUT first_run bigint, OUT last_run bigint) LANGUAGE sql STABLE AS $$
    WITH m AS MATERIALIZED (
        SELECT r.id, r.sid, r.revision, r.tokens_before - r.tokens_after AS freed
        FROM @schema@.matching_runs(@schema@.bulk_tenant(p_tenant), p_filter, 9223372036854775807, 0) x(id) JOIN @schema@.runs r ON r.id = x.id)
    SELECT count(*), count(DISTINCT sid), coalesce(sum(freed), 0),
        (SELECT count(*) FROM (SELECT sid, min(revision) AS revision FROM m GROUP BY sid) o JOIN @schema@.runs l ON l.sid = o.sid
            WHERE l.in_force AND l.revision > o.revision AND l.kind <> 'undo' AND l.id NOT IN (SELECT id FROM m)),
        coalesce(min(id), 0), coalesce(max(id), 0)
    FROM m
$$;

-- Records a bulk undo of the runs that match now; bulk_undo_next does it.
CREATE OR REPLACE FUNCTION @schema@.start_bulk_undo(p_tenant text, p_filter jsonb, p_cascade boolean, p_note text, p_by text) RETURNS bigint
LANGUAGE sql AS $$
    INSERT INTO @schema@.bulk_undos (tenant, filter, cascade, note, requested_by, first_run, next_run, matched)
    SELECT @schema@.bulk_tenant(p_tenant), p_filter, p_cascade, p_note, p_by, first_run, last_run, runs
    FROM @schema@.preview_bulk_undo(p_tenant, p_filter) RETURNING id
$$;

-- Undoes the next run of a bulk undo, each in a transaction of its own, and returns it with what came of it: undone, or why
-- it stays in force (later_runs, in_use, locked, not_applicable). Without a run, code is the status of the whole. Callers at the same time take
-- turns.
CREATE OR REPLACE FUNCTION @schema@.bulk_undo_next(p_id bigint, OUT run bigint, OUT code text) LANGUAGE plpgsql
SET lock_timeout = '2s' AS $$
DECLARE
    b @schema@.bulk_undos;
    s @schema@.sessions;
BEGIN
    PERFORM @schema@.refuse_bound();
    SELECT * INTO b FROM @schema@.bulk_undos WHERE id = p_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no bulk undo %', p_id USING ERRCODE = 'no_data_found';
    END IF;
    code := b.status;
    IF b.status <> 'open' THEN
        RETURN;
    END IF;
    SELECT x.id INTO run FROM @schema@.matching_runs(b.tenant, b.filter, b.next_run, b.first_run) x(id) LIMIT 1;
    IF NOT FOUND THEN
        UPDATE @schema@.bulk_undos SET status = 'done', ended_at = now() WHERE id = p_id;
        code := 'done';
        RETURN;
    END IF;
    SELECT n.* INTO s FROM @schema@.runs r JOIN @schema@.sessions n ON n.sid = r.sid WHERE r.id = run;
    BEGIN
        PERFORM @schema@.undo_run(s.tenant, s.id, run, b.cascade, b.requested_by || ' (bulk undo ' || b.id || ')');
        code := 'undone';
    EXCEPTION
        WHEN lock_not_available OR deadlock_detected THEN code := 'locked';
        WHEN object_in_use THEN code := 'in_use';
        WHEN object_not_in_prerequisite_state THEN code := 'not_applicable';   -- the last, since its name stands for all of its class
    END;
    IF code = 'in_use' AND NOT b.cascade AND EXISTS (SELECT FROM @schema@.runs l JOIN @schema@.runs r ON r.id = run
            WHERE l.sid = r.sid AND l.in_force AND l.kind <> 'undo' AND l.revision > r.revision) THEN
        code := 'later_runs';
    END IF;
    IF code <> 'undone' THEN
        INSERT INTO @schema@.bulk_undo_refusals (bulk_undo, run, sid, code) VALUES (p_id, bulk_undo_next.run, s.sid, bulk_undo_next.code);
    END IF;
    UPDATE @schema@.bulk_undos SET next_run = bulk_undo_next.run - 1, undone = undone + (bulk_undo_next.code = 'undone')::int,
        refused = refused + (bulk_undo_next.code <> 'undone')::int WHERE id = p_id;
END $$;

-- Ends a bulk undo before its time. What it undid stays so.
CREATE OR REPLACE FUNCTION @schema@.cancel_bulk_undo(p_id bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM @schema@.refuse_bound();
    UPDATE @schema@.bulk_undos SET status = 'cancelled', ended_at = now() WHERE id = p_id AND status = 'open';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'bulk undo % is not open', p_id USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
END $$;
