CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL);
CREATE TABLE notes (order_id INTEGER, text TEXT);
