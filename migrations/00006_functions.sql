-- +goose Up

-- Which version of functions/ is installed.
-- +goose StatementBegin
CREATE TABLE @schema@.installed_functions (
    only_row     boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    hash         text NOT NULL,
    installed_at timestamptz NOT NULL DEFAULT now()
);
-- +goose StatementEnd
