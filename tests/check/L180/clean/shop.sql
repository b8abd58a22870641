-- The shop.
PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customers (id), due_on TEXT, total REAL);
INSERT INTO customers VALUES (1, 'Ada');
CREATE VIEW open_orders AS SELECT id, due_on FROM orders WHERE total > 0;
COMMIT;
