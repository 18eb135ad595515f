-- +goose Up

-- The runs that a bulk undo matched when it was started; it is about no others, such as those that were applied since. Safe
-- while workers run. Bulk undos that are open get their list now; one that the version before starts meanwhile is refused
-- afterwards, see bulk_undo_next. No references, which cost each start as much again.
-- +goose StatementBegin
CREATE TABLE @schema@.bulk_undo_runs (
    bulk bigint NOT NULL,
    run  bigint NOT NULL,
    sid  bigint NOT NULL,   -- of the run, for row-level security
    PRIMARY KEY (bulk, run)
);
-- +goose StatementEnd
-- +goose StatementBegin
DO $$
BEGIN
    IF to_regproc('@schema@.matching_runs') IS NOT NULL THEN   -- it is not in a new schema
        INSERT INTO @schema@.bulk_undo_runs
        SELECT b.id, r.id, r.sid FROM @schema@.bulk_operations b
        CROSS JOIN LATERAL @schema@.matching_runs('undo', b.tenant, b.filter, b.next_id, b.first_id) x(id) JOIN @schema@.runs r ON r.id = x.id
        WHERE b.kind = 'undo' AND b.status = 'open';
    END IF;
END $$;
-- +goose StatementEnd
DROP FUNCTION IF EXISTS @schema@.preview_bulk_undo(text, jsonb);   -- it gave first_id and last_id too
