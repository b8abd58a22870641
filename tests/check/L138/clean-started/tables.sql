CREATE TABLE stock (part TEXT, pieces INTEGER);
