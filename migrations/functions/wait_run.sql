-- Waits until a run of a session has ended, at most for p_timeout; a status of queued or running says that
-- it has not. It looks again and again, so it works through any pooler, but it needs a snapshot for each
-- look: READ COMMITTED, and a request that is committed.
--
-- The other way to learn of it is LISTEN on the channel that has the schema's name. Its payload is the id
-- of a run of any session, within a moment of its end. A notification can be lost; nothing else of the
-- run is in it, as all tenants share the channel.
CREATE OR REPLACE FUNCTION @schema@.wait_run(p_tenant text, p_session text, p_run bigint, p_timeout interval DEFAULT '30 seconds',
    OUT status text, OUT outcome text, OUT error text) LANGUAGE plpgsql AS $$
DECLARE
    v_tenant text := @schema@.tenant_of(p_tenant);
    v_until  timestamptz := clock_timestamp() + coalesce(p_timeout, '30 seconds');
    v_pause  double precision := 0.01;
    v_own    boolean;
BEGIN
    LOOP
        SELECT r.status, r.outcome, r.error, r.xmin = pg_current_xact_id_if_assigned()::xid INTO status, outcome, error, v_own
        FROM @schema@.sessions s JOIN @schema@.runs r ON r.sid = s.sid
        WHERE s.tenant = v_tenant AND s.id = p_session AND r.id = p_run;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'session % has no run %', p_session, p_run USING ERRCODE = 'no_data_found';
        END IF;
        EXIT WHEN status NOT IN ('queued', 'running') OR clock_timestamp() >= v_until;
        IF v_own OR current_setting('transaction_isolation') <> 'read committed' THEN
            RAISE EXCEPTION 'wait_run: this transaction cannot see the end of run %', p_run
                USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Commit the request first, and wait at READ COMMITTED.';
        END IF;
        PERFORM pg_sleep(least(v_pause, extract(epoch FROM v_until - clock_timestamp())));
        v_pause := least(2 * v_pause, 0.25);
    END LOOP;
END $$;
