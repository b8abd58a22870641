CREATE TABLE copied AS SELECT 1 AS anything;
