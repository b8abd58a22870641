-- Accounts payable of a small company on 2026-03-31: 300 invoices, and the payments that the bank reports.
-- loopctl plays this text once, when the database does not exist yet.

CREATE TABLE invoices (
  invoice_id TEXT PRIMARY KEY,
  supplier   TEXT NOT NULL,
  amount     REAL NOT NULL,
  due_on     TEXT NOT NULL,
  status     TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'paid', 'written_off'))
) STRICT;

CREATE TABLE payments (
  payment_id TEXT PRIMARY KEY,
  invoice_id TEXT NOT NULL,
  supplier   TEXT NOT NULL,
  amount     REAL NOT NULL,
  paid_on    TEXT NOT NULL
) STRICT;

CREATE TABLE notices (
  run_id TEXT PRIMARY KEY,
  text   TEXT NOT NULL
) STRICT;

WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 300)
INSERT INTO invoices (invoice_id, supplier, amount, due_on)
SELECT
  printf('INV-%04d', n),
  printf('Supplier %02d', n % 40 + 1),
  round(100 + (n * 37) % 900 + (n % 100) / 100.0, 2),
  date('2026-03-01', printf('+%d days', n % 30))
FROM number;

-- Nearly all of them are paid, one cent up or down at most.
INSERT INTO payments (payment_id, invoice_id, supplier, amount, paid_on)
SELECT
  'PAY-' || substr(invoice_id, 5), invoice_id, supplier,
  round(amount + (CAST(substr(invoice_id, 5) AS INTEGER) % 3 - 1) / 100.0, 2),
  date(due_on, '+1 day')
FROM invoices
WHERE invoice_id NOT IN ('INV-0042', 'INV-0107', 'INV-0163', 'INV-0204', 'INV-0250', 'INV-0288');

-- A few cents too little, twice; the others have not been paid.
INSERT INTO payments VALUES ('PAY-9001', 'INV-0042', 'Supplier 03', (SELECT amount - 0.35 FROM invoices WHERE invoice_id = 'INV-0042'), '2026-03-16');
INSERT INTO payments VALUES ('PAY-9002', 'INV-0204', 'Supplier 05', (SELECT amount - 0.80 FROM invoices WHERE invoice_id = 'INV-0204'), '2026-03-28');
