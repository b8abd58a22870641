-- The support desk of a small software company, as it stood on 2026-03-03.
-- loopctl plays this text once, when the database does not exist yet.

CREATE TABLE customers (
  customer_id TEXT PRIMARY KEY,
  name        TEXT NOT NULL,
  company     TEXT,
  email       TEXT NOT NULL,
  country     TEXT NOT NULL,
  since       TEXT NOT NULL
) STRICT;

CREATE TABLE subscriptions (
  subscription_id  TEXT PRIMARY KEY,
  customer_id      TEXT NOT NULL REFERENCES customers (customer_id),
  plan             TEXT NOT NULL,
  seats            INTEGER NOT NULL,
  price_cents      INTEGER NOT NULL,
  currency         TEXT NOT NULL,
  billing_interval TEXT NOT NULL CHECK (billing_interval IN ('month', 'year')),
  status           TEXT NOT NULL CHECK (status IN ('active', 'past_due', 'cancelled')),
  started_on       TEXT NOT NULL
) STRICT;

CREATE TABLE charges (
  charge_id       TEXT PRIMARY KEY,
  customer_id     TEXT NOT NULL REFERENCES customers (customer_id),
  subscription_id TEXT NOT NULL REFERENCES subscriptions (subscription_id),
  invoice_id      TEXT NOT NULL,
  billing_period  TEXT NOT NULL,
  amount_cents    INTEGER NOT NULL,
  currency        TEXT NOT NULL,
  status          TEXT NOT NULL CHECK (status IN ('succeeded', 'failed', 'refunded')),
  payment_method  TEXT NOT NULL,
  charged_at      TEXT NOT NULL
) STRICT;

CREATE INDEX charges_by_customer ON charges (customer_id, charged_at);

CREATE TABLE tickets (
  ticket_id   TEXT PRIMARY KEY,
  customer_id TEXT NOT NULL REFERENCES customers (customer_id),
  subject     TEXT NOT NULL,
  body        TEXT NOT NULL,
  channel     TEXT NOT NULL CHECK (channel IN ('email', 'chat', 'web')),
  priority    TEXT NOT NULL CHECK (priority IN ('low', 'normal', 'high')),
  status      TEXT NOT NULL CHECK (status IN ('open', 'waiting', 'closed')),
  created_at  TEXT NOT NULL
) STRICT;

CREATE TABLE recommendations (
  ticket_id    TEXT PRIMARY KEY REFERENCES tickets (ticket_id),
  category     TEXT NOT NULL,
  action       TEXT NOT NULL,
  refund_cents INTEGER NOT NULL CHECK (refund_cents >= 0),
  charge_id    TEXT REFERENCES charges (charge_id),
  reason       TEXT NOT NULL,
  filed_at     TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
) STRICT;

INSERT INTO customers VALUES
  ('C-113', 'Tomasz Zielinski', NULL,                'tomasz@zielinski.example',   'PL', '2024-05-11'),
  ('C-158', 'Amara Okafor',     'Okafor Logistics',  'amara@okafor.example',       'NG', '2024-09-30'),
  ('C-207', 'Ines Moreau',      'Atelier Moreau',    'ines@atelier-moreau.example', 'FR', '2025-01-14'),
  ('C-214', 'Priya Raman',      'Raman & Daughters', 'priya@raman.example',        'IN', '2025-02-02'),
  ('C-263', 'Jonas Lindqvist',  'Norrsken Labs',     'jonas@norrsken.example',     'SE', '2025-06-19'),
  ('C-291', 'Mei Tanaka',       NULL,                'mei.tanaka@mail.example',    'JP', '2025-11-08');

INSERT INTO subscriptions VALUES
  ('S-3101', 'C-113', 'solo',  1,  1200, 'EUR', 'month', 'past_due',  '2024-05-11'),
  ('S-3144', 'C-158', 'team',  8,  7200, 'USD', 'month', 'active',    '2024-09-30'),
  ('S-3188', 'C-207', 'solo',  1,  1200, 'EUR', 'month', 'cancelled', '2025-01-14'),
  ('S-3202', 'C-207', 'team',  5,  4900, 'EUR', 'month', 'active',    '2025-07-02'),
  ('S-3210', 'C-214', 'team',  3,  4900, 'USD', 'month', 'active',    '2025-02-02'),
  ('S-3211', 'C-214', 'team',  3,  4900, 'USD', 'month', 'active',    '2026-02-20'),
  ('S-3275', 'C-263', 'scale', 40, 39900, 'EUR', 'year', 'active',    '2025-06-19'),
  ('S-3304', 'C-291', 'solo',  1,  1200, 'USD', 'month', 'active',    '2025-11-08');

INSERT INTO charges VALUES
  -- C-113: the card was refused three times.
  ('ch_5402', 'C-113', 'S-3101', 'INV-2026-0188', '2026-01', 1200, 'EUR', 'succeeded', 'card 4417', '2026-01-11T06:00:09Z'),
  ('ch_5461', 'C-113', 'S-3101', 'INV-2026-0254', '2026-02', 1200, 'EUR', 'failed',    'card 4417', '2026-02-11T06:00:12Z'),
  ('ch_5466', 'C-113', 'S-3101', 'INV-2026-0254', '2026-02', 1200, 'EUR', 'failed',    'card 4417', '2026-02-14T06:00:10Z'),
  ('ch_5479', 'C-113', 'S-3101', 'INV-2026-0254', '2026-02', 1200, 'EUR', 'failed',    'card 4417', '2026-02-18T06:00:11Z'),
  -- C-158: charged twice in January, refunded already.
  ('ch_5391', 'C-158', 'S-3144', 'INV-2026-0170', '2026-01', 7200, 'USD', 'succeeded', 'card 0082', '2026-01-30T05:12:44Z'),
  ('ch_5392', 'C-158', 'S-3144', 'INV-2026-0170', '2026-01', 7200, 'USD', 'refunded',  'card 0082', '2026-01-30T05:12:47Z'),
  ('ch_5488', 'C-158', 'S-3144', 'INV-2026-0290', '2026-02', 7200, 'USD', 'succeeded', 'card 0082', '2026-02-28T05:12:40Z'),
  -- C-207: two charges for one invoice, two seconds apart.
  ('ch_5377', 'C-207', 'S-3202', 'INV-2026-0102', '2026-01', 4900, 'EUR', 'succeeded', 'card 9035', '2026-01-02T09:14:03Z'),
  ('ch_5433', 'C-207', 'S-3202', 'INV-2026-0207', '2026-02', 4900, 'EUR', 'succeeded', 'card 9035', '2026-02-02T09:14:05Z'),
  ('ch_5501', 'C-207', 'S-3202', 'INV-2026-0311', '2026-03', 4900, 'EUR', 'succeeded', 'card 9035', '2026-03-02T09:14:07Z'),
  ('ch_5502', 'C-207', 'S-3202', 'INV-2026-0311', '2026-03', 4900, 'EUR', 'succeeded', 'card 9035', '2026-03-02T09:14:09Z'),
  -- C-214: two equal charges a month, but for two subscriptions.
  ('ch_5435', 'C-214', 'S-3210', 'INV-2026-0209', '2026-02', 4900, 'USD', 'succeeded', 'card 7710', '2026-02-02T04:30:01Z'),
  ('ch_5484', 'C-214', 'S-3211', 'INV-2026-0271', '2026-02', 4900, 'USD', 'succeeded', 'card 7710', '2026-02-20T11:02:55Z'),
  ('ch_5504', 'C-214', 'S-3210', 'INV-2026-0315', '2026-03', 4900, 'USD', 'succeeded', 'card 7710', '2026-03-02T04:30:02Z'),
  -- C-291: a small invoice, charged twice.
  ('ch_5446', 'C-291', 'S-3304', 'INV-2026-0231', '2026-02', 1200, 'USD', 'succeeded', 'card 3391', '2026-02-08T22:41:30Z'),
  ('ch_5447', 'C-291', 'S-3304', 'INV-2026-0231', '2026-02', 1200, 'USD', 'succeeded', 'card 3391', '2026-02-08T22:41:33Z'),
  -- C-263: nothing to see.
  ('ch_4870', 'C-263', 'S-3275', 'INV-2025-0902', '2025-06', 39900, 'EUR', 'succeeded', 'transfer',  '2025-06-19T13:20:00Z');

INSERT INTO tickets VALUES
  ('TK-1038', 'C-263', 'Export to CSV drops the last column',
   'Since the update of last week the CSV export of a report has no "owner" column any more. PDF is fine.',
   'web', 'normal', 'open', '2026-02-27T08:55:10Z'),
  ('TK-1039', 'C-113', 'Account locked?',
   'I can log in but everything is read-only and says "payment needed". I never changed anything. Please unlock.',
   'email', 'high', 'open', '2026-02-28T17:20:31Z'),
  ('TK-1040', 'C-158', 'Charged twice in January',
   'My statement shows 72.00 USD twice on 30 January. I would like one of them back.',
   'email', 'normal', 'open', '2026-03-01T10:07:45Z'),
  ('TK-1041', 'C-291', 'Dark mode',
   'Any plans for a dark mode? Would love that for late evenings.',
   'chat', 'low', 'open', '2026-03-01T23:15:02Z'),
  ('TK-1042', 'C-207', 'Billed twice this month',
   'Hello, my card was charged 49.00 EUR two times on 2 March. We have five people on the team plan and nothing changed on our side. Can you look into it and give one back? Thank you, Ines',
   'email', 'high', 'open', '2026-03-03T07:42:18Z'),
  ('TK-1043', 'C-214', 'Double payment again',
   'You took 49 USD from me twice in February! I have one company and one team plan. Please refund right away.',
   'chat', 'high', 'open', '2026-03-03T08:01:59Z'),
  ('TK-1044', 'C-291', 'Two charges of 12 dollars',
   'There are two charges of 12.00 USD on my card from 8 February, seconds apart. I have one plan. Could you check?',
   'email', 'normal', 'open', '2026-03-03T08:26:40Z');
