-- Creates the triggers that are missing, as each CREATE TRIGGER waits for writers. A statement on a partition fires the
-- partition's own triggers of statements; triggers of rows come to partitions with those of the whole table.
DO $$
DECLARE
    w record;
BEGIN
    FOR w IN
        SELECT t.oid::regclass AS name, x.name AS trigger, format(x.fires, t.oid::regclass) AS fires, x.calls
        FROM (VALUES
            ('message_log', 'append_only', 'BEFORE UPDATE OR DELETE OR TRUNCATE ON %s FOR EACH STATEMENT', 'refuse_change'),
            ('message_log', 'keep_digest', 'BEFORE INSERT OR UPDATE ON %s FOR EACH ROW', 'keep_digest'),
            ('message_body', 'append_only', 'BEFORE UPDATE OR TRUNCATE ON %s FOR EACH STATEMENT', 'refuse_change'),
            ('message_body', 'archived_only', 'AFTER DELETE ON %s REFERENCING OLD TABLE AS gone FOR EACH STATEMENT', 'refuse_loss'),
            ('message_body', 'keep_body', 'BEFORE UPDATE ON %s FOR EACH ROW', 'keep_body'),
            ('archive_segments', 'append_only', 'BEFORE TRUNCATE ON %s FOR EACH STATEMENT', 'refuse_change'),
            ('archive_segments', 'keep_segment', 'BEFORE UPDATE OR DELETE ON %s FOR EACH ROW', 'keep_segment'),
            ('exclusions', 'append_only', 'BEFORE UPDATE OR DELETE OR TRUNCATE ON %s FOR EACH STATEMENT', 'refuse_change'),
            ('forked_from', 'append_only', 'BEFORE UPDATE OR DELETE OR TRUNCATE ON %s FOR EACH STATEMENT', 'refuse_change'),
            ('policy_versions', 'append_only', 'BEFORE UPDATE OR DELETE OR TRUNCATE ON %s FOR EACH STATEMENT', 'refuse_change'),
            ('runs', 'keep_applied', 'BEFORE DELETE ON %s FOR EACH ROW WHEN (OLD.status = ''applied'')', 'refuse_change'),
            -- Those that are requested in SQL.
            ('runs', 'wake_relay', 'AFTER INSERT ON %s FOR EACH ROW WHEN (NEW.status = ''queued'' AND NEW.delivery = 0)', 'wake_relay'),
            ('outbox', 'wake_relay', 'AFTER INSERT ON %s FOR EACH ROW', 'wake_relay'),
            -- An update without due among its columns, as that of an append, costs nothing.
            ('sessions', 'note_due', 'BEFORE UPDATE OF due ON %s FOR EACH ROW WHEN (NEW.due AND NOT OLD.due)', 'note_due')) x(relation, name, fires, calls)
        JOIN pg_class t ON t.oid = ('@schema@.' || x.relation)::regclass OR x.fires LIKE '%EACH STATEMENT'
            AND t.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = ('@schema@.' || x.relation)::regclass)
        WHERE NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = t.oid AND g.tgname = x.name)
    LOOP
        EXECUTE format('CREATE TRIGGER %I %s EXECUTE FUNCTION @schema@.%I()', w.trigger, w.fires, w.calls);
    END LOOP;
END $$;
