-- The next page of an open sweep: decides up to p_limit due sessions and moves the cursors behind them, all in one
-- transaction. truncate_sessions ends the runs of those that it can by p_rules (ended), and the others are queued (runs):
-- the caller delivers these; see Undelivered in Go for those that it does not. Where there is a kind of sessions that
-- p_rules has nothing of (unknown: [{policy, version, tenant, model}]), nothing is done: call again with it. status is that
-- of the sweep afterwards, null where there is none.
--
-- Tenants take turns, so that the backlog of one does not delay another: a page has the same share for each of the
-- tenants whose turn it is, at least eight sessions, and who had one goes behind those who had none. A tenant of which no
-- run may start now, by its limit, is passed over.
CREATE OR REPLACE FUNCTION @schema@.sweep_page(p_sweep bigint, p_limit int, p_grace interval, p_rules json DEFAULT NULL, p_worker text DEFAULT '',
    OUT status text, OUT runs bigint[], OUT ended bigint[], OUT unknown json)
LANGUAGE plpgsql AS $$
DECLARE
    w         @schema@.sweeps;
    v_turns   text[];
    v_share   int;
    v_ended   bigint;
    v_bad     bigint;
    v_most    jsonb := (SELECT jsonb_object_agg(a.tenant, a.most) FROM @schema@.claim_startable_runs() a);   -- where runs are limited
    v_sids    bigint[];   -- the sessions of the page, …
    v_tenants text[];     -- … and their tenants
    v_free    bigint[];   -- those that may have a run
BEGIN
    runs := '{}';
    ended := '{}';
    SELECT * INTO w FROM @schema@.sweeps WHERE id = p_sweep FOR NO KEY UPDATE;
    IF NOT FOUND OR w.status <> 'open' THEN
        status := w.status;
        RETURN;
    END IF;
    IF w.window_end <= now() THEN
        status := @schema@.set_sweep_status(p_sweep, 'stopped', 'window_ended', '');
        RETURN;
    END IF;
    status := 'open';
    -- It waits while all of it is paused; of other pauses it leaves out the sessions.
    IF EXISTS (SELECT FROM @schema@.pauses WHERE resumed_at IS NULL AND model = '' AND policy = '' AND tenant IN ('', w.tenant)) THEN
        RETURN;
    END IF;
    IF w.due IS NULL THEN
        PERFORM @schema@.begin_sweep(w);
        SELECT * INTO w FROM @schema@.sweeps WHERE id = p_sweep;
    END IF;
    IF w.queued < w.canary THEN
        p_limit := least(p_limit, w.canary - w.queued);
    ELSIF w.canary IS NOT NULL THEN   -- the rest waits for what becomes of its runs
        SELECT e.ended, e.bad INTO v_ended, v_bad FROM @schema@.run_ends(p_sweep, NULL) e;
        IF v_ended < w.queued THEN
            RETURN;
        ELSIF v_bad > w.stop_share * v_ended THEN
            status := @schema@.stop_failing_sweep(w, 'canary');
            RETURN;
        END IF;
        UPDATE @schema@.sweeps SET canary = NULL WHERE id = p_sweep;
    END IF;
    IF w.queued >= w.check_at AND @schema@.sweep_fails(w) THEN
        status := @schema@.stop_failing_sweep(w, 'failures');
        RETURN;
    END IF;
    p_limit := least(p_limit, (v_most->>'')::int);
    IF p_limit < 1 THEN   -- no room for more runs
        RETURN;
    END IF;
    v_turns := ARRAY(SELECT tenant FROM @schema@.sweep_tenants WHERE sweep = p_sweep AND NOT passed AND (v_most->>tenant = '0') IS NOT true
        ORDER BY turn, tenant LIMIT greatest(1, p_limit / 8));
    IF v_turns = '{}' THEN
        IF EXISTS (SELECT FROM @schema@.sweep_tenants WHERE sweep = p_sweep AND NOT passed) THEN
            RETURN;
        END IF;
        status := @schema@.set_sweep_status(p_sweep, 'done', '', '');
        RETURN;
    END IF;
    v_share := least(p_limit, greatest(8, p_limit / cardinality(v_turns)));
    -- A run that is under way or queued for another reason stands for that of the sweep, unless it only plans. In a cooldown a run
    -- has nothing to do but to repair the view; what may be tried again afterwards the reconciler finds (see decides). What a guard
    -- on the rate of runs holds is left to the run, as another policy may have another guard.
    SELECT coalesce(array_agg(s.sid), '{}'), coalesce(array_agg(t.tenant), '{}'), coalesce(array_agg(s.sid) FILTER (WHERE
            NOT EXISTS (SELECT FROM @schema@.runs r WHERE r.sid = s.sid AND r.status IN ('queued', 'running') AND r.options->'dry_run' IS DISTINCT FROM 'true')
            AND (s.cooldown_until > now() AND s.hold_code IS NULL AND s.suspect_seq IS NULL) IS NOT true
            AND NOT (EXISTS (SELECT FROM @schema@.pauses WHERE resumed_at IS NULL) AND @schema@.paused(t.tenant, s.model, s.policy))), '{}')
    INTO v_sids, v_tenants, v_free
    FROM @schema@.sweep_tenants t CROSS JOIN LATERAL (
        SELECT s.sid, s.model, s.policy, s.cooldown_until, s.hold_code, s.suspect_seq FROM @schema@.sessions s WHERE s.due AND s.tenant = t.tenant AND s.sid > t.cursor_sid ORDER BY s.sid LIMIT least(v_share, (v_most->>t.tenant)::int)) s
    WHERE t.sweep = p_sweep AND t.tenant = ANY(v_turns);
    IF p_rules IS NOT NULL THEN
        SELECT t.ended, t.unknown INTO ended, unknown FROM @schema@.truncate_sessions(p_sweep, v_free, p_rules, p_worker) t;
        IF unknown IS NOT NULL THEN
            RETURN;
        END IF;
    END IF;
    UPDATE @schema@.sweep_tenants t SET turn = t.turn + 1, seen = t.seen + p.n, cursor_sid = coalesce(p.last, t.cursor_sid), passed = p.n < least(v_share, (v_most->>t.tenant)::int)
    FROM (SELECT x.tenant, count(page.sid) AS n, max(page.sid) AS last FROM unnest(v_turns) x(tenant) LEFT JOIN unnest(v_sids, v_tenants) page(sid, tenant) USING (tenant) GROUP BY 1) p
    WHERE t.sweep = p_sweep AND t.tenant = p.tenant;
    WITH queued AS (INSERT INTO @schema@.runs (sid, trigger, sweep, delivery, deliver_at)
        SELECT sid, 'nightly', p_sweep, 1, now() + p_grace FROM @schema@.sessions WHERE sid = ANY(v_free) AND due
        ON CONFLICT DO NOTHING RETURNING id)
    SELECT coalesce(array_agg(id), '{}') INTO runs FROM queued;
    -- The run of an event may have begun and ended since the statement above looked.
    WITH gone AS (DELETE FROM @schema@.runs r USING @schema@.sessions s WHERE r.id = ANY(sweep_page.runs) AND s.sid = r.sid AND NOT s.due RETURNING r.id)
    SELECT coalesce(array_agg(id), '{}') INTO runs FROM unnest(runs) id WHERE id NOT IN (SELECT gone.id FROM gone);
    IF v_most IS NOT NULL THEN
        PERFORM @schema@.count_started_runs(ARRAY(SELECT s.tenant FROM @schema@.runs r JOIN @schema@.sessions s USING (sid) WHERE r.id = ANY(sweep_page.runs || sweep_page.ended)));
    END IF;
    UPDATE @schema@.sweeps SET queued = queued + cardinality(runs || ended), left_out = left_out + cardinality(v_sids) - cardinality(runs || ended) WHERE id = p_sweep;
END $$;

-- Whether too many of the latest runs of a sweep failed; if there are enough to tell, the next look is at later ones.
CREATE OR REPLACE FUNCTION @schema@.sweep_fails(w @schema@.sweeps) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v       record;
    v_fails boolean;
BEGIN
    SELECT * INTO v FROM @schema@.run_ends(w.id, NULL);
    v_fails := @schema@.too_many_bad(v.ended - w.checked, v.bad - w.checked_bad, w.stop_share);
    IF v_fails IS NOT NULL THEN
        UPDATE @schema@.sweeps SET check_at = @schema@.next_look(queued), checked = v.ended, checked_bad = v.bad WHERE id = w.id;
    END IF;
    RETURN coalesce(v_fails, false);
END $$;

-- Stops a sweep whose runs fail, and pauses its schedule if that wants it, and returns the new status.
CREATE OR REPLACE FUNCTION @schema@.stop_failing_sweep(w @schema@.sweeps, p_reason text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF w.pause_schedule THEN
        INSERT INTO @schema@.schedule_pauses (schedule, note, requested_by) VALUES (w.entry, 'sweep ' || w.id || ' stopped: too many runs failed', '')
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN @schema@.set_sweep_status(w.id, 'stopped', p_reason, '');
END $$;

-- Whether a sweep is yet to begin and waits for the sessions to get the policies of a change (refresh_policies), as it passes those
-- that are due. It waits for the first pass over them alone: for later ones, open transactions may keep some from it for long. After
-- an hour it does not wait for that either. The tenant is as in sweep_worked.
CREATE OR REPLACE FUNCTION @schema@.awaits_policies(w @schema@.sweeps) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT w.due IS NULL AND w.status = 'open' AND (w.window_end <= now()) IS NOT TRUE AND EXISTS (SELECT FROM @schema@.policy_refresh
        WHERE reached < wanted AND (revision < wanted OR last_sid > 0) AND changed_at BETWEEN now() - interval '1 hour' AND now() + interval '1 minute')
    WHERE @schema@.tenant_of(coalesce((SELECT o.tenant FROM @schema@.sweeps o WHERE o.id = w.id), '-')) IS NOT NULL
$$;

-- Counts the due sessions of a sweep by tenant.
CREATE OR REPLACE FUNCTION @schema@.begin_sweep(w @schema@.sweeps) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF w.tenant = '' THEN
        INSERT INTO @schema@.sweep_tenants (sweep, tenant, due)
        SELECT w.id, tenant, count(*) FROM @schema@.sessions WHERE due GROUP BY tenant;
    ELSE
        INSERT INTO @schema@.sweep_tenants (sweep, tenant, due)
        SELECT w.id, w.tenant, count(*) FROM @schema@.sessions WHERE due AND tenant = w.tenant;
    END IF;
    UPDATE @schema@.sweeps SET due = d.n, canary = CASE WHEN canary_share > 0 THEN greatest(1, round(canary_share * d.n)) END, changed_at = now()
    FROM (SELECT coalesce(sum(due), 0) AS n FROM @schema@.sweep_tenants WHERE sweep = w.id) d WHERE id = w.id;
END $$;

-- How long a sweep has worked: while it was open and, as its runs end later than they are queued, from then until the last of
-- them ended. worked has that up to changed_at. Roles call it, so the tenant is that of the sweep with this id, whatever the row says.
CREATE OR REPLACE FUNCTION @schema@.sweep_worked(w @schema@.sweeps) RETURNS interval LANGUAGE sql STABLE AS $$
    SELECT w.worked + greatest('0', CASE WHEN w.due IS NULL THEN '0'
        WHEN w.status = 'open' OR EXISTS (SELECT FROM @schema@.runs WHERE sweep = w.id AND status IN ('queued', 'running')) THEN now() - w.changed_at
        ELSE (SELECT max(ended_at) FROM @schema@.runs WHERE sweep = w.id) - w.changed_at END)
    WHERE @schema@.tenant_of(coalesce((SELECT o.tenant FROM @schema@.sweeps o WHERE o.id = w.id), '-')) IS NOT NULL
$$;

-- Gives a sweep, whose row is locked, another status and returns that. Who cancels one that had stopped does not hold longer
-- what it held.
CREATE OR REPLACE FUNCTION @schema@.set_sweep_status(p_sweep bigint, p_status text, p_reason text, p_by text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    UPDATE @schema@.sweeps SET status = p_status, reason = p_reason, changed_by = p_by, changed_at = now(),
        worked = @schema@.sweep_worked(sweeps),
        ended_at = CASE WHEN p_status NOT IN ('open', 'paused') THEN coalesce(ended_at, now()) END,
        released = released AND ended_at IS NOT NULL AND p_status NOT IN ('open', 'paused')
    WHERE id = p_sweep;
    IF p_status IN ('done', 'cancelled') THEN
        DELETE FROM @schema@.sweep_tenants WHERE sweep = p_sweep;
    END IF;
    RETURN p_status;
END $$;

-- The sweeps that hold due sessions back from the reconciler: those of a tenant, or of all with an empty one, that are due since
-- until_since at the latest. An open or paused one holds what it is yet to pass: where it has begun, what is behind the cursor of
-- its tenant. One that was stopped or cancelled holds what was due when it ended, for a day (held_until) or until it is released;
-- an end that is yet to come is none: the clock was set back.
CREATE OR REPLACE FUNCTION @schema@.holding_sweeps() RETURNS TABLE (sweep bigint, tenant text, begun boolean, until_since timestamptz, held_until timestamptz)
LANGUAGE sql STABLE ROWS 2 AS $$
    SELECT w.id, w.tenant, w.due IS NOT NULL, 'infinity'::timestamptz, NULL::timestamptz FROM @schema@.sweeps w WHERE w.ended_at IS NULL
    UNION ALL SELECT w.id, w.tenant, false, w.ended_at, w.ended_at + interval '1 day' FROM @schema@.sweeps w
    WHERE w.status IN ('stopped', 'cancelled') AND NOT w.released AND w.ended_at > now() - interval '1 day' AND w.ended_at <= now() + interval '1 minute'
$$;

-- Starts a sweep over the due sessions of a tenant, or of all with an empty one, which stops after p_window, and when more
-- than p_stop_share of its latest runs failed. With p_canary, that share of the sessions comes first; the others follow if
-- no more than p_stop_share of its runs failed. One that goes over all of these sessions already, open or paused, is an error:
-- two at once do nothing that one does not.
CREATE OR REPLACE FUNCTION @schema@.start_sweep(p_tenant text, p_window interval DEFAULT NULL, p_note text DEFAULT '', p_requested_by text DEFAULT '',
    p_stop_share real DEFAULT 0.5, p_canary double precision DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_tenant text := @schema@.scope_of(p_tenant);
    v_id     bigint;
    w        @schema@.sweeps;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('@schema@.schedules/operator', 0));
    SELECT * INTO w FROM @schema@.sweeps o WHERE o.status IN ('open', 'paused') AND o.tenant IN ('', v_tenant) ORDER BY o.id LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'sweep % (%) is % and goes over the same sessions', w.id, w.entry, w.status USING ERRCODE = 'object_in_use',
            HINT = CASE w.status WHEN 'open' THEN format('Follow it: compactor sweep watch %s', w.id) ELSE format('Execute: compactor sweep resume %s, or compactor sweep cancel %s', w.id, w.id) END;
    END IF;
    INSERT INTO @schema@.sweeps (entry, tick, tenant, window_end, note, requested_by, stop_share, canary_share)
    VALUES ('operator', clock_timestamp(), v_tenant, now() + p_window, coalesce(p_note, ''), coalesce(p_requested_by, ''), coalesce(p_stop_share, 0.5),
        nullif(p_canary, 0)) RETURNING id INTO v_id;
    RETURN v_id;
END $$;

-- Pauses, resumes, cancels or releases a sweep, which is one of the tenant, if one is named. What a paused sweep has queued is
-- executed; the runs of a cancelled one that no worker has tried end as cancelled. A sweep that is resumed, or was
-- stopped, goes on where it was; it ends after p_window, and without one not at an end that has passed. What was due when one
-- was stopped or cancelled waits (see holding_sweeps) until it is released.
CREATE OR REPLACE FUNCTION @schema@.steer_sweep(p_tenant text, p_sweep bigint, p_action text, p_note text DEFAULT '', p_requested_by text DEFAULT '',
    p_window interval DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_tenant text := @schema@.scope_of(p_tenant);
    w        @schema@.sweeps;
    v_from   text[] := CASE p_action WHEN 'pause' THEN '{open}' WHEN 'resume' THEN '{paused,stopped}' WHEN 'cancel' THEN '{open,paused,stopped}' WHEN 'release' THEN '{stopped,cancelled}' END;
    v_to     text := CASE p_action WHEN 'pause' THEN 'paused' WHEN 'resume' THEN 'open' WHEN 'cancel' THEN 'cancelled' END;
BEGIN
    IF v_from IS NULL THEN
        RAISE EXCEPTION 'steer_sweep: action % is not one of pause, resume, cancel, release', p_action USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT * INTO w FROM @schema@.sweeps WHERE id = p_sweep AND v_tenant IN ('', tenant) FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'sweep % does not exist', p_sweep USING ERRCODE = 'no_data_found';
    END IF;
    IF w.status <> ALL(v_from) THEN
        RAISE EXCEPTION 'sweep % is %: % is for one that is %', p_sweep, w.status, p_action, array_to_string(v_from, ' or ')
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    PERFORM @schema@.note_action(p_requested_by, 'sweep.' || p_action, w.tenant, p_sweep::text, p_note);
    IF p_action = 'cancel' THEN
        PERFORM @schema@.cancel_sweep(p_sweep, coalesce(p_note, ''), coalesce(p_requested_by, ''));
        RETURN;
    ELSIF p_action = 'release' THEN
        UPDATE @schema@.sweeps SET released = true WHERE id = p_sweep;
        RETURN;
    END IF;
    PERFORM @schema@.set_sweep_status(p_sweep, v_to, coalesce(p_note, ''), coalesce(p_requested_by, ''));
    IF v_to = 'open' THEN
        UPDATE @schema@.sweeps SET window_end = coalesce(now() + p_window, CASE WHEN window_end > now() THEN window_end END),
            canary = CASE WHEN w.reason <> 'canary' THEN canary END   -- an operator has seen what became of it
        WHERE id = p_sweep;
    END IF;
END $$;

-- Cancels a sweep, whose row is locked, and those of its runs that no worker has tried.
CREATE OR REPLACE FUNCTION @schema@.cancel_sweep(p_sweep bigint, p_reason text, p_by text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM @schema@.set_sweep_status(p_sweep, 'cancelled', p_reason, p_by);
    UPDATE @schema@.runs SET status = 'skipped', outcome = 'cancelled', ended_at = now()
    WHERE id IN (SELECT id FROM @schema@.runs WHERE sweep = p_sweep AND status = 'queued' AND attempts = 0 FOR NO KEY UPDATE SKIP LOCKED);
END $$;
