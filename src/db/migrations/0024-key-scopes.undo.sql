-- A program that knows no scopes would let these keys do everything, and for ever: they are revoked.
delete from api_keys where scope <> 'full' or expires_at is not null;
alter table api_keys drop column scope, drop column expires_at;
