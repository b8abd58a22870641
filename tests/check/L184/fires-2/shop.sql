CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  "customer" TEXT NOT NULL,
  day TEXT NOT NULL DEFAULT (date('now')),
  total REAL NOT NULL,
  double REAL NOT NULL GENERATED ALWAYS AS (total * 2) VIRTUAL,
  note TEXT
);
