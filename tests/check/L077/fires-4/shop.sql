CREATE TABLE orders(order_no TEXT, total INTEGER);
