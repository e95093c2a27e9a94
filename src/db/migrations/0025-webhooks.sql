-- Addresses that a project's events are sent to.
create table webhooks (
  id text primary key,
  project_id text not null references projects on delete cascade,
  url text not null,
  events text[] not null,
  -- Sealed: what deliveries are signed with.
  secret bytea not null,
  is_enabled boolean not null default true,
  -- Since when nothing could be delivered; null while all is well.
  failing_since timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp()
);
create index webhooks_of_project on webhooks (project_id, created_at);

-- What was sent to them or is to be sent: an outbox and a log.
create table webhook_deliveries (
  id uuid primary key,
  webhook_id text not null references webhooks on delete cascade,
  -- Names what has happened: the same for every webhook and for replays.
  event_id text not null,
  event text not null,
  body text not null,
  -- The delivery that this one repeats, which may be gone.
  replay_of uuid,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
  attempts int not null default 0,
  due_at timestamptz not null,
  -- Of the last attempt: the status of the reply, or why there was none.
  response_status int,
  error text,
  created_at timestamptz not null,
  ended_at timestamptz
);
create unique index webhook_deliveries_once on webhook_deliveries (webhook_id, event_id) where replay_of is null;
create index webhook_deliveries_due on webhook_deliveries (due_at) where status = 'pending';
create index webhook_deliveries_of_webhook on webhook_deliveries (webhook_id, created_at desc);
