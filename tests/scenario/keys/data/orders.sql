CREATE TABLE orders (order_id TEXT PRIMARY KEY, state TEXT NOT NULL);
INSERT INTO orders VALUES ('A-1', 'late'), ('A-2', 'paid');
