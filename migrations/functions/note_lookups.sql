-- Counts for runs of a tenant that an agent looked up what they had taken out of its view. Rows are locked in the order of
-- their ids, as two agents may look up the same; no session is.
CREATE OR REPLACE FUNCTION @schema@.note_lookups(p_tenant text, p_runs bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_tenant text := @schema@.tenant_of(p_tenant);
BEGIN
    UPDATE @schema@.runs SET looked_up = looked_up + 1
    WHERE id IN (SELECT r.id FROM @schema@.runs r WHERE r.id = ANY (p_runs) AND r.status = 'applied'
        AND r.sid IN (SELECT s.sid FROM @schema@.sessions s WHERE s.tenant = v_tenant) ORDER BY r.id FOR NO KEY UPDATE OF r);
END $$;
