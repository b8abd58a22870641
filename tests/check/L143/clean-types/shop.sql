CREATE TABLE bills (id INTEGER, day DATE, ref TEXT);
