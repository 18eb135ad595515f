-- The runs that a filter matches, the newest first: of an undo the compactions in force with ids from p_from to p_to, of a
-- recompaction the last compaction that ended of each session with a sid in that range, dry runs apart. The filter is an
-- object with any of since and until (when they ended), trigger, outcome, strategy (one of the steps), model (of the session,
-- a prefix), writer (the model that wrote a summary, a prefix), policy and version. Callers give the kind as a literal, which
-- leaves one of the two conditions to the planner.
CREATE OR REPLACE FUNCTION @schema@.matching_runs(p_kind text, p_tenant text, p_filter jsonb, p_to bigint, p_from bigint) RETURNS SETOF bigint
LANGUAGE sql STABLE AS $$
    SELECT r.id FROM @schema@.runs r JOIN @schema@.sessions s ON s.sid = r.sid
    WHERE CASE p_kind WHEN 'undo' THEN r.id BETWEEN p_from AND p_to AND r.status = 'applied' AND r.kind = 'compact' AND r.in_force
        ELSE r.sid BETWEEN p_from AND p_to AND r.status IN ('applied', 'skipped', 'failed') AND r.kind IN ('compact', 'repair') AND r.options->'dry_run' IS DISTINCT FROM 'true'
            AND NOT EXISTS (SELECT FROM @schema@.runs l WHERE l.sid = r.sid AND l.id > r.id AND l.status IN ('applied', 'skipped', 'failed')
                AND l.kind IN ('compact', 'repair') AND l.options->'dry_run' IS DISTINCT FROM 'true') END
        AND (p_tenant = '' OR s.tenant = p_tenant)
        AND (p_filter->>'since' IS NULL OR r.ended_at >= (p_filter->>'since')::timestamptz)
        AND (p_filter->>'until' IS NULL OR r.ended_at < (p_filter->>'until')::timestamptz)
        AND (p_filter->>'trigger' IS NULL OR r.trigger = p_filter->>'trigger')
        AND (p_filter->>'outcome' IS NULL OR r.outcome = p_filter->>'outcome')
        AND (p_filter->>'policy' IS NULL OR coalesce(r.policy, 'default') = p_filter->>'policy')
        AND (p_filter->>'version' IS NULL OR r.policy_version = (p_filter->>'version')::int)
        AND (p_filter->>'strategy' IS NULL OR EXISTS (SELECT FROM jsonb_array_elements(r.steps) x WHERE x->>'strategy' = p_filter->>'strategy'))
        AND (p_filter->>'model' IS NULL OR @schema@.model_has_prefix(s.model, lower(p_filter->>'model')))
        AND (p_filter->>'writer' IS NULL OR EXISTS (SELECT FROM @schema@.summary_calls c
            WHERE c.run = coalesce(r.origin, r.id) AND c.state IN ('answered', 'forgotten') AND @schema@.model_has_prefix(c.model, lower(p_filter->>'writer'))))
    ORDER BY CASE p_kind WHEN 'undo' THEN r.id ELSE r.sid END DESC
$$;

-- The tenant of a bulk operation, empty for all, if the connection may do one.
CREATE OR REPLACE FUNCTION @schema@.bulk_tenant(p_tenant text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM @schema@.refuse_bound();
    RETURN p_tenant;
END $$;

-- What a bulk undo with this filter would be about: the runs and sessions that match, the tokens that come back into
-- views, and the runs on top of those that match, which are in their way unless they are undone with them.
CREATE OR REPLACE FUNCTION @schema@.preview_bulk_undo(p_tenant text, p_filter jsonb, OUT runs bigint, OUT sessions bigint, OUT tokens bigint,
    OUT later bigint) LANGUAGE sql STABLE AS $$
    WITH m AS MATERIALIZED (
        SELECT r.id, r.sid, r.revision, r.tokens_before - r.tokens_after AS freed
        FROM @schema@.matching_runs('undo', @schema@.bulk_tenant(p_tenant), p_filter, 9223372036854775807, 0) x(id) JOIN @schema@.runs r ON r.id = x.id)
    SELECT count(*), count(DISTINCT sid), coalesce(sum(freed), 0),
        (SELECT count(*) FROM (SELECT sid, min(revision) AS revision FROM m GROUP BY sid) o JOIN @schema@.runs l ON l.sid = o.sid
            WHERE l.in_force AND l.revision > o.revision AND l.kind <> 'undo' AND l.id NOT IN (SELECT id FROM m))
    FROM m
$$;

-- The first runs that a bulk undo with this filter would undo, the newest first.
CREATE OR REPLACE FUNCTION @schema@.first_to_undo(p_tenant text, p_filter jsonb, p_limit int) RETURNS SETOF bigint LANGUAGE sql STABLE AS $$
    SELECT m.id FROM @schema@.matching_runs('undo', @schema@.bulk_tenant(p_tenant), p_filter, 9223372036854775807, 0) m(id) LIMIT p_limit
$$;

-- What a bulk recompaction with this filter would be about: the sessions, the tokens in their views and in their logs, and
-- how many of the sessions are paused.
CREATE OR REPLACE FUNCTION @schema@.preview_bulk_compact(p_tenant text, p_filter jsonb, OUT sessions bigint, OUT tokens bigint, OUT log_tokens bigint,
    OUT held bigint, OUT first_id bigint, OUT last_id bigint) LANGUAGE sql STABLE AS $$
    SELECT count(*), coalesce(sum(s.live_tokens), 0), coalesce(sum(s.total_tokens), 0),
        count(*) FILTER (WHERE EXISTS (SELECT FROM @schema@.pauses WHERE resumed_at IS NULL) AND @schema@.paused(s.tenant, s.model, s.policy)),
        coalesce(min(s.sid), 0), coalesce(max(s.sid), 0)
    FROM @schema@.matching_runs('compact', @schema@.bulk_tenant(p_tenant), p_filter, 9223372036854775807, 0) x(id)
    JOIN @schema@.runs r ON r.id = x.id JOIN @schema@.sessions s ON s.sid = r.sid
$$;

-- Records a bulk undo of the runs that match now, or a bulk recompaction of the sessions; bulk_undo_next does the first,
-- the scheduler the second, which stops when more than p_stop_share of its latest runs failed. p_options are those of the runs.
CREATE OR REPLACE FUNCTION @schema@.start_bulk(p_kind text, p_tenant text, p_filter jsonb, p_cascade boolean, p_options jsonb, p_note text, p_by text,
    p_stop_share real DEFAULT 0.5)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_tenant text := @schema@.bulk_tenant(p_tenant);
    v_bad    text := @schema@.invalid_options(p_options);
    v_runs   bigint[];
    v_n      bigint;
    v_first  bigint;
    v_last   bigint;
    v_id     bigint;
BEGIN
    IF v_bad IS NOT NULL THEN
        RAISE EXCEPTION 'start_bulk: options: %', left(v_bad, 1000) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF p_options ? 'summary' THEN
        RAISE EXCEPTION 'start_bulk: options: summary is for one session' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF p_kind = 'undo' THEN
        v_runs := ARRAY(SELECT id FROM @schema@.matching_runs('undo', v_tenant, p_filter, 9223372036854775807, 0) m(id));   -- the newest first
        v_n := cardinality(v_runs);
        v_first := coalesce(v_runs[v_n], 0);
        v_last := coalesce(v_runs[1], 0);
    ELSE
        SELECT p.sessions, p.first_id, p.last_id INTO v_n, v_first, v_last FROM @schema@.preview_bulk_compact(p_tenant, p_filter) p;
    END IF;
    INSERT INTO @schema@.bulk_operations (kind, tenant, filter, cascade, options, note, requested_by, first_id, next_id, matched, stop_share)
    VALUES (p_kind, v_tenant, p_filter, p_cascade, p_options, p_note, p_by, v_first, v_last, v_n, coalesce(p_stop_share, 0.5)) RETURNING id INTO v_id;
    INSERT INTO @schema@.bulk_undo_runs SELECT v_id, r.id, r.sid FROM unnest(v_runs) m(id) JOIN @schema@.runs r ON r.id = m.id;
    RETURN v_id;
END $$;

-- Undoes the next run of a bulk undo that is still in force, each in a transaction of its own, and returns it with what came
-- of it: undone, or why it stays in force (later_runs, in_use, locked, archived, purged, not_applicable). Without a run, code
-- is the status of the whole. Callers at the same time take turns.
CREATE OR REPLACE FUNCTION @schema@.bulk_undo_next(p_id bigint, OUT run bigint, OUT code text) LANGUAGE plpgsql
SET lock_timeout = '2s' AS $$
DECLARE
    b @schema@.bulk_operations;
    s @schema@.sessions;
BEGIN
    PERFORM @schema@.refuse_bound();
    SELECT * INTO b FROM @schema@.bulk_operations WHERE id = p_id AND kind = 'undo' FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no bulk undo %', p_id USING ERRCODE = 'no_data_found';
    END IF;
    code := b.status;
    IF b.status <> 'open' THEN
        RETURN;
    END IF;
    SELECT m.run INTO bulk_undo_next.run FROM @schema@.bulk_undo_runs m JOIN @schema@.runs r ON r.id = m.run
    WHERE m.bulk = p_id AND m.run <= b.next_id AND r.in_force ORDER BY m.run DESC LIMIT 1;
    IF NOT FOUND THEN
        UPDATE @schema@.bulk_operations SET status = 'done', ended_at = now() WHERE id = p_id;
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
        WHEN SQLSTATE 'CA001' THEN code := 'archived';
        WHEN SQLSTATE 'CA002' THEN code := 'purged';
        WHEN object_not_in_prerequisite_state THEN code := 'not_applicable';   -- the last, since its name stands for all of its class
    END;
    IF code = 'in_use' AND NOT b.cascade AND EXISTS (SELECT FROM @schema@.runs l JOIN @schema@.runs r ON r.id = run
            WHERE l.sid = r.sid AND l.in_force AND l.kind <> 'undo' AND l.revision > r.revision) THEN
        code := 'later_runs';
    END IF;
    IF code <> 'undone' THEN
        INSERT INTO @schema@.bulk_refusals (bulk, run, sid, code) VALUES (p_id, bulk_undo_next.run, s.sid, bulk_undo_next.code);
    END IF;
    UPDATE @schema@.bulk_operations SET next_id = bulk_undo_next.run - 1, done = done + (bulk_undo_next.code = 'undone')::int,
        refused = refused + (bulk_undo_next.code <> 'undone')::int WHERE id = p_id;
END $$;

-- The next page of a bulk recompaction: queues runs for up to p_limit of the sessions that match and moves the cursor behind
-- them, in one transaction. The caller delivers the runs. status is that of the operation afterwards, or paused while all of
-- it is, or throttled while no run of the next session may start, by a limit; of other pauses it leaves out the sessions, and those with a run of their own that an operator requested.
CREATE OR REPLACE FUNCTION @schema@.bulk_compact_page(p_id bigint, p_limit int, p_grace interval, OUT status text, OUT runs bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    b      @schema@.bulk_operations;
    v_low  bigint;
    v_n    int;
    v_last bigint;
    v_most jsonb := (SELECT jsonb_object_agg(a.tenant, a.most) FROM @schema@.claim_startable_runs() a);   -- where runs are limited
    v_queue text[];
    v_cut  bigint;
BEGIN
    runs := '{}';
    SELECT * INTO b FROM @schema@.bulk_operations WHERE id = p_id AND kind = 'compact' FOR NO KEY UPDATE;
    status := b.status;
    IF NOT FOUND OR b.status <> 'open' THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM @schema@.pauses WHERE resumed_at IS NULL AND model = '' AND policy = '' AND tenant IN ('', b.tenant)) THEN
        status := 'paused';
        RETURN;
    END IF;
    IF b.done >= b.check_at AND @schema@.bulk_compact_fails(b) THEN
        UPDATE @schema@.bulk_operations SET status = 'stopped', ended_at = now() WHERE id = p_id RETURNING bulk_operations.status INTO status;
        RETURN;
    END IF;
    p_limit := least(p_limit, (v_most->>'')::int);
    IF p_limit < 1 THEN
        status := 'throttled';
        RETURN;
    END IF;
    -- Where few sessions match, a page looks at no more than these.
    v_low := (SELECT min(x.sid) FROM (SELECT s.sid FROM @schema@.sessions s WHERE s.sid BETWEEN b.first_id AND b.next_id ORDER BY s.sid DESC LIMIT greatest(1000, 10 * p_limit)) x);
    WITH found AS MATERIALIZED (
        SELECT x.id, s.sid, s.tenant, CASE WHEN EXISTS (SELECT FROM @schema@.pauses WHERE resumed_at IS NULL) AND @schema@.paused(s.tenant, s.model, s.policy) THEN 'paused'
            WHEN EXISTS (SELECT FROM @schema@.runs q WHERE q.sid = s.sid AND q.status IN ('queued', 'running') AND q.trigger IN ('operator', 'bulk')
                AND q.options->'dry_run' IS DISTINCT FROM 'true') THEN 'under_way' END AS code
        FROM (SELECT m.id FROM @schema@.matching_runs('compact', b.tenant, b.filter, b.next_id, v_low) m(id) LIMIT p_limit) x
        JOIN @schema@.runs r ON r.id = x.id JOIN @schema@.sessions s ON s.sid = r.sid),
    -- The page ends before the first session whose tenant may start no more runs now.
    cut AS MATERIALIZED (SELECT max(sid) AS sid FROM (SELECT sid, tenant, count(*) FILTER (WHERE code IS NULL) OVER (PARTITION BY tenant ORDER BY sid DESC) AS place FROM found) f
        WHERE place > (v_most->>tenant)::bigint),
    page AS MATERIALIZED (SELECT f.* FROM found f, cut WHERE (f.sid > cut.sid) IS NOT false),
    queued AS (INSERT INTO @schema@.runs (sid, trigger, requested_by, options, bulk, delivery, deliver_at)
        SELECT sid, 'bulk', b.requested_by, b.options, p_id, 1, now() + p_grace FROM page WHERE code IS NULL ORDER BY sid DESC RETURNING id),
    refused AS (INSERT INTO @schema@.bulk_refusals (bulk, run, sid, code) SELECT p_id, id, sid, code FROM page WHERE code IS NOT NULL)
    SELECT coalesce((SELECT array_agg(id) FROM queued), '{}'), (SELECT count(*) FROM page), (SELECT min(sid) FROM page), (SELECT sid FROM cut),
        CASE WHEN v_most IS NOT NULL THEN (SELECT array_agg(tenant) FROM page WHERE code IS NULL) END
    INTO runs, v_n, v_last, v_cut, v_queue;
    IF v_queue IS NOT NULL THEN
        PERFORM @schema@.count_started_runs(v_queue);
    END IF;
    IF v_cut IS NOT NULL AND v_n = 0 THEN
        status := 'throttled';
        RETURN;
    END IF;
    v_last := coalesce(v_cut, CASE WHEN v_n >= p_limit THEN v_last ELSE coalesce(v_low, 0) END - 1);
    status := CASE WHEN v_last < b.first_id THEN 'done' ELSE 'open' END;
    UPDATE @schema@.bulk_operations SET next_id = v_last, done = done + cardinality(runs), refused = refused + v_n - cardinality(runs),
        status = bulk_compact_page.status, ended_at = CASE WHEN bulk_compact_page.status = 'done' THEN now() END WHERE id = p_id;
END $$;

-- Whether too many of the latest runs of a bulk recompaction failed; if there are enough to tell, the next look is at later
-- ones.
CREATE OR REPLACE FUNCTION @schema@.bulk_compact_fails(b @schema@.bulk_operations) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v       record;
    v_fails boolean;
BEGIN
    SELECT * INTO v FROM @schema@.run_ends(NULL, b.id);
    v_fails := @schema@.too_many_bad(v.ended - b.checked, v.bad - b.checked_bad, b.stop_share);
    IF v_fails IS NOT NULL THEN
        UPDATE @schema@.bulk_operations SET check_at = @schema@.next_look(done), checked = v.ended, checked_bad = v.bad WHERE id = b.id;
    END IF;
    RETURN coalesce(v_fails, false);
END $$;

-- Ends a bulk operation before its time. What it did stays so; runs that no worker has tried end as cancelled.
CREATE OR REPLACE FUNCTION @schema@.cancel_bulk(p_kind text, p_id bigint, p_by text DEFAULT '') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM @schema@.refuse_bound();
    UPDATE @schema@.bulk_operations SET status = 'cancelled', ended_at = now() WHERE id = p_id AND kind = p_kind AND status = 'open';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'bulk % % is not open', p_kind, p_id USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    PERFORM @schema@.note_action(p_by, 'bulk.cancel', (SELECT tenant FROM @schema@.bulk_operations WHERE id = p_id), p_id::text, '');
    UPDATE @schema@.runs SET status = 'skipped', outcome = 'cancelled', ended_at = now()
    WHERE id IN (SELECT id FROM @schema@.runs WHERE bulk = p_id AND status = 'queued' AND attempts = 0 FOR NO KEY UPDATE SKIP LOCKED);
END $$;

-- Opens a bulk recompaction again that was cancelled or has stopped: it goes on where it was. One that is open stays so.
CREATE OR REPLACE FUNCTION @schema@.resume_bulk_compact(p_id bigint, p_by text DEFAULT '') RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_status text;
BEGIN
    PERFORM @schema@.refuse_bound();
    UPDATE @schema@.bulk_operations SET status = 'open', ended_at = NULL WHERE id = p_id AND kind = 'compact' AND status IN ('open', 'cancelled', 'stopped');
    IF NOT FOUND THEN
        SELECT status INTO v_status FROM @schema@.bulk_operations WHERE id = p_id AND kind = 'compact';
        IF NOT FOUND THEN
            RAISE EXCEPTION 'there is no bulk compact %', p_id USING ERRCODE = 'no_data_found';
        END IF;
        RAISE EXCEPTION 'bulk compact % is %', p_id, v_status USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    PERFORM @schema@.note_action(p_by, 'bulk.resume', (SELECT tenant FROM @schema@.bulk_operations WHERE id = p_id), p_id::text, '');
END $$;
