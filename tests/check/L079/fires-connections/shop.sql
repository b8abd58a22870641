CREATE TABLE orders (id TEXT, customer TEXT);
