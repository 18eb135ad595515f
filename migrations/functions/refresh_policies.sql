-- The transactions that write sessions now, but for the caller's. One that begins to later reads policies later, too:
-- locks are taken before snapshots.
CREATE OR REPLACE FUNCTION @schema@.writers_of_sessions() RETURNS text[] LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(array_agg(virtualtransaction), '{}') FROM pg_locks
    WHERE relation = '@schema@.sessions'::regclass AND mode = 'RowExclusiveLock' AND granted AND pid <> pg_backend_pid()
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
$$;

-- Whether sessions may be left that do not follow the policies. Once an hour they are looked for in any case: runs of
-- workers with another configuration leave thresholds of that.
CREATE OR REPLACE FUNCTION @schema@.refresh_pending(r @schema@.policy_refresh) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT r.reached < r.wanted OR r.reached_at < now() - interval '1 hour'
$$;

-- Gives the next sessions the policy and thresholds that they should have, p_limit of them at most, and returns how many.
-- state: idle (all sessions follow the policies), page (call again), pass (a pass has ended, and another one is needed,
-- for sessions that a transaction held or may have created under the policies before), done (the last page). The passes
-- go on where another caller has left them, and start anew when policies change meanwhile.
CREATE OR REPLACE FUNCTION @schema@.refresh_policies(p_limit int, OUT state text, OUT changed int) LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    r        @schema@.policy_refresh;
    v        record;
    t        @schema@.thresholds;
    v_new    @schema@.sessions;
    i        int;
    v_scan   int := 10 * p_limit;
    v_sids   bigint[];   -- to change; by their index: the version of the row, its policy, and where its thresholds are
    v_rows   text[];
    v_names  text[];
    v_of     text[];
    v_prefix text[];
    v_done   bigint[] := '{}';
    v_next   bigint;
    v_seen   bigint;
BEGIN
    changed := 0;
    state := 'idle';
    SELECT * INTO r FROM @schema@.policy_refresh;
    IF NOT @schema@.refresh_pending(r) THEN
        RETURN;
    END IF;
    SELECT * INTO r FROM @schema@.policy_refresh FOR UPDATE;
    state := 'page';
    IF r.reached = r.wanted THEN
        UPDATE @schema@.policy_refresh SET wanted = wanted + 1;
        RETURN;
    ELSIF r.revision < r.wanted THEN
        -- The first pass begins with the next call: older transactions have mostly ended by then.
        UPDATE @schema@.policy_refresh SET revision = wanted, older = @schema@.writers_of_sessions(), cursor_sid = 0,
            last_sid = coalesce((SELECT max(sid) FROM @schema@.sessions), 0), skipped_sid = NULL, changed = 0;
        RETURN;
    END IF;
    IF r.cursor_sid = 0 THEN
        r.final := cardinality(r.older) = 0 OR NOT r.older && @schema@.writers_of_sessions();
        r.skipped_sid := NULL;
    END IF;
    PERFORM set_config('compactor.quiet', 'on', true);   -- the scheduler finds what becomes due, at the pace of the workers
    WITH page AS MATERIALIZED (
        SELECT p.sid, p.tenant, p.model, CASE WHEN p.parent IS NULL THEN p.labels ELSE @schema@.effective_labels(p.labels, p.parent) END AS labels,
            coalesce(p.policy_override, '') AS override, p.policy, p.policy_hash, p.xmin::text AS version
        FROM @schema@.sessions p WHERE p.sid > r.cursor_sid ORDER BY p.sid LIMIT v_scan
    ), kinds AS MATERIALIZED (
        SELECT k.*, n.name, h.policy AS of, h.model_prefix AS prefix, coalesce(h.policy_hash, '') AS hash
        FROM (SELECT DISTINCT tenant, model, labels, override FROM page) k
        CROSS JOIN LATERAL @schema@.policy_of(k.tenant, k.model, k.labels, k.override) n(name)
        LEFT JOIN LATERAL @schema@.thresholds_of(n.name, k.model) h ON true
    ), differ AS (
        SELECT p.sid, p.version, k.name, k.of, k.prefix, row_number() OVER (ORDER BY p.sid) AS n FROM page p JOIN kinds k USING (tenant, model, labels, override)
        WHERE (p.policy, p.policy_hash) <> (k.name, k.hash))
    SELECT coalesce(array_agg(d.sid ORDER BY n) FILTER (WHERE n <= p_limit), '{}'), array_agg(d.version ORDER BY n) FILTER (WHERE n <= p_limit),
        array_agg(d.name ORDER BY n) FILTER (WHERE n <= p_limit), array_agg(d.of ORDER BY n) FILTER (WHERE n <= p_limit),
        array_agg(d.prefix ORDER BY n) FILTER (WHERE n <= p_limit),
        CASE WHEN count(*) >= p_limit THEN max(d.sid) FILTER (WHERE n = p_limit) ELSE (SELECT max(sid) FROM page) END, (SELECT count(*) FROM page)
    INTO v_sids, v_rows, v_names, v_of, v_prefix, v_next, v_seen FROM differ d;
    FOR v IN SELECT p AS s, p.xmin::text AS version FROM @schema@.sessions p WHERE p.sid = ANY(v_sids) ORDER BY p.sid FOR NO KEY UPDATE SKIP LOCKED LOOP
        i := array_position(v_sids, (v.s).sid);
        IF v.version = v_rows[i] THEN
            SELECT * INTO t FROM @schema@.thresholds h WHERE h.policy = v_of[i] AND h.model_prefix = v_prefix[i];
            v_new := @schema@.with_thresholds(v.s, v_names[i], t);
            PERFORM @schema@.save_policy(v_new);
            -- A run has seen all messages of what a guard held, so no one would look for it.
            IF v_new.due AND (v.s).state <> 'active' THEN
                INSERT INTO @schema@.outbox AS o (sid) VALUES (v_new.sid) ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, last_at = now();
            END IF;
        ELSE   -- it was written meanwhile, and may match other policies
            PERFORM @schema@.use_policy(v.s);
        END IF;
        v_done := v_done || (v.s).sid;
    END LOOP;
    changed := cardinality(v_done);
    r.skipped_sid := least(r.skipped_sid, (SELECT min(x) FROM unnest(v_sids) x WHERE x <> ALL (v_done)));
    IF v_seen < v_scan AND (v_next IS NULL OR cardinality(v_sids) < p_limit) THEN   -- the end of the pass
        state := CASE WHEN r.final AND r.skipped_sid IS NULL THEN 'done' ELSE 'pass' END;
        v_next := CASE WHEN r.final THEN coalesce(r.skipped_sid - 1, 0) ELSE 0 END;
    END IF;
    UPDATE @schema@.policy_refresh p SET cursor_sid = v_next, final = r.final, changed = p.changed + refresh_policies.changed,
        skipped_sid = CASE WHEN state = 'pass' THEN NULL ELSE r.skipped_sid END,
        reached = CASE WHEN state = 'done' THEN r.revision ELSE p.reached END, reached_at = CASE WHEN state = 'done' THEN now() ELSE p.reached_at END;
END $$;
