-- An application for all tenants:
CREATE ROLE support LOGIN PASSWORD 'change me';
GRANT compactor_application TO support;

-- An application that reaches the tenant acme alone:
CREATE ROLE support_acme LOGIN PASSWORD 'change me';
INSERT INTO compactor.tenant_bindings (role, tenant) VALUES ('support_acme', 'acme');
GRANT compactor_application TO support_acme;

-- compactor serve:
CREATE ROLE compactor_serve LOGIN PASSWORD 'change me';
GRANT compactor_worker TO compactor_serve;
