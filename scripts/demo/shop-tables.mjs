/** The tables of the project `shop`, and rows for them. The same numbers come out each time. */

export const schema = [
  `create table customers (
     id int generated always as identity primary key, name text not null, email text not null unique,
     country text not null, vip boolean not null default false, profile jsonb, joined_at timestamptz not null)`,
  `create table categories (id int primary key, name text not null, parent_id int references categories)`,
  `create table products (
     id int primary key, category_id int not null references categories, title text not null,
     price numeric(10, 2) not null check (price >= 0), tags text[] not null default '{}', picture bytea)`,
  `create table orders (
     id bigint generated always as identity primary key, customer_id int not null references customers,
     status text not null check (status in ('new', 'paid', 'sent', 'returned')), total numeric(10, 2) not null,
     note text, placed_at timestamptz not null)`,
  'create index orders_by_customer on orders (customer_id, placed_at desc)',
  `create table order_items (
     order_id bigint not null references orders on delete cascade, product_id int not null references products,
     quantity int not null default 1, price numeric(10, 2) not null, primary key (order_id, product_id))`,
  `create table reviews (
     id int generated always as identity primary key, product_id int not null references products,
     customer_id int references customers on delete set null, stars int not null check (stars between 1 and 5),
     body text, written_at timestamptz not null)`,
  'alter table reviews enable row level security',
  'create policy everybody_reads on reviews for select using (true)',
  `create function touch_note() returns trigger language plpgsql as $$
     begin new.note := coalesce(new.note, 'changed'); return new; end $$`,
  'create trigger orders_note before update on orders for each row execute function touch_note()',
  `comment on column orders.total is 'With taxes, in euros'`,
  `create view revenue as select date_trunc('month', placed_at) as month, sum(total) from orders group by 1`,
  `create table measurements (id int primary key, ${columnsOf(
    (n) => `value_${n} ${n % 5 === 0 ? 'text' : 'numeric(12, 4)'}`,
  )})`,
];

export const seed = [
  `insert into customers (name, email, country, vip, profile, joined_at)
     select first || ' ' || last, lower(first) || '.' || n || '@example.com',
       (array['DE', 'FR', 'JP', 'BR', 'KE', 'US', 'IN'])[1 + n % 7], n % 17 = 0,
       case when n % 3 > 0 then jsonb_build_object('age', 18 + n % 60, 'likes', jsonb_build_array('tea', 'cats'),
         'address', jsonb_build_object('city', 'Springfield', 'zip', 10000 + n)) end,
       timestamptz '2024-01-01' + n * interval '17 h'
     from generate_series(1, 800) n,
       lateral (select (array['Ada', 'Grace', 'Edsger', 'Barbara', 'Donald', 'Radia'])[1 + n % 6] as first,
                       (array['Okafor', 'Schmidt', 'Tanaka', 'García', 'O’Neill'])[1 + n % 5] as last) names`,
  `insert into categories select n, 'Category ' || n, nullif(n / 4, 0) from generate_series(1, 16) n`,
  `insert into products select n, 1 + n % 16, 'Product ' || n, 3 + n % 97 + 0.99,
     array['tag-' || n % 5, 'tag-' || n % 7], decode(md5(n::text), 'hex') from generate_series(1, 120) n`,
  `insert into orders (customer_id, status, total, note, placed_at)
     select 1 + n * 37 % 800, (array['new', 'paid', 'sent', 'sent', 'returned'])[1 + n % 5], 5 + n * 7 % 400,
       case when n % 11 = 0 then repeat('Please leave it with the neighbours. ', 1 + n % 9) end,
       timestamptz '2025-01-01' + n * interval '83 min' from generate_series(1, 8000) n`,
  `insert into order_items select o.id, 1 + (o.id * 13 + k * 29) % 120, 1 + k % 3, 3 + (o.id + k) % 90
     from orders o, generate_series(1, 3) k on conflict do nothing`,
  `insert into reviews (product_id, customer_id, stars, body, written_at)
     select 1 + n % 120, case when n % 9 > 0 then 1 + n % 800 end, 1 + n % 5, 'It was number ' || n || '.',
       timestamptz '2025-06-01' + n * interval '3 h' from generate_series(1, 1500) n`,
  `insert into measurements select r, ${columnsOf((n) =>
    n % 5 === 0 ? `'reading ' || (r * ${n} % 977)` : `case when (r + ${n}) % 23 > 0 then (r * ${n} % 9973) / 7.0 end`,
  )} from generate_series(1, 10000) r`,
  'analyze',
];

/** Fifty of them, beside the id. */
function columnsOf(write) {
  return Array.from({ length: 50 }, (_, at) => write(at + 1)).join(', ');
}
