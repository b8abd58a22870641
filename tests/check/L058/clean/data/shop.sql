CREATE TABLE orders (id TEXT);
